/** The writes of an Identity's actor for its Tunnel: settings, the connection status and the TCP port. */
import { createHash } from "node:crypto"
import { canonical } from "@svc/domain/handles/Handle"
import { InvalidRequest } from "@svc/domain/problems/Problem"
import { defaultSettings, storedSettings, type TunnelPatch, TunnelSettings } from "@svc/domain/tunnel/Tunnel"
import { otherSettings } from "@svc/domain/tunnel/TunnelProtocol"
import { Effect, Schema } from "effect"
import { type ActorHandlers, once } from "../actor/ActorHandlers.ts"
import { commit, type OwnIdentity, type Write } from "../actor/Write.ts"
import { auditWriteWith } from "../audit/AuditWrite.ts"
import { raise } from "../events/Raise.ts"
import type { Place, Sealing } from "../sealing/Sealing.ts"
import { announced } from "./TunnelLinks.ts"
import { freePort, type PortRange } from "./TunnelPorts.ts"

/** The part of the actor's memory with the card, whose version changes when the Tunnel begins or ceases to be locked. */
export const cachedCard = "card"

interface Change {
  readonly org_id: string
  readonly patch: TunnelPatch
  readonly if_settings?: TunnelSettings
}

export const handlers = (
  { onReady, fromOutside }: ActorHandlers,
  sealing: Sealing["Service"],
  { tunnelPorts }: { readonly tunnelPorts: PortRange },
) => ({
  PatchTunnel: onReady(
    once("PatchTunnel", (write: Write, { patch, if_settings }: Change) => change(write, patch, if_settings, sealing)),
  ),
  TunnelChanged: fromOutside(updateConnection, () => Effect.void),
  MoveTunnelPort: fromOutside(
    (write: Write, { port }: { readonly port: number }) => movePort(write, port, tunnelPorts),
    () => Effect.succeed({ port: null }),
  ),
})

const isSame = Schema.toEquivalence(TunnelSettings)

export const passwordPlace = (identity: Pick<OwnIdentity, "id" | "orgId">): Place => ({
  table: "tunnel_setting",
  column: "password_hash",
  row: identity.id,
  org: identity.orgId,
})

/** Returns the hash that an edge compares. The store contains it sealed, because a chosen password could be guessed from it. */
const passwordHash = (username: string, password: string): Uint8Array =>
  new Uint8Array(createHash("sha256").update(`${username}:${password}`).digest())

const change = Effect.fnUntraced(function* (
  write: Write,
  { basic_auth, ...patch }: TunnelPatch,
  ifSettings: TunnelSettings | undefined,
  sealing: Sealing["Service"],
) {
  const { sql, identity, at } = write
  const username =
    basic_auth === undefined ? {} : { basic_auth: basic_auth === null ? null : { username: basic_auth.username } }
  const sealed =
    basic_auth === undefined || basic_auth === null
      ? null
      : yield* Effect.orDie(
          sealing.seal(
            identity.dataKey,
            passwordPlace(identity),
            passwordHash(basic_auth.username, basic_auth.password),
          ),
        )
  // Patches run concurrently. A patch is retried if the settings have changed since it read them, so that the result of
  // both is validated.
  while (true) {
    const [row] = yield* sql<{
      settings: unknown
    }>`select settings from tunnel_setting where identity_id = ${identity.id}`
    const before = row === undefined ? defaultSettings : yield* Effect.orDie(storedSettings(row.settings))
    if (ifSettings !== undefined && !isSame(before, ifSettings)) {
      return yield* otherSettings()
    }
    const after: TunnelSettings = { ...before, ...patch, ...username }
    yield* validate(after)
    const { changed } = yield* commit<{ changed: boolean }>(
      write,
      sql`changed as (
        insert into tunnel_setting as t (identity_id, settings, password_hash)
        select ${identity.id}::uuid, ${JSON.stringify(after)}::jsonb, ${sealed}::bytea from fence
        on conflict (identity_id) do update
        set settings = excluded.settings,
            password_hash = ${basic_auth === undefined ? sql`t.password_hash` : sql`excluded.password_hash`}
        where t.settings = ${row === undefined ? null : JSON.stringify(row.settings)}::jsonb
        returning 1
      ),
      carded as (
        update card set version = version + 1, updated_at = ${at}
        where identity_id = ${identity.id} and ${(before.basic_auth === null) !== (after.basic_auth === null)}
          and exists (select from changed)
      ) ${auditWriteWith(sql, write.note, "changed")}`,
      {
        columns: sql`exists (select from changed) as changed,
          (select ${announced(sql, canonical(identity.handle))} from changed) as announced`,
      },
    )
    if (changed) {
      write.memory.delete(cachedCard)
      return
    }
  }
})

/** Rejects passwords and callers with TLS passthrough, because the edge cannot read requests then. */
const validate = ({ tls, basic_auth, callers }: TunnelSettings): Effect.Effect<void, InvalidRequest> => {
  const conflict = basic_auth !== null ? "basic_auth" : callers !== "anyone" ? "callers" : undefined
  if (tls !== "passthrough" || conflict === undefined) return Effect.void
  return Effect.fail(
    new InvalidRequest({
      detail: `A Tunnel cannot have both tls "passthrough" and ${conflict}: the edge cannot read requests without terminating TLS.`,
      errors: [
        { path: "/tls", message: `cannot be "passthrough" while ${conflict} is set` },
        { path: `/${conflict}`, message: 'cannot be set while tls is "passthrough"' },
      ],
    }),
  )
}

/** Stores whether the Identity is connected. Raises one Event per change, because only the actor writes the status. */
const updateConnection = Effect.fnUntraced(function* (write: Write) {
  const { sql, identity } = write
  const links = yield* sql`select 1 from tunnel_link where identity_id = ${identity.id} and lease_until > now() limit 1`
  const connected = links.length > 0
  yield* commit(
    write,
    sql`
    changed as (
      update identity set tunnel_connected = ${connected}
      where id = ${identity.id} and tunnel_connected <> ${connected} and exists (select from fence) returning id
    ),
    ${raise(write, "changed", connected ? "tunnel.connected" : "tunnel.disconnected", {})}`,
    { raises: true },
  )
})

/** Allots another port, because another program on the edge's host uses the current one, which is released. */
const movePort = Effect.fnUntraced(function* (write: Write, port: number, range: PortRange) {
  const { sql, identity, at } = write
  const { moved } = yield* commit<{ moved: number | null }>(
    write,
    sql`
    held as (
      select port from tunnel_port where identity_id = ${identity.id}::uuid and port = ${port} and exists (select from fence)
      for update
    ),
    free as (${freePort(sql, range, at)} and exists (select from held) order by freed_at nulls first, port limit 1 for update skip locked),
    freed as (
      update tunnel_port t set identity_id = null, freed_at = ${at} from held, free where t.port = held.port returning free.port
    ),
    allotted as (
      update tunnel_port t set identity_id = ${identity.id}::uuid from freed where t.port = freed.port returning t.port
    )`,
    {
      columns: sql`(select port from allotted) as moved,
        (select ${announced(sql, canonical(identity.handle))} from allotted) as announced`,
    },
  )
  if (moved !== null) return { port: moved }
  const [now] = yield* sql<{ port: number }>`select port from tunnel_port where identity_id = ${identity.id}`
  return { port: now === undefined || now.port === port ? null : now.port }
})
