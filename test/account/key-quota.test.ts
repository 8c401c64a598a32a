/** The limit of active keys, at its boundary. */
import { expect, layer } from "@effect/vitest"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { keysAtMost } from "@svc/domain/account/KeyRights"
import { Writes } from "@svc/cluster/store/Database"
import { unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import { actors, makeOrg } from "../harness/Actors.ts"
import { accountHolder } from "../harness/Stores.ts"

const rights = { scopes: unlimited, expiresAt: null, networks: null }

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
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`update api_key set expires_at = '1970-01-01T00:00:00Z' where id = ${api_key.id}`,
      )
      yield* create
      expect(yield* Effect.flip(create)).toMatchObject({ code: "key_quota_exhausted" })
    }),
  )
})
