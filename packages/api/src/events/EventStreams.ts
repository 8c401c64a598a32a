/**
 * The live stream of Events (Server-Sent Events): Events after a position, then new ones as they are committed. Each has
 * its `evt_` id, so that a client can resume. The stream waits for change notifications and is idle otherwise. It starts
 * with an id, so that a client that loses it before the first Event resumes without a gap, and ends when its credential is
 * no longer valid.
 */
import { Caller } from "@svc/domain/account/Authorization"
import type { Event } from "@svc/domain/events/Event"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { EventTails } from "@svc/cluster/events/EventTails"
import { Effect, Option, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { ShutdownSignal } from "../ShutdownSignal.ts"
import { StreamLimits } from "./StreamLimits.ts"

/** A comment that keeps proxies and clients from timing out. */
const beatEvery = "15 seconds"

export const make = Effect.gen(function* () {
  const events = yield* EventQueries
  const tails = yield* EventTails
  const limits = yield* StreamLimits
  const credentials = yield* StandingCredentials
  const departure = yield* ShutdownSignal
  const encoder = new TextEncoder()
  const beat = encoder.encode(":\n\n")

  /** Each Event is encoded once for all streams. */
  const written = new WeakMap<Event, Uint8Array>()
  const write = (event: Event) => {
    const known = written.get(event)
    if (known !== undefined) return known
    const text = encoder.encode(`id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    written.set(event, text)
    return text
  }

  return {
    /** Returns the streaming response; the claims on the stream limits last until the scope of the request closes. */
    open: Effect.fn("EventStreams.open")(function* (
      org: string,
      identityId: string | null,
      lastEventId: string | undefined,
    ) {
      const caller = yield* Caller
      yield* limits.take(caller)
      const gone = yield* credentials.watch(caller)
      const { at, last } = yield* events.beginning(org, identityId, lastEventId)
      const { next } = yield* tails.open(org, identityId, at)

      const chunk = Effect.map(
        Effect.timeoutOption(next, beatEvery),
        Option.match({
          onNone: () => beat,
          onSome: (found) =>
            found.length === 1 ? write(found[0]!.event) : Buffer.concat(found.map(({ event }) => write(event))),
        }),
      )
      const body = Stream.concat(
        Stream.succeed(encoder.encode(last === undefined ? ": connected\n\n" : `: connected\nid: ${last}\n\n`)),
        Stream.fromEffectRepeat(chunk),
      ).pipe(
        Stream.interruptWhen(Effect.raceFirst(gone, departure.await)),
        // If the store is unreachable, the stream ends and the client reconnects.
        Stream.catchCause(() => Stream.empty),
      )
      return HttpServerResponse.stream(body, {
        contentType: "text/event-stream",
        // The connection closes after the stream, so that a shutdown need not wait for the client.
        headers: { "cache-control": "no-store", "x-accel-buffering": "no", connection: "close" },
      })
    }),
  }
})
