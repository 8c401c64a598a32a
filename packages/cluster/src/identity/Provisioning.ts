/**
 * The work of the provisioning saga's four steps: Mailbox, Tunnel, A2A Card, first Identity Key. A step answers the
 * rows it makes as common table expressions; the actor commits them with the next state of the checklist, so a step is
 * done exactly when the checklist says so, and doing one again changes nothing.
 */
import { createHash } from "node:crypto"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Context, Effect, Layer, Schema } from "effect"
import type { Statement } from "effect/sql"
import { Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { Writes } from "../store/Database.ts"
import { raiseForOrg } from "../events/Raise.ts"
import { Timing } from "../Timing.ts"
import { mint, mintPassword } from "../credentials/Minting.ts"
import type { Owned } from "./Ownership.ts"

/** A try of a step failed; `message` is shown in the checklist. */
export class StepFailed extends Schema.TaggedError<StepFailed>()("StepFailed", { message: Schema.String }) {}

export interface StepRows {
  /** CTEs, each of which does nothing unless `fence` has a row. */
  readonly rows: Statement.Fragment
  /** Whether the rows were made; otherwise the step failed with `otherwise`. */
  readonly made: Statement.Fragment
  readonly otherwise: string
}

export type Step = (identity: Owned, now: Date) => Effect.Effect<StepRows, StepFailed>

/** The port through which the saga does its work. */
export class ProvisioningSteps extends Context.Service<
  ProvisioningSteps,
  { readonly mailbox: Step; readonly tunnel: Step; readonly card: Step; readonly identity_key: Step }
>()("@svc/cluster/identity/ProvisioningSteps") {
  static readonly layer = (options: { readonly tunnelPorts: { readonly first: number; readonly last: number } }) =>
    Layer.effect(
      ProvisioningSteps,
      Effect.gen(function* () {
        const sql = yield* Writes
        const sealing = yield* Sealing
        return {
          mailbox: mailbox(sql, sealing),
          tunnel: tunnel(sql, options.tunnelPorts),
          card: card(sql),
          identity_key: identityKey(sql, sealing),
        }
      }),
    )
}

const always = (sql: Sql) => sql`true`

const mailbox = (sql: Sql, sealing: Sealing["Service"]): Step =>
  Effect.fnUntraced(function* (identity, now) {
    const password = mintPassword()
    const verifier = createHash("sha256").update(password).digest()
    const sealedVerifier = yield* Effect.orDie(sealing.seal(identity.dataKey, imapVerifierPlace(identity), verifier))
    const sealedPassword = yield* Effect.orDie(
      sealing.seal(identity.dataKey, imapPasswordPlace(identity), new TextEncoder().encode(password)),
    )
    return {
      rows: sql`
        box as (
          insert into mailbox (identity_id, uid_validity, imap_verifier, created_at)
          select ${identity.id}::uuid, ${Math.floor(now.getTime() / 1000)}::int, ${sealedVerifier}::bytea, ${now}::timestamptz
          from fence
          on conflict (identity_id) do nothing
          returning identity_id
        ),
        shown as (
          insert into show_once (identity_id, imap_password) select identity_id, ${sealedPassword}::bytea from box
          on conflict (identity_id) do update set imap_password = excluded.imap_password
        )`,
      made: always(sql),
      otherwise: "",
    }
  })

/** A freed port rests this long, so that a client of its former owner does not reach a stranger (traps.md 26). */
const portRest = "30 days"

const tunnel =
  (sql: Sql, ports: { readonly first: number; readonly last: number }): Step =>
  (identity, now) =>
    Effect.succeed({
      rows: sql`
        kept as (select port from tunnel_port where identity_id = ${identity.id}::uuid),
        free as (
          select port from tunnel_port
          where identity_id is null and port between ${ports.first} and ${ports.last}
            and (freed_at is null or freed_at <= ${now}::timestamptz - ${portRest}::interval)
            and exists (select from fence) and not exists (select from kept)
          order by freed_at nulls first, port limit 1 for update skip locked
        ),
        allotted as (
          update tunnel_port t set identity_id = ${identity.id}::uuid from free where t.port = free.port returning t.port
        )`,
      made: sql`exists (select from kept) or exists (select from allotted)`,
      otherwise: "tunnel_ports_exhausted: no TCP port is free",
    })

const card =
  (sql: Sql): Step =>
  (identity, now) =>
    Effect.succeed({
      rows: sql`
        carded as (
          insert into card (identity_id, fields, version, updated_at)
          select ${identity.id}::uuid, ${JSON.stringify(cardDefaults(identity.handle))}::jsonb, 1, ${now}::timestamptz from fence
          on conflict (identity_id) do nothing
        )`,
      made: always(sql),
      otherwise: "",
    })

/** Editable card fields at birth; `interfaces` null stands for the Identity's own Tunnel (interface.md "A2A Card"). */
export const cardDefaults = (handle: string) => ({
  name: handle,
  description: "",
  version: "1.0.0",
  documentation_url: null,
  icon_url: null,
  provider: null,
  capabilities: { streaming: false, push_notifications: false, extended_agent_card: false },
  default_input_modes: ["text/plain"],
  default_output_modes: ["text/plain"],
  interfaces: null,
  skills: [],
})

/** The last step: with its commit the Identity is ready, and both secrets can be fetched for a while. */
const identityKey = (sql: Sql, sealing: Sealing["Service"]): Step =>
  Effect.fnUntraced(function* (identity, now) {
    const key = mint("identity_key")
    const keyId = yield* makeUuidV7
    const sealedKey = yield* Effect.orDie(
      sealing.seal(identity.dataKey, identityKeyPlace(identity), new TextEncoder().encode(key.token)),
    )
    return {
      rows: sql`
        present as (select 1 from api_key where identity_id = ${identity.id}::uuid and revoked_at is null),
        minted as (
          insert into api_key (id, org_id, identity_id, name, token_prefix, token_hash, created_at)
          select ${keyId}::uuid, ${identity.orgId}::uuid, ${identity.id}::uuid, ${identity.handle}::text,
                 ${key.prefix}::text, ${key.hash}::bytea, ${now}::timestamptz
          from fence where not exists (select from present)
          returning id
        ),
        shown as (
          insert into show_once (identity_id, key_id, identity_key, expires_at)
          select ${identity.id}::uuid, id, ${sealedKey}::bytea, ${new Date(now.getTime() + Timing.showOnceMillis)}::timestamptz from minted
          on conflict (identity_id) do update
          set key_id = excluded.key_id, identity_key = excluded.identity_key, expires_at = excluded.expires_at
        ),
        ${raiseForOrg(sql, "minted", {
          eventId: yield* makeUuidV7,
          type: "api_key.created",
          org: identity.orgId,
          data: {
            key_id: keyId,
            name: identity.handle,
            scope: "identity",
            identity_id: identity.id,
            handle: identity.handle,
          },
          at: now,
        })}`,
      made: always(sql),
      otherwise: "",
    }
  })

/** Where the show-once secrets are sealed; the reading side opens them by the same places. */
export const identityKeyPlace = (identity: { readonly id: string; readonly orgId: string }) => ({
  table: "show_once",
  column: "identity_key",
  row: identity.id,
  org: identity.orgId,
})
export const imapPasswordPlace = (identity: { readonly id: string; readonly orgId: string }) => ({
  table: "show_once",
  column: "imap_password",
  row: identity.id,
  org: identity.orgId,
})
export const imapVerifierPlace = (identity: { readonly id: string; readonly orgId: string }) => ({
  table: "mailbox",
  column: "imap_verifier",
  row: identity.id,
  org: identity.orgId,
})
