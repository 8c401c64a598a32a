/**
 * Exports of an Org's or an Identity's data. The Org's actor collects them as sealed pieces (`ExportSource`); a
 * download opens them into a zip ({@link Archive}).
 */
import type { Export } from "@svc/domain/account/OrgApi"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import type { PageRequest } from "@svc/domain/Paging"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer } from "effect"
import { commit, type Fenced } from "../../actor/Write.ts"
import { IdentityQueries } from "../../identity/IdentityQueries.ts"
import * as Cursors from "../../sealing/Cursors.ts"
import { Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"
import { Vault } from "../../vault/Vault.ts"
import * as Archive from "./Archive.ts"

interface Row {
  readonly id: string
  readonly identity_id: string | null
  readonly handle: string | null
  readonly status: Export["status"]
  readonly size: bigint | number | null
  readonly created_at: Date
  readonly expires_at: Date
}

/** Number of exports that are stored of an account, and of each Identity: each contains a copy of the mail. */
const keptAtMost = 5

/**
 * Requests an export; repeating the command returns the same export. The oldest one expires if there would be too many; the
 * actor removes it before it collects the new one.
 */
export const begin = (
  write: Fenced,
  org: string,
  request: { readonly export_id: string; readonly identity_id: string | null; readonly handle: string | null },
) => {
  const { sql, at } = write
  return Effect.asVoid(
    commit(
      write,
      sql`requested as (
        insert into export (id, org_id, identity_id, handle, created_at, expires_at)
        select ${request.export_id}::uuid, id, ${request.identity_id}::uuid, ${request.handle}::text, ${at}::timestamptz,
               ${new Date(at.getTime() + Timing.exportMillis)}::timestamptz
        from org where id = ${org} and status = 'active' and exists (select from fence)
        on conflict (id) do nothing
      ),
      surplus as (
        update export set expires_at = ${at}::timestamptz where exists (select from fence) and id in (
          select id from export
          where org_id = ${org} and identity_id is not distinct from ${request.identity_id}::uuid
            and id <> ${request.export_id}::uuid and expires_at > ${at}::timestamptz
          order by id desc offset ${keptAtMost - 1})
      )`,
    ),
  )
}

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const vault = yield* Vault
  const identities = yield* IdentityQueries
  const context = yield* Effect.context<Reads | Sealing>()

  /** Returns the condition for visible exports: an Identity Key only sees those of its own Identity. */
  const visible = (org: string, identityId: string | null) =>
    identityId === null
      ? sql`org_id = ${org} and expires_at > now()`
      : sql`org_id = ${org} and identity_id = ${identityId} and expires_at > now()`
  const columns = sql`id, identity_id, handle, status, size, created_at, expires_at`
  const view = (row: Row): Export => {
    const id = toPublic("exp_", row.id)
    return {
      id,
      status: row.status,
      identity: row.handle,
      size: row.size === null ? null : Number(row.size),
      created_at: row.created_at,
      expires_at: row.expires_at,
      download_url: row.status === "ready" ? `/api/exports/${id}/archive` : null,
    }
  }
  const missing = new NotFound({ detail: "The export does not exist." })

  const read = Effect.fn("Exports.read")(function* (org: string, identityId: string | null, id: string) {
    const uuid = fromPublic("exp_", id)
    const [row] =
      uuid === undefined
        ? []
        : yield* sql<Row>`select ${columns} from export where id = ${uuid} and ${visible(org, identityId)}`
    if (row === undefined) return yield* missing
    return { view: view(row), ref: { id: row.id, identityId: row.identity_id } }
  }, orUnavailable)

  /** Returns the Vault's names and values for a session's download. */
  const vaultValues = Effect.fnUntraced(function* (org: string) {
    const owned = yield* Cursors.all((request) => identities.list(org, request))
    const namespaces = [{ handle: null, identity: null }, ...owned.map(({ id, handle }) => ({ handle, identity: id }))]
    const lines: Array<string> = []
    for (const { handle, identity } of namespaces) {
      for (const { name } of yield* Cursors.all((request) => vault.list({ org, identity }, request))) {
        const secret = yield* Effect.option(vault.valueOnRecord({ org, identity }, name))
        if (secret._tag === "Some") lines.push(`${JSON.stringify({ identity: handle, ...secret.value })}\n`)
      }
    }
    return new TextEncoder().encode(lines.join(""))
  })

  return {
    list: (org: string, identityId: string | null, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `exports/${org}/${identityId ?? ""}`,
          request,
          (behind, atMost) => sql<Row>`
            select ${columns} from export
            where ${visible(org, identityId)} ${behind === undefined ? sql`` : sql`and id < ${behind}::uuid`}
            order by id desc limit ${atMost}`,
          ({ id }) => id,
          view,
        ),
      ),
    read: (org: string, identityId: string | null, id: string) =>
      Effect.map(read(org, identityId, id), (found) => found.view),

    /** Streams the zip; `values` adds the Vault's values. */
    archive: Effect.fn("Exports.archive")(function* (
      org: string,
      identityId: string | null,
      id: string,
      values: boolean,
    ) {
      const found = yield* read(org, identityId, id)
      if (found.view.status !== "ready") return yield* new NotFound({ detail: "The export is not ready." })
      const [row] = yield* orUnavailable(sql<{ data_key: Uint8Array }>`select data_key from org where id = ${org}`)
      const dataKey = yield* Effect.orDie(sealing.openDataKey(org, row!.data_key))
      const extra =
        values && found.view.identity === null
          ? { member: "vault_values.jsonl", bytes: yield* vaultValues(org) }
          : undefined
      return yield* Effect.provideContext(Archive.stream(org, found.ref, dataKey, extra), context)
    }),
  }
})

export class Exports extends Context.Service<Exports, Effect.Success<typeof make>>()(
  "@svc/cluster/account/exports/Exports",
) {
  static readonly layer = Layer.effect(Exports, make)
}
