/**
 * Whether the credentials of what lasts (streams, waits, links) still stand. What outlives its call is judged by this
 * process as a whole: one query for all credentials that somebody watches, nothing per stream. A key stands until it is
 * revoked or ends, a Grant too, a session until it is revoked or expires, and none of an Org that is being deleted does.
 * While the store is out of reach nothing is judged, and nothing new can be read from it either.
 */
import type { CredentialKind } from "@svc/domain/account/Account"
import { Context, Effect, Latch, Layer, type Scope } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

export interface Credential {
  readonly kind: CredentialKind
  readonly credentialId: string
}

interface Watched {
  readonly gone: Latch.Latch
  watchers: number
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const watched = {
    session: new Map<string, Watched>(),
    key: new Map<string, Watched>(),
    grant: new Map<string, Watched>(),
  }
  const all = [watched.session, watched.key, watched.grant]
  const mapOf = ({ kind }: Credential) =>
    kind === "session" ? watched.session : kind === "grant" ? watched.grant : watched.key

  /** Ids among these that stand no more. */
  const fallen = (sessions: ReadonlyArray<string>, keys: ReadonlyArray<string>, grants: ReadonlyArray<string>) => sql<{
    id: string
  }>`
    select id from unnest(${sessions}::uuid[]) as asked (id) where not exists (
      select from session s join org o on o.id = s.org_id
      where s.id = asked.id and s.expires_at > now() and o.status = 'active')
    union all
    select id from unnest(${keys}::uuid[]) as asked (id) where not exists (
      select from api_key k join org o on o.id = k.org_id
      where k.id = asked.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        and o.status = 'active')
    union all
    select id from unnest(${grants}::uuid[]) as asked (id) where not exists (
      select from client_grant g join org o on o.id = g.org_id
      where g.id = asked.id and g.revoked_at is null and g.expires_at > now() and o.status = 'active')`

  const check = Effect.gen(function* () {
    if (all.every((map) => map.size === 0)) return
    const [sessions, keys, grants] = [watched.session, watched.key, watched.grant].map((map) => [...map.keys()])
    for (const { id } of yield* orUnavailable(fallen(sessions!, keys!, grants!))) {
      for (const map of all) {
        map.get(id)?.gone.openUnsafe()
        map.delete(id)
      }
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.credentialCheck), Effect.exit(check))))

  return {
    /** An effect that resolves when the credential no longer stands. */
    watch: (credential: Credential): Effect.Effect<Effect.Effect<void>, never, Scope.Scope> =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const map = mapOf(credential)
            const known = map.get(credential.credentialId) ?? { gone: Latch.makeUnsafe(), watchers: 0 }
            known.watchers++
            map.set(credential.credentialId, known)
            return known
          }),
          (known) =>
            Effect.sync(() => {
              const map = mapOf(credential)
              if (--known.watchers === 0 && map.get(credential.credentialId) === known) {
                map.delete(credential.credentialId)
              }
            }),
        ),
        ({ gone }) => Effect.asVoid(gone.await),
      ),
  }
})

export class StandingCredentials extends Context.Service<StandingCredentials, Effect.Success<typeof make>>()(
  "@svc/cluster/account/StandingCredentials",
) {
  static readonly layer = Layer.effect(StandingCredentials, make)
}
