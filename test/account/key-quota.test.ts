/** Keys of an account and of its Identities, and the limit of active keys at its boundary. */
import { expect, layer } from "@effect/vitest"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { keysAtMost } from "@svc/domain/account/KeyRights"
import { Writes } from "@svc/cluster/store/Database"
import { unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Clock, Effect } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const rights = { scopes: unlimited, expiresAt: null, networks: null }

layer(actors(), { timeout: "60 seconds" })("a key", (it) => {
  it.effect("is created and rotated once, raises Events, and is found only by its account", () =>
    Effect.gen(function* () {
      const [org, other, keys] = [yield* makeOrg, yield* makeOrg, yield* ApiKeys]
      const handle = newHandle("ada")
      const identity = { id: (yield* makeIdentity(org, handle)).id, handle }
      const first = (yield* keys.list(org, { limit: 10 })).entries
      expect(first).toMatchObject([{ name: handle, scope: "identity", identity_id: identity.id }])
      const wanted = { id: yield* makeUuidV7, name: "ci", identity: null, rights }
      const admin = yield* keys.create(org, wanted, accountHolder)
      const own = yield* keys.create(org, { ...wanted, id: yield* makeUuidV7, identity }, accountHolder)
      expect([admin.key, own.key].map((key) => key.replace(/_\w{49}$/, ""))).toEqual(["svc_admin", "svc_id"])
      expect(yield* Effect.flip(keys.create(org, wanted, accountHolder))).toMatchObject({
        code: "conflict",
        detail: expect.stringContaining("already created the key"),
      })
      const maker = (id: string) => ({ org: { id }, kind: "session", ...rights }) as never
      const [next, nextOfOwn] = [yield* makeUuidV7, yield* makeUuidV7]
      const rotated = [
        yield* keys.rotate(maker(org), admin.api_key.id, next, 60, accountHolder),
        yield* keys.rotate(maker(org), own.api_key.id, nextOfOwn, 60, accountHolder),
      ]
      expect(rotated.map(({ key }) => key.replace(/_\w{49}$/, ""))).toEqual(["svc_admin", "svc_id"])
      const again = keys.rotate(maker(org), admin.api_key.id, next, 60, accountHolder)
      expect(yield* Effect.flip(again)).toMatchObject({ detail: expect.stringContaining("already rotated the key") })
      const events = yield* rows(
        (sql) => sql<{ data: object }>`
          select data from event where org_id = ${org} and type = 'api_key.rotated' order by seq`,
      )
      expect(events.map(({ data }) => data)).toMatchObject([
        { key_id: admin.api_key.id, scope: "org", identity_id: null, handle: null, replaced_by: next },
        { key_id: own.api_key.id, scope: "identity", identity_id: identity.id, handle, replaced_by: nextOfOwn },
      ])
      const page = yield* keys.list(org, { limit: 2 })
      const rest = yield* keys.list(org, { limit: 10, cursor: page.next_cursor! })
      const listed = [nextOfOwn, next, own.api_key.id, admin.api_key.id, first[0]!.id]
      expect([...page.entries, ...rest.entries].map(({ id }) => id)).toEqual(listed)
      expect((yield* keys.list(other, { limit: 10 })).entries).toEqual([])
      for (const call of [
        keys.read(other, next),
        keys.revoke(other, next, accountHolder),
        keys.rotate(maker(other), next, yield* makeUuidV7, 60, accountHolder),
      ])
        expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      expect(yield* keys.read(org, next)).toMatchObject({ id: next, name: "ci" })
      expect([
        yield* keys.ownerOf(org, nextOfOwn),
        yield* keys.ownerOf(other, nextOfOwn),
        yield* keys.ownerOf(org, next),
      ]).toEqual([identity, undefined, undefined])
      yield* keys.revoke(org, next, accountHolder)
      yield* keys.revoke(org, next, accountHolder)
      for (const call of [keys.read(org, next), keys.rotate(maker(org), next, yield* makeUuidV7, 60, accountHolder)])
        expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      expect((yield* keys.list(org, { limit: 10 })).entries.map(({ id }) => id)).not.toContain(next)
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("the key quota of an account", (it) => {
  it.effect("is exact and counts neither expired nor revoked keys", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      const keys = yield* ApiKeys
      const create = Effect.flatMap(makeUuidV7, (id) =>
        keys.create(org, { id, name: "ci", identity: null, rights }, accountHolder),
      )
      const { api_key } = yield* create
      /** Creates that many copies of the first key. */
      const more = (count: number, change: string) =>
        Effect.flatMap(Writes, (sql) =>
          sql.unsafe(
            `insert into api_key select (jsonb_populate_record(k, jsonb_build_object('id', gen_random_uuid(),
               'token_hash', '\\x' || md5(random()::text || n)) || ${change})).* from api_key k, generate_series(1, ${count}) n
             where k.id = '${api_key.id}'`,
          ),
        )
      yield* more(5, `jsonb_build_object('expires_at', '1970-01-01T00:00:00Z')`)
      yield* more(5, `jsonb_build_object('revoked_at', now())`)
      yield* more(keysAtMost - 2, `'{}'::jsonb`)
      yield* create
      expect(yield* Effect.flip(create)).toMatchObject({ code: "key_quota_exhausted" })
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* Effect.flatMap(Writes, (sql) => sql`update api_key set expires_at = ${now} where id = ${api_key.id}`)
      yield* create
      expect(yield* Effect.flip(create)).toMatchObject({ code: "key_quota_exhausted" })
    }),
  )
})
