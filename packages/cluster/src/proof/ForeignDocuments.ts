/**
 * JSON documents of other services, read with the guarded client: at most 64 KiB each, cached for a minute to a day by
 * their headers. Each user of this module has its own cache and its own limit of reads in progress, so that one cannot
 * delay another.
 */
import { Cache, Duration, Effect, Exit, Schema, Semaphore } from "effect"
import { freshFor, jsonOf } from "../net/BufferedResponse.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { unrestricted } from "../net/SendPermission.ts"
import { Timing } from "../Timing.ts"

/** Enough for the DID document of an Identity with all keys that it may publish. */
const bytesAtMost = 64 * 1024
/** The cache holds the text of documents, which needs less memory than their objects: at most 64 MiB. */
const documentsAtMost = 1_000
/** Documents that are read at the same time. */
const readsAtMost = 16
/** Maximum number of documents that are read at the same time for one reader, such as an account. Further calls wait. */
const perReader = 4

/** The document cannot be read. */
export class DocumentUnreadable extends Schema.TaggedError<DocumentUnreadable>()("DocumentUnreadable", {
  message: Schema.String,
  /** Whether a later attempt may succeed. */
  isTemporary: Schema.Boolean,
}) {}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const make = Effect.gen(function* () {
  const client = yield* GuardedClient
  const places = yield* Semaphore.make(readsAtMost)
  const read = (address: string) =>
    client
      .ask(
        new URL(address),
        { method: "GET", headers: { accept: "application/json, application/did+json" }, atMost: bytesAtMost },
        unrestricted,
      )
      .pipe(
        Effect.timeoutOrElse({
          duration: Timing.documentTimeoutMillis,
          orElse: () =>
            Effect.fail(new DocumentUnreadable({ message: `${address} did not respond in time.`, isTemporary: true })),
        }),
        Effect.catchTag("RequestFailed", ({ error }) =>
          Effect.fail(
            new DocumentUnreadable({
              message: `${address} cannot be read (${error}).`,
              isTemporary: error !== "too_large" && error !== "refused_address",
            }),
          ),
        ),
        Effect.flatMap((answer) =>
          answer.status === 200 && isObject(jsonOf(answer))
            ? Effect.succeed({ answer, freshMillis: freshFor(answer.headers, Timing.agentKeysFreshMillis) })
            : Effect.fail(
                new DocumentUnreadable({
                  message: `${address} has no JSON document (status ${answer.status}).`,
                  isTemporary: answer.status >= 500 || answer.status === 429,
                }),
              ),
        ),
        places.withPermits(1),
      )
  const documents = yield* Cache.makeWith(read, {
    capacity: documentsAtMost,
    timeToLive: Exit.match({
      onFailure: () => Duration.millis(Timing.agentKeysFailedMillis),
      onSuccess: ({ freshMillis }) => Duration.millis(freshMillis),
    }),
  })

  const readers = new Map<string, { readonly places: Semaphore.Semaphore; calls: number }>()
  /** Limits the reads of each reader separately, so that slow hosts named by one do not delay the others. */
  const within = <A, E>(reader: string, get: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const own = readers.get(reader) ?? { places: Semaphore.makeUnsafe(perReader), calls: 0 }
      own.calls++
      readers.set(reader, own)
      const left = Effect.sync(() => {
        if (--own.calls === 0) readers.delete(reader)
      })
      return Effect.ensuring(own.places.withPermits(1)(get), left)
    })

  /** Returns the JSON object at an address. */
  return (address: string, reader?: string) => {
    const document = Effect.map(
      Cache.get(documents, address),
      ({ answer }) => jsonOf(answer) as Readonly<Record<string, unknown>>,
    )
    return reader === undefined ? document : within(reader, document)
  }
})
