/**
 * DKIM keys and DNS: makes the first keys where there are none, and lets a new generation sign as soon as its records are
 * seen. What is published is compared with what should be by `svc doctor` too.
 */
import { DkimKeys, type ListedKey } from "@svc/cluster/mail/dkim/DkimKeys"
import { Effect, Layer, Schedule } from "effect"
import { Resolver } from "../Resolver.ts"
import { Timing } from "../../Timing.ts"

/** The tag `p` of a record (RFC 6376 section 3.6.1). */
const keyIn = (record: string): string | undefined => /(?:^|;)\s*p\s*=([^;]*)/.exec(record)?.[1]?.replace(/\s/g, "")

/** Whether DNS has the key's record. What DNS does not answer is not published. */
export const isPublished = (resolver: Resolver["Service"], { name, record }: ListedKey): Effect.Effect<boolean> =>
  resolver.lookup(name, "TXT").pipe(
    Effect.map((found) =>
      found.some((strings) => keyIn(typeof strings === "string" ? strings : strings.join("")) === keyIn(record)),
    ),
    Effect.orElseSucceed(() => false),
  )

/** Looks once. */
export const look = Effect.fnUntraced(function* (domain: string) {
  const keys = yield* DkimKeys
  const resolver = yield* Resolver
  yield* keys.ensure(domain)
  const waiting = (yield* keys.list(domain)).filter(({ state }) => state === "waiting")
  const [first] = waiting
  if (first === undefined) return
  const seen = yield* Effect.forEach(waiting, (key) => isPublished(resolver, key))
  if (!seen.every((one) => one)) return
  yield* keys.begin(domain, first.generation)
  yield* Effect.logInfo("New DKIM keys are published, and sign from now on", {
    selectors: waiting.map(({ selector }) => selector),
  })
})

/** Looks at the start, and again and again. */
export const layer = (settings: { readonly mailDomain: string }) =>
  Layer.effectDiscard(
    look(settings.mailDomain).pipe(
      Effect.catchCause((cause) => Effect.logWarning("DKIM keys were not looked at", cause)),
      Effect.repeat(Schedule.spaced(Timing.dkimLook)),
      Effect.forkScoped,
    ),
  )
