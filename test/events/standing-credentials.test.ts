/** Revoking a credential ends connections and waits that were opened with it. */
import { expect, layer } from "@effect/vitest"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import * as Stores from "@svc/cluster/store/Database"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { databaseLayer } from "../harness/Database.ts"
import { makeOrg } from "../harness/Events.ts"

const services = StandingCredentials.layer.pipe(Layer.provideMerge(databaseLayer))

/** Creates an API key that expires in `hours`, or never if `hours` is null. */
const makeKey = Effect.fnUntraced(function* (org: string, hours: number | null = null) {
  const sql = yield* Stores.Writes
  const id = yield* makeUuidV7
  yield* sql`insert into api_key (id, org_id, name, token_prefix, token_hash, created_at, expires_at)
    values (${id}, ${org}, 'key', 'svc_', ${new TextEncoder().encode(id)}, now(), now() + ${hours}::int * interval '1 hour')`
  return { kind: "admin_key" as const, credentialId: id }
})
const makeSession = Effect.fnUntraced(function* (org: string, hours = 1) {
  const sql = yield* Stores.Writes
  const id = yield* makeUuidV7
  yield* sql`insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${id}, ${org}, ${new TextEncoder().encode(id)}, now(), now(), now() + ${hours} * interval '1 hour')`
  return { kind: "session" as const, credentialId: id }
})

const makeGrant = Effect.fnUntraced(function* (org: string, scopes: string, identities: ReadonlyArray<string> | null) {
  const sql = yield* Stores.Writes
  const id = yield* makeUuidV7
  yield* sql`insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes,
      identities, created_at, expires_at)
    values (${id}, ${org}, ${id}, 'app', 'localhost', ''::bytea, '', string_to_array(${scopes}, ' '),
      ${identities}::uuid[], now(), now() + interval '1 hour')`
  return { kind: "grant" as const, credentialId: id }
})

layer(services, { excludeTestServices: true, timeout: "60 seconds" })("a credential that is watched", (it) => {
  it.effect("ends when it is revoked, deleted or expired, or its account is being deleted; others remain", () =>
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      const standing = yield* StandingCredentials
      const [org, leaving] = [yield* makeOrg, yield* makeOrg]
      const [revoked, ended] = [yield* makeKey(org), yield* makeSession(org)]
      const watched = yield* Effect.forEach(
        [
          revoked,
          revoked,
          ended,
          yield* makeSession(org, -1),
          yield* makeKey(org, -1),
          yield* makeKey(leaving),
          yield* makeSession(leaving),
        ],
        (one) => standing.watch(one),
      )
      const others = yield* Effect.forEach(
        [yield* makeKey(org), yield* makeKey(org, 1), yield* makeSession(org)],
        (one) => standing.watch(one),
      )
      const standingStill = yield* Effect.forkChild(Effect.raceAllFirst(others))
      yield* sql`update api_key set revoked_at = now() where id = ${revoked.credentialId}`
      yield* sql`delete from session where id = ${ended.credentialId}`
      yield* sql`update org set status = 'deleting' where id = ${leaving}`
      yield* Effect.forEach(watched, (withdrawn) => withdrawn, { discard: true })
      expect(standingStill.pollUnsafe()).toBe(undefined)
      yield* Fiber.interrupt(standingStill)
    }),
  )

  it.effect("of a Grant ends for the access that was withdrawn, and remains for the rest", () =>
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      const standing = yield* StandingCredentials
      const org = yield* makeOrg
      const [ada, bob] = [(yield* makeUuidV7) as IdentityId, (yield* makeUuidV7) as IdentityId]
      const reads = (identityId: IdentityId) => ({ identityId, scope: "mail:read" as const })
      const both = "mail:send card:read"
      const fewer = yield* makeGrant(org, both, [ada, bob])
      const narrower = yield* makeGrant(org, both, null)
      const [revoked, ended] = [yield* makeGrant(org, both, null), yield* makeGrant(org, both, null)]
      const leaving = yield* makeOrg
      const withdrawn = [
        yield* standing.watch(yield* makeGrant(leaving, both, null), reads(ada)),
        yield* standing.watch(fewer, reads(bob)),
        yield* standing.watch(narrower, reads(ada)),
        yield* standing.watch(revoked, reads(ada)),
        yield* standing.watch(ended),
      ]
      const others = [
        yield* standing.watch(fewer, reads(ada)),
        yield* standing.watch(narrower, { identityId: ada, scope: "card:read" }),
        yield* standing.watch(yield* makeGrant(org, both, null)),
      ]
      const standingStill = yield* Effect.forkChild(Effect.raceAllFirst(others))
      yield* sql`update client_grant set identities = ${[ada]}::uuid[] where id = ${fewer.credentialId}`
      yield* sql`update client_grant set scopes = '{card:read}' where id = ${narrower.credentialId}`
      yield* sql`update client_grant set revoked_at = now() where id = ${revoked.credentialId}`
      yield* sql`update client_grant set expires_at = now() where id = ${ended.credentialId}`
      yield* sql`update org set status = 'deleting' where id = ${leaving}`
      yield* Effect.forEach(withdrawn, (one) => one, { discard: true })
      expect(standingStill.pollUnsafe()).toBe(undefined)
      yield* Fiber.interrupt(standingStill)
    }),
  )

  it.effect("is watched as long as it has a watcher", () =>
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      const standing = yield* StandingCredentials
      const org = yield* makeOrg
      const [key, session] = [yield* makeKey(org), yield* makeSession(org)]
      const scope = yield* Scope.make()
      yield* Scope.provide(standing.watch(key), scope)
      const withdrawn = [yield* standing.watch(key), yield* standing.watch(session)]
      yield* Scope.close(scope, Exit.void)
      yield* sql`update api_key set revoked_at = now() where id = ${key.credentialId}`
      yield* withdrawn[0]!
      yield* sql`delete from session where id = ${session.credentialId}`
      yield* withdrawn[1]!
    }),
  )
})
