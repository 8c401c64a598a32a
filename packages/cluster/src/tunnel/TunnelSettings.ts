/** Changing the settings of a Tunnel: the write an Identity's actor makes for it. */
import { createHash } from "node:crypto"
import { defaultSettings, type TunnelPatch, TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { Effect, Schema } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { committed, type Owned, type Written } from "../identity/Ownership.ts"
import { type Place, Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { told } from "./TunnelLinks.ts"

const decode = Schema.decodeUnknownEffect(TunnelSettings)

export const passwordPlace = (identity: Pick<Owned, "id" | "orgId">): Place => ({
  table: "tunnel_setting",
  column: "password_hash",
  row: identity.id,
  org: identity.orgId,
})

/** What an edge compares: sealed where it is stored, since a password that a person chose may be guessed from a hash. */
export const passwordHash = (username: string, password: string): Uint8Array =>
  new Uint8Array(createHash("sha256").update(`${username}:${password}`).digest())

export const patch = Effect.fnUntraced(function* (
  sql: Sql,
  identity: Owned,
  canonical: string,
  fence: Statement.Fragment,
  { basic_auth, ...change }: TunnelPatch,
): Effect.fn.Return<Written<void> | undefined, SqlError.SqlError, Sealing> {
  const sealing = yield* Sealing
  const [row] = yield* sql<{
    settings: unknown
  }>`select settings from tunnel_setting where identity_id = ${identity.id}`
  const before = row === undefined ? defaultSettings : yield* Effect.orDie(decode(row.settings))
  const after: TunnelSettings = {
    ...before,
    ...change,
    ...(basic_auth === undefined ? {} : { basic_auth: basic_auth === null ? null : { username: basic_auth.username } }),
  }
  const sealed =
    basic_auth === undefined || basic_auth === null
      ? null
      : yield* sealing.seal(
          identity.dataKey,
          passwordPlace(identity),
          passwordHash(basic_auth.username, basic_auth.password),
        )
  const [written] = yield* sql<{ owned: boolean }>`
    with ${fence}, changed as (
      insert into tunnel_setting as t (identity_id, settings, password_hash)
      select ${identity.id}::uuid, ${JSON.stringify(after)}::jsonb, ${sealed}::bytea from fence
      on conflict (identity_id) do update
      set settings = excluded.settings,
          password_hash = ${basic_auth === undefined ? sql`t.password_hash` : sql`excluded.password_hash`}
      returning 1
    )
    select exists (select from fence) as owned, (select ${told(sql, canonical)} from changed) as told`
  return committed(written, undefined)
})
