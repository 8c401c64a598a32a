/**
 * The live stream of Events (Server-Sent Events): everything behind a position, then whatever is committed, each with
 * its `evt_` id, so that a client goes on where it was. One look a quarter of a second serves a stream; the credential is
 * judged again every second, so that a revoked one hears no more.
 */
import { Caller } from "@svc/domain/account/Authorization"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { Clock, Effect, Redacted, Stream } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"

const lookEvery = "250 millis"
const judgeEveryMillis = 1_000
/** A comment, so that proxies and clients see that the stream lives. */
const beatEveryMillis = 15_000
const page = 100

interface Position {
  readonly at: string
  readonly judgedAt: number
  readonly saidAt: number
}

const tokenOf = (header: string | undefined) => Redacted.make(header?.replace(/^Bearer\s+/i, "") ?? "")

export const make = Effect.gen(function* () {
  const events = yield* EventQueries
  const credentials = yield* CredentialLookup
  const encoder = new TextEncoder()

  return {
    open: Effect.fn("EventStreams.open")(function* (
      org: string,
      identityId: string | null,
      lastEventId: string | undefined,
    ) {
      yield* Caller
      const request = yield* HttpServerRequest.HttpServerRequest
      const token = tokenOf(request.headers["authorization"])
      const from = yield* events.position(org, lastEventId)

      const step = Effect.fnUntraced(function* (position: Position) {
        const now = yield* Clock.currentTimeMillis
        const judge = now - position.judgedAt >= judgeEveryMillis
        if (judge) yield* credentials.resolve(token)
        const found = yield* events.since(org, identityId, position.at, page)
        if (found.length < page) yield* Effect.sleep(lookEvery)
        const beat = found.length === 0 && now - position.saidAt >= beatEveryMillis
        const text = beat
          ? ":\n\n"
          : found
              .map(({ event }) => `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
              .join("")
        return {
          text,
          next: {
            at: found.at(-1)?.position ?? position.at,
            judgedAt: judge ? now : position.judgedAt,
            saidAt: text === "" ? position.saidAt : now,
          } satisfies Position,
        }
      })

      const start = yield* Clock.currentTimeMillis
      const body = Stream.unfold({ at: from, judgedAt: start, saidAt: start } as Position, (position) =>
        Effect.map(step(position), ({ text, next }) => [text, next] as const),
      ).pipe(
        Stream.filter((text) => text !== ""),
        // A credential that was revoked, or a store out of reach: the stream ends, and the client comes back.
        Stream.catchCause(() => Stream.empty),
        (texts) => Stream.concat(Stream.succeed(": connected\n\n"), texts),
        Stream.map((text) => encoder.encode(text)),
      )
      return HttpServerResponse.stream(body, {
        contentType: "text/event-stream",
        headers: { "cache-control": "no-store", "x-accel-buffering": "no" },
      })
    }),
  }
})
