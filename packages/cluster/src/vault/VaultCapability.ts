/** The Vaults of an Org and its Identities. */
import { Effect } from "effect"
import { type Capability, cascades, type ExportWriter, noHandlers } from "../Capability.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Vault } from "./Vault.ts"

const member = "vault.jsonl"

/** Writes the names of secrets in the Vault of the Org (`identity` is null) or of an Identity. */
const secrets = Effect.fnUntraced(function* (
  namespace: Parameters<Vault["Service"]["list"]>[0],
  identity: string | null,
  pieces: ExportWriter,
) {
  const vault = yield* Vault
  const found = yield* Cursors.all((request) => vault.list(namespace, request))
  yield* pieces.lines(
    member,
    found.map((secret) => ({ identity, ...secret })),
  )
})

export const vault = {
  name: "vault",
  handlers: noHandlers,
  work: { identity: [], org: [] },
  queries: [Vault.layer],
  exports: [
    {
      members: [member],
      once: ({ org, canonical }, pieces) =>
        canonical === null ? secrets({ org, identity: null }, null, pieces) : Effect.void,
      ofIdentity: ({ org, id, handle }, pieces) => secrets({ org, identity: id }, handle, pieces),
    },
  ],
  tables: {
    vault_secret: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from vault_secret where id in (select id from vault_secret where identity_id = ${id} limit ${limit}) returning id)
          select count(*)::int as n from gone`,
      },
      exported: member,
    },
    vault_version: cascades({ not: "a value, which only a session's download adds" }),
  },
} satisfies Capability
