/** Revocation reaches what lasts. */
import { expect, layer } from "@effect/vitest"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import * as Stores from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { databaseLayer } from "../harness/Database.ts"
import { makeOrg } from "../harness/Events.ts"

const services = StandingCredentials.layer.pipe(Layer.provideMerge(databaseLayer))

const makeKey = Effect.fnUntraced(function* (org: string) {
  const sql = yield* Stores.Writes
  const id = yield* makeUuidV7
  yield* sql`insert into api_key (id, org_id, name, token_prefix, token_hash, created_at)
    values (${id}, ${org}, 'key', 'svc_', ${new TextEncoder().encode(id)}, now())`
  return { kind: "admin_key" as const, credentialId: id }
})
const makeSession = Effect.fnUntraced(function* (org: string, hours = 1) {
  const sql = yield* Stores.Writes
  const id = yield* makeUuidV7
  yield* sql`insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${id}, ${org}, ${new TextEncoder().encode(id)}, now(), now(), now() + ${hours} * interval '1 hour')`
  return { kind: "session" as const, credentialId: id }
})

layer(services, { excludeTestServices: true, timeout: "60 seconds" })("a credential that is watched", (it) => {
  it.effect("falls when it is revoked, deleted, expired or its account is being deleted; others stand", () =>
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      const standing = yield* StandingCredentials
      const [org, leaving] = [yield* makeOrg, yield* makeOrg]
      const [revoked, ended] = [yield* makeKey(org), yield* makeSession(org)]
      const watched = yield* Effect.forEach(
        [revoked, revoked, ended, yield* makeSession(org, -1), yield* makeKey(leaving), yield* makeSession(leaving)],
        standing.watch,
      )
      const others = yield* Effect.forEach([yield* makeKey(org), yield* makeSession(org)], standing.watch)
      const standingStill = yield* Effect.forkChild(Effect.raceAllFirst(others))
      yield* sql`update api_key set revoked_at = now() where id = ${revoked.credentialId}`
      yield* sql`delete from session where id = ${ended.credentialId}`
      yield* sql`update org set status = 'deleting' where id = ${leaving}`
      yield* Effect.forEach(watched, (gone) => gone, { discard: true })
      expect(standingStill.pollUnsafe()).toBe(undefined)
      yield* Fiber.interrupt(standingStill)
    }),
  )

  it.effect("is watched as long as one watcher is there", () =>
    Effect.gen(function* () {
      const sql = yield* Stores.Writes
      const standing = yield* StandingCredentials
      const key = yield* makeKey(yield* makeOrg)
      const scope = yield* Scope.make()
      yield* Scope.provide(standing.watch(key), scope)
      const gone = yield* standing.watch(key)
      yield* Scope.close(scope, Exit.void)
      yield* sql`update api_key set revoked_at = now() where id = ${key.credentialId}`
      yield* gone
    }),
  )
})
