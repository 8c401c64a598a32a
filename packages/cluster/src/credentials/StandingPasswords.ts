/**
 * Whether the passwords of mail programs' sessions still stand: until they are rotated, or the Identity or its account is
 * deleted. One query for all that somebody watches, nothing per session.
 */
import { Context, Effect, Latch, Layer, type Scope } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

export interface MailboxPassword {
  readonly identityId: string
  /** The verifier as it is stored; another password has another. */
  readonly verifier: Uint8Array
}

interface Watched extends MailboxPassword {
  readonly gone: Latch.Latch
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const watched = new Set<Watched>()

  const check = Effect.gen(function* () {
    if (watched.size === 0) return
    const all = [...watched]
    const fallen = yield* orUnavailable(sql<{ n: number }>`
      select n::int as n
      from unnest(${all.map(({ identityId }) => identityId)}::uuid[], ${all.map(({ verifier }) => verifier)}::bytea[])
        with ordinality as asked (identity_id, verifier, n)
      where not exists (
        select from mailbox m join identity i on i.id = m.identity_id join org o on o.id = i.org_id
        where m.identity_id = asked.identity_id and m.imap_verifier = asked.verifier
          and i.status = 'ready' and o.status = 'active')`)
    for (const { n } of fallen) all[n - 1]?.gone.openUnsafe()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.credentialCheck), Effect.exit(check))))

  return {
    /** An effect that resolves when the password no longer stands. */
    watch: (password: MailboxPassword): Effect.Effect<Effect.Effect<void>, never, Scope.Scope> =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const one: Watched = { ...password, gone: Latch.makeUnsafe() }
            watched.add(one)
            return one
          }),
          (one) => Effect.sync(() => watched.delete(one)),
        ),
        ({ gone }) => Effect.asVoid(gone.await),
      ),
  }
})

export class StandingPasswords extends Context.Service<StandingPasswords, Effect.Success<typeof make>>()(
  "@svc/cluster/credentials/StandingPasswords",
) {
  static readonly layer = Layer.effect(StandingPasswords, make)
}
