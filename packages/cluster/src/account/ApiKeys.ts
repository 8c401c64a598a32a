/** Admin Keys: minted by the account, listed, revoked at once. Identity Keys are listed and revoked here, minted by the saga. */
import type { ApiKey } from "@svc/domain/account/Account"
import type { PageRequest } from "@svc/domain/Paging"
import type { By } from "@svc/domain/account/By"
import { AccountDeleting, Conflict, NotFound } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer } from "effect"
import { mint, mintKey, revokeKeys } from "../credentials/Minting.ts"
import { ChangeFeed } from "../feed/ChangeFeed.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, Writes } from "../store/Database.ts"

type Row = Omit<ApiKey, "scope">

const view = (row: Row): ApiKey => ({
  id: row.id,
  name: row.name,
  scope: row.identity_id === null ? "org" : "identity",
  identity_id: row.identity_id,
  token_prefix: row.token_prefix,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
  revoked_at: row.revoked_at,
})

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const feed = yield* ChangeFeed
  const sealing = yield* Sealing
  const columns = reads`id, name, identity_id, token_prefix, created_at, last_used_at, revoked_at`
  const missing = Effect.fail(new NotFound({ detail: "There is no such key." }))

  return {
    /** Keys not revoked, newest first. */
    list: (org: string, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `keys/${org}`,
          request,
          (behind, atMost) => reads<Row>`
            select ${columns} from api_key
            where org_id = ${org} and revoked_at is null ${behind === undefined ? reads`` : reads`and id < ${behind}::uuid`}
            order by id desc limit ${atMost}`,
          ({ id }) => id,
          view,
        ),
      ),
    read: (org: string, id: string) =>
      orUnavailable(
        Effect.flatMap(
          reads<Row>`select ${columns} from api_key where id = ${id} and org_id = ${org} and revoked_at is null`,
          ([row]) => (row === undefined ? missing : Effect.succeed(view(row))),
        ),
      ),
    /** A new Admin Key; its plaintext is in this answer only. */
    create: Effect.fn("ApiKeys.create")(function* (org: string, id: string, name: string, by: By) {
      const minted = mint("admin_key")
      const at = new Date(yield* Clock.currentTimeMillis)
      const key = { id, name, minted, identity: null }
      const [row] = yield* writes<Row>`
        with live as (select id from org where id = ${org} and status = 'active' for share),
        ${mintKey({ sql: writes, org, at, by }, writes`live`, key)}
        select ${columns} from minted`.pipe(
        // The same request again: what it made cannot be shown twice.
        Effect.catchIf(
          (error) => error.reason._tag === "UniqueViolation",
          () => new Conflict({ detail: "The key was made by this request before; its plaintext was in that answer." }),
        ),
      )
      if (row === undefined) return yield* new AccountDeleting({ detail: "The account is being deleted." })
      feed.announce({ org })
      return { key: minted.token, api_key: view(row) }
    }, orUnavailable),
    /** Stops authenticating at once; repeating is a no-op. */
    revoke: Effect.fn("ApiKeys.revoke")(function* (org: string, id: string, by: By) {
      const at = new Date(yield* Clock.currentTimeMillis)
      const [row] = yield* writes<{ known: boolean }>`
        with known as (select 1 from api_key where id = ${id} and org_id = ${org}),
        ${revokeKeys({ sql: writes, org, at, by }, writes`id = ${id} and org_id = ${org}`)}
        select exists (select from known) as known`
      if (row?.known !== true) return yield* missing
      feed.announce({ org })
    }, orUnavailable),
  }
})

export class ApiKeys extends Context.Service<ApiKeys, Effect.Success<typeof make>>()("@svc/cluster/account/ApiKeys") {
  static readonly layer = Layer.effect(ApiKeys, make)
}
