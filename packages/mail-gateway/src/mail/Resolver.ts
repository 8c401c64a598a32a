/**
 * The DNS resolver for verdicts and delivery: a service that tests replace, with a cache and a timeout for each query.
 */
import { Resolver as NodeResolver } from "node:dns/promises"
import { Cache, Context, Duration, Effect, Exit, Layer, Schema } from "effect"
import { Timing } from "../Timing.ts"
import * as MailMetrics from "./MailMetrics.ts"

/**
 * A failed look-up. `code` is Node's error code (`ENOTFOUND`, `ENODATA`, `ETIMEOUT` …), on which the verdict depends.
 */
export class LookupFailed extends Schema.TaggedError<LookupFailed>()("LookupFailed", { code: Schema.String }) {}

export type Records = ReadonlyArray<string> | ReadonlyArray<ReadonlyArray<string>>

export class Resolver extends Context.Service<
  Resolver,
  { readonly lookup: (name: string, type: string) => Effect.Effect<Records, LookupFailed> }
>()("@svc/mail-gateway/mail/Resolver") {
  static readonly layer = Layer.effect(
    Resolver,
    Effect.gen(function* () {
      const dns = new NodeResolver({ timeout: Timing.dnsMillis, tries: 2 })
      const cache = yield* Cache.makeWith(
        (key: string) => {
          const [type, name] = key.split(" ", 2) as [string, string]
          const since = performance.now()
          return Effect.tryPromise({
            try: () => dns.resolve(name, type) as Promise<Records>,
            catch: (error) => new LookupFailed({ code: codeOf(error) }),
          }).pipe(
            Effect.onExit((exit) =>
              Effect.sync(() => MailMetrics.lookup(Exit.isSuccess(exit) || isAbsence(exit), since)),
            ),
          )
        },
        {
          capacity: 10_000,
          // Caches that a name does not exist, but not that DNS did not respond.
          timeToLive: (exit) =>
            Exit.isSuccess(exit) ? Duration.minutes(5) : isAbsence(exit) ? Duration.minutes(1) : Duration.zero,
        },
      )
      return { lookup: (name, type) => Cache.get(cache, `${type} ${name.toLowerCase()}`) }
    }),
  )
}

const codeOf = (error: unknown): string => (error instanceof Error && "code" in error ? String(error.code) : "EUNKNOWN")

const isAbsence = (exit: Exit.Exit<unknown, LookupFailed>): boolean =>
  Exit.isFailure(exit) &&
  exit.cause.reasons.some((reason) => "error" in reason && /ENOTFOUND|ENODATA/.test(reason.error.code))
