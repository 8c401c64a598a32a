/**
 * The live stream of Events (Server-Sent Events): everything behind a position, then whatever is committed, each with
 * its `evt_` id, so that a client goes on where it was. It waits for word of a change and costs nothing meanwhile. It
 * begins with an id, so that also a client that loses it before the first Event goes on without a gap, and it ends when
 * its credential no longer stands.
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

/** A comment, so that proxies and clients see that the stream lives. */
const beatEvery = "15 seconds"

export const make = Effect.gen(function* () {
  const events = yield* EventQueries
  const tails = yield* EventTails
  const limits = yield* StreamLimits
  const credentials = yield* StandingCredentials
  const departure = yield* ShutdownSignal
  const encoder = new TextEncoder()
  const beat = encoder.encode(":\n\n")

  /** An Event is written once, for however many streams it goes into. */
  const written = new WeakMap<Event, Uint8Array>()
  const write = (event: Event) => {
    const known = written.get(event)
    if (known !== undefined) return known
    const text = encoder.encode(`id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    written.set(event, text)
    return text
  }

  return {
    /** The answer that streams; the stream's claims last as long as the request's scope, which is until its end. */
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
        // A store out of reach: the stream ends, and the client comes back.
        Stream.catchCause(() => Stream.empty),
      )
      return HttpServerResponse.stream(body, {
        contentType: "text/event-stream",
        // Nothing comes behind a stream on its connection, so a server that ends need not wait for the client to close it.
        headers: { "cache-control": "no-store", "x-accel-buffering": "no", connection: "close" },
      })
    }),
  }
})
