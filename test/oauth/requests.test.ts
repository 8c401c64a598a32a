/** Authorization requests and their ownership, and the consent that was given before. */
import { expect, layer } from "@effect/vitest"
import { Grants } from "@svc/cluster/oauth/Grants"
import { redirectHash } from "@svc/cluster/oauth/GrantTokens"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Layer } from "effect"
import { makeOrg, storesLayer } from "../harness/Stores.ts"

layer(Layer.provideMerge(OAuthRequests.layer, storesLayer))("Authorization request", (it) => {
  it.effect("belongs to the session that opened it; another session can neither answer nor deny it", () =>
    Effect.gen(function* () {
      const requests = yield* OAuthRequests
      const org = yield* makeOrg
      const [own, other] = [yield* makeUuidV7, yield* makeUuidV7]
      for (const id of [own, other])
        yield* Effect.flatMap(
          Writes,
          (sql) => sql`insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
          values (${id}, ${org}, sha256(${id}::text::bytea), now(), now(), now() + interval '1 day')`,
        )
      const { id } = yield* requests.open("client_id=a", own)
      expect(yield* requests.claim(id, other, undefined)).toBeUndefined()
      expect(yield* requests.close(id, other)).toBe(false)
      expect(yield* requests.claim(id, own, undefined)).toMatchObject({ id })
      expect(yield* requests.close(id, own)).toBe(true)
      expect(yield* requests.close(id, own)).toBe(false)
    }),
  )

  it.effect("belongs to the browser that brought it until a session opens it, and to that session then", () =>
    Effect.gen(function* () {
      const [requests, org, session] = [yield* OAuthRequests, yield* makeOrg, yield* makeUuidV7]
      const sql = yield* Writes
      const other = yield* makeUuidV7
      for (const id of [session, other])
        yield* sql`
          insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
          values (${id}, ${org}, sha256(${id}::text::bytea), now(), now(), now() + interval '1 day')`
      const [one, two] = [yield* requests.keep("n=1"), yield* requests.keep("n=2")]
      expect(yield* requests.isOf(one.id, one.secret)).toBe(true)
      expect(yield* requests.isOf(one.id, two.secret)).toBe(false)
      for (const secret of [undefined, two.secret])
        expect(yield* requests.claim(one.id, session, secret)).toBeUndefined()
      expect(yield* requests.claim(one.id, session, one.secret)).toEqual({ id: one.id, query: "n=1" })
      expect(yield* requests.isOf(one.id, one.secret)).toBe(false)
      expect(yield* requests.claim(one.id, other, one.secret)).toBeUndefined()
      expect(yield* requests.claim(two.id, session, two.secret)).toEqual({ id: two.id, query: "n=2" })
      expect(yield* requests.close(one.id, session)).toBe(true)
      expect(yield* requests.claim(two.id, session, undefined)).toBeDefined()
      // Nothing is left of a request that has expired.
      yield* sql`update oauth_request set expires_at = now() where id = ${two.id}`
      expect(yield* requests.claim(two.id, session, undefined)).toBeUndefined()
      expect(yield* requests.close(two.id, session)).toBe(false)
    }),
  )

  it.effect("is one of 50 that a session keeps, of which the oldest is removed for a new one", () =>
    Effect.gen(function* () {
      const requests = yield* OAuthRequests
      const [org, session] = [yield* makeOrg, yield* makeUuidV7]
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
          values (${session}, ${org}, sha256(${session}::text::bytea), now(), now(), now() + interval '1 day')`,
      )
      const opened = yield* Effect.forEach(Array.from({ length: 51 }), (_, n) => requests.open(`n=${n}`, session))
      const kept = yield* Effect.forEach(opened, ({ id }) => requests.claim(id, session, undefined))
      expect(kept.filter((one) => one !== undefined)).toHaveLength(50)
      expect(kept[0]).toBeUndefined()
    }),
  )
})

layer(Layer.provideMerge(Grants.layer, storesLayer))("Earlier consent", (it) => {
  it.effect("is that of the same client and the same redirect, whatever its port", () =>
    Effect.gen(function* () {
      const grants = yield* Grants
      const org = yield* makeOrg
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`
          insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
          values (uuidv7(), ${org}, 'oc_1', 'app', 'localhost', ${redirectHash("http://localhost:1/one")}, '', '{mail:read}',
                  now(), now() + interval '1 day')`,
      )
      const present = (client: string, redirect: string) =>
        Effect.map(grants.present(org, client, redirect), (found) => found !== undefined)
      expect(yield* present("oc_1", "http://localhost:2/one")).toBe(true)
      expect(yield* present("oc_1", "http://localhost:1/two")).toBe(false)
      expect(yield* present("oc_2", "http://localhost:1/one")).toBe(false)
    }),
  )
})
