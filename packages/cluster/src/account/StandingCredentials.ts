/**
 * Watches the credentials of long-lived connections (streams, waits, links). One query per process checks all watched
 * credentials, so connections send no queries of their own. A key is valid until it is revoked or expires, a session likewise,
 * and a Grant as long as it allows the use, which its holder may withdraw. No credential of an Org that is being
 * deleted is valid.
 *
 * While the store is unreachable, credentials are not checked. A connection can read nothing new from the store then.
 */
import type { CredentialKind } from "@svc/domain/account/Account"
import type { Networks } from "@svc/domain/account/Networks"
import { allows, scopesOf, type ScopeName } from "@svc/domain/account/Scope"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { Context, Effect, Latch, Layer, type Scope } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface Credential {
  readonly kind: CredentialKind
  readonly credentialId: string
  /** The networks from which it may be used. Those of a Grant can change. */
  readonly networks?: Pick<Networks, "text"> | null
}

/** The use of a credential. */
interface Use {
  readonly identityId: IdentityId
  readonly scope: ScopeName
}

interface Watched {
  readonly id: string
  readonly use: Use | undefined
  readonly networks: string | null
  readonly revoked: Latch.Latch
  watchers: number
}

/** A valid Grant. */
interface GrantRow {
  readonly id: string
  readonly scopes: string
  readonly identities: ReadonlyArray<string> | null
  readonly networks: string | null
}

/** Rights of keys and sessions never change, so one watch covers all uses. */
const nameOf = ({ kind, credentialId }: Credential, use: Use | undefined) =>
  kind === "grant" && use !== undefined ? `${credentialId} ${use.identityId} ${use.scope}` : credentialId

const isAllowed = ({ scopes, identities }: GrantRow, { identityId, scope }: Use) =>
  (identities === null || identities.includes(identityId)) && allows(scopesOf(scopes), scope)

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const watched = {
    session: new Map<string, Watched>(),
    key: new Map<string, Watched>(),
    grant: new Map<string, Watched>(),
  }
  const mapOf = ({ kind }: Credential) =>
    kind === "session" ? watched.session : kind === "grant" ? watched.grant : watched.key

  /** Returns the ids that are no longer valid. */
  const fallen = (sessions: ReadonlyArray<string>, keys: ReadonlyArray<string>) => sql<{ id: string }>`
    select id from unnest(${sessions}::uuid[]) as requested (id) where not exists (
      select from session s join org o on o.id = s.org_id
      where s.id = requested.id and s.expires_at > now() and o.status = 'active')
    union all
    select id from unnest(${keys}::uuid[]) as requested (id) where not exists (
      select from api_key k join org o on o.id = k.org_id
      where k.id = requested.id and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        and o.status = 'active')`

  const grantsOf = (ids: ReadonlyArray<string>) => sql<GrantRow>`
    select g.id, array_to_string(g.scopes, ' ') as scopes, g.identities, g.networks from client_grant g join org o on o.id = g.org_id
    where g.id = any(${ids}::uuid[]) and g.revoked_at is null and g.expires_at > now() and o.status = 'active'`

  const end = (map: Map<string, Watched>, name: string) => {
    map.get(name)?.revoked.openUnsafe()
    map.delete(name)
  }

  const checkKeys = Effect.gen(function* () {
    const { session, key } = watched
    if (session.size + key.size === 0) return
    for (const { id } of yield* orUnavailable(fallen([...session.keys()], [...key.keys()]))) {
      end(session, id)
      end(key, id)
    }
  })

  const checkGrants = Effect.gen(function* () {
    // Credentials added during the query were not part of it.
    const requested = [...watched.grant]
    if (requested.length === 0) return
    const rows = yield* orUnavailable(grantsOf([...new Set(requested.map(([, { id }]) => id))]))
    const current = new Map(rows.map((row) => [row.id, row]))
    for (const [name, { id, use, networks }] of requested) {
      const row = current.get(id)
      // Whether its client is in the new networks is judged when it connects again.
      const isSame = row?.networks === networks
      if (row === undefined || !isSame || (use !== undefined && !isAllowed(row, use))) end(watched.grant, name)
    }
  })

  const check = Effect.andThen(checkKeys, checkGrants)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.credentialCheck), Effect.exit(check))))

  return {
    /** Returns an effect that resolves when the credential is no longer valid, or no longer valid for that use. */
    watch: (credential: Credential, use?: Use): Effect.Effect<Effect.Effect<void>, never, Scope.Scope> => {
      const name = nameOf(credential, use)
      return Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const map = mapOf(credential)
            const known = map.get(name) ?? {
              id: credential.credentialId,
              use,
              networks: credential.networks?.text ?? null,
              revoked: Latch.makeUnsafe(),
              watchers: 0,
            }
            known.watchers++
            map.set(name, known)
            return known
          }),
          (known) =>
            Effect.sync(() => {
              const map = mapOf(credential)
              if (--known.watchers === 0 && map.get(name) === known) map.delete(name)
            }),
        ),
        ({ revoked }) => Effect.asVoid(revoked.await),
      )
    },
  }
})

export class StandingCredentials extends Context.Service<StandingCredentials, Effect.Success<typeof make>>()(
  "@svc/cluster/account/StandingCredentials",
) {
  static readonly layer = Layer.effect(StandingCredentials, make)
}
