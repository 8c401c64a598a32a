/** Writing to the Vault of an account or Identity that is being deleted is rejected and stores nothing. */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { Vault } from "@svc/cluster/vault/Vault"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { actors, makeOrg, waitUntil } from "../harness/Actors.ts"

const always = { ifVersion: null, ifAbsent: false, ifPresent: false }
const storedSecrets = Effect.flatMap(Reads, (sql) =>
  Effect.map(
    sql<{ id: IdentityId; status: string }>`select id, status from identity where canonical = 'ada'`,
    ([row]) => row,
  ),
)

layer(actors())("a secret", (it) => {
  it.effect("is not written for an Identity or an account that is being deleted", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* ask((yield* Identities).of("ada").Create({ org_id: org, identity_id: yield* makeUuidV7, handle: "ada" }))
      const { value } = yield* waitUntil(storedSecrets, (row) => row?.status === "ready")
      const vault = yield* Vault
      const put = (identity: IdentityId | null) => vault.put({ org, identity }, "x", { value: "y" }, always)
      const sql = yield* Writes
      yield* sql`update identity set status = 'deleting' where id = ${value!.id}`
      expect(yield* Effect.flip(put(value!.id))).toMatchObject({ code: "identity_not_ready" })
      expect((yield* put(null)).created).toBe(true)
      yield* sql`update org set status = 'deleting' where id = ${org}`
      expect(yield* Effect.flip(put(null))).toMatchObject({ code: "account_deleting" })
      expect(yield* sql`select version from vault_secret`).toEqual([{ version: 1 }])
    }).pipe(Effect.provide(Vault.layer)),
  )
})
