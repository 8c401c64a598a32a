/**
 * Creates the first DKIM keys of a domain, and activates a new generation once its records are published in DNS. `svc
 * doctor` compares published and expected records with {@link isPublished}.
 */
import { DkimKeys, type ListedKey } from "@svc/cluster/mail/dkim/DkimKeys"
import { Effect, Layer, Schedule } from "effect"
import { Resolver } from "../Resolver.ts"
import { Timing } from "../../Timing.ts"

/** Returns the tag `p` of a record (RFC 6376 section 3.6.1). */
const keyIn = (record: string): string | undefined => /(?:^|;)\s*p\s*=([^;]*)/.exec(record)?.[1]?.replace(/\s/g, "")

/** Returns whether DNS has the key's record. A failed query counts as not published. */
export const isPublished = (resolver: Resolver["Service"], { name, record }: ListedKey): Effect.Effect<boolean> =>
  resolver.lookup(name, "TXT").pipe(
    Effect.map((found) =>
      found.some((strings) => keyIn(typeof strings === "string" ? strings : strings.join("")) === keyIn(record)),
    ),
    Effect.orElseSucceed(() => false),
  )

/** Checks once. */
const look = Effect.fnUntraced(function* (domain: string) {
  const keys = yield* DkimKeys
  const resolver = yield* Resolver
  yield* keys.ensure(domain)
  const waiting = (yield* keys.list(domain)).filter(({ state }) => state === "waiting")
  const [first] = waiting
  if (first === undefined) return
  const seen = yield* Effect.forEach(waiting, (key) => isPublished(resolver, key))
  if (!seen.every((one) => one)) return
  yield* keys.begin(domain, first.generation)
  yield* Effect.logInfo("New DKIM keys are published and active", {
    selectors: waiting.map(({ selector }) => selector),
  })
})

/** Checks at startup and then periodically. */
export const layer = (settings: { readonly mailDomain: string }) =>
  Layer.effectDiscard(
    look(settings.mailDomain).pipe(
      Effect.catchCause((cause) => Effect.logWarning("The publication of DKIM keys could not be checked", cause)),
      Effect.repeat(Schedule.spaced(Timing.dkimLook)),
      Effect.forkScoped,
    ),
  )
