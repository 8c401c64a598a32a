/**
 * Watches the passwords of mail programs' sessions: a password is valid until it is rotated, or its Identity or account
 * is deleted. One query checks all watched passwords, each once however many sessions use it.
 */
import { Context, Effect, Layer, type Scope } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface MailboxPassword {
  readonly identityId: string
  /** The stored verifier; every password has another. */
  readonly verifier: Uint8Array
}

interface Watched extends MailboxPassword {
  readonly sessions: Set<() => void>
}

const nameOf = ({ identityId, verifier }: MailboxPassword) =>
  `${identityId} ${Buffer.from(verifier.buffer, verifier.byteOffset, verifier.byteLength).toString("base64")}`

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const watched = new Map<string, Watched>()

  const check = Effect.gen(function* () {
    if (watched.size === 0) return
    const all = [...watched.values()]
    const fallen = yield* orUnavailable(sql<{ n: number }>`
      select n::int as n
      from unnest(${all.map(({ identityId }) => identityId)}::uuid[], ${all.map(({ verifier }) => verifier)}::bytea[])
        with ordinality as requested (identity_id, verifier, n)
      where not exists (
        select from mailbox m join identity i on i.id = m.identity_id join org o on o.id = i.org_id
        where m.identity_id = requested.identity_id and m.imap_verifier = requested.verifier
          and i.status = 'ready' and o.status = 'active')`)
    for (const { n } of fallen) for (const end of all[n - 1]?.sessions ?? []) end()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.credentialCheck), Effect.exit(check))))

  return {
    /** Calls `end` when the password is no longer valid, and again after each check until the scope closes. */
    watch: (password: MailboxPassword, end: () => void): Effect.Effect<void, never, Scope.Scope> => {
      const name = nameOf(password)
      // A new function per watch, so that each is removed separately.
      const session = () => end()
      return Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => {
            const known = watched.get(name)
            if (known === undefined) watched.set(name, { ...password, sessions: new Set([session]) })
            else known.sessions.add(session)
          }),
          () =>
            Effect.sync(() => {
              const known = watched.get(name)
              known?.sessions.delete(session)
              if (known?.sessions.size === 0) watched.delete(name)
            }),
        ),
      )
    },
  }
})

export class StandingPasswords extends Context.Service<StandingPasswords, Effect.Success<typeof make>>()(
  "@svc/cluster/credentials/StandingPasswords",
) {
  static readonly layer = Layer.effect(StandingPasswords, make)
}
