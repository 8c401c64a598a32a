/** Deleting an Identity: what is removed and what stays. Also its initial secrets and how long they are available. */
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Identities } from "@svc/cluster/actor/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Connectors } from "@svc/cluster/connectors/Connectors"
import * as Teardown from "@svc/cluster/identity/Teardown"
import { Unhurried, Writes } from "@svc/cluster/store/Database"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { act, noKey } from "../audit/Acts.ts"
import { actors, identityOf, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { databaseLayer } from "../harness/Database.ts"
import { everything, fill, filledId } from "../harness/GeneratedRows.ts"
import { setClockToNow, rows } from "../harness/Stores.ts"

const secretsOf = (org: string, handle: string) =>
  Effect.flatMap(IdentityQueries, (queries) => queries.secrets(org, handle))

const keyOf = Effect.fnUntraced(function* (org: string, handle: string) {
  const { identity_key } = yield* secretsOf(org, handle)
  if (identity_key === undefined) throw new Error("the key was not shown")
  return identity_key
})

const caller = (key: string) => Effect.flatMap(CredentialLookup, (lookup) => lookup.resolve(Redacted.make(key)))

const portOf = (identity: string) =>
  Effect.map(
    rows((sql) => sql<{ port: number }>`select port from tunnel_port where identity_id = ${identity}`),
    ([row]) => row?.port,
  )

/** Deletes the Identity and waits until its row is removed. */
const deleteAndWait = Effect.fnUntraced(function* (org_id: string, handle: string, actor: Actor) {
  yield* ask(actor.Delete({ org_id }))
  yield* waitUntil(identityOf(handle), (row) => row === undefined, 0)
})
type Actor = Effect.Success<ReturnType<typeof makeIdentity>>["actor"]

layer(actors())("a deleted Identity", (it) => {
  it.effect("loses its keys before a later step fails", () =>
    Effect.gen(function* () {
      const ada = newHandle("ada")
      const org_id = yield* makeOrg
      const { id, actor } = yield* makeIdentity(org_id, ada)
      const key = yield* keyOf(org_id, ada)
      expect(yield* caller(key)).toMatchObject({ kind: "identity_key", identities: [{ id }] })
      const sql = yield* Unhurried
      yield* sql.unsafe(`
        create or replace function stuck() returns trigger language plpgsql as $$ begin raise exception 'the card is stuck'; end $$`)
      yield* sql.unsafe(`create or replace trigger stuck before delete on card for each row execute function stuck()`)
      yield* ask(actor.Delete({ org_id }))
      const state = yield* waitUntil(identityOf(ada), (row) => row?.saga.steps[2]?.status === "retrying", 0)
      expect(state.value!.saga.steps.map(({ name, status }) => [name, status])).toEqual([
        ["identity_keys", "done"],
        ["connectors", "done"],
        ["card", "retrying"],
        ["tunnel", "pending"],
        ["mailbox", "pending"],
      ])
      // A repeated command does not start the deletion again, and has its audit record.
      const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org_id, { requestId: "again" })))
      yield* ask(actor.Delete({ org_id }, onBehalfOf(system, undefined, note)))
      expect((yield* identityOf(ada))!.saga).toMatchObject({
        steps: [{ status: "done" }, { status: "done" }, {}, {}, {}],
      })
      expect(yield* rows((sql) => sql`select request_id from audit where org_id = ${org_id}`)).toEqual([
        { request_id: "again" },
      ])
      expect(yield* Effect.flip(caller(key))).toMatchObject({ code: "unauthenticated" })
      expect(yield* rows((sql) => sql`select 1 from show_once where identity_id = ${id}`)).toEqual([])
      const events = rows((sql) => sql<{ type: string }>`select type from event where org_id = ${org_id} order by seq`)
      expect((yield* events).map(({ type }) => type)).toContain("api_key.revoked")
      yield* sql.unsafe(`drop trigger stuck on card`)
      yield* waitUntil(identityOf(ada), (row) => row === undefined)
      expect((yield* events).at(-1)).toEqual({ type: "identity.deleted" })
    }),
  )

  it.effect("ends the Grants for it alone, and is removed from the other Grants of its account", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const [barbara, other] = [newHandle("barbara"), newHandle("other")]
      const { id, actor } = yield* makeIdentity(org_id, barbara)
      const kept = (yield* makeIdentity(org_id, other)).id
      const sql = yield* Writes
      const before = new Date(0)
      for (const [name, identities, revoked] of [
        ["alone", [id], null],
        ["both", [id, kept], null],
        ["other", [kept], null],
        ["everything", null, null],
        ["revoked", [id], before],
      ] as const) {
        yield* sql`
          insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, identities,
                                    created_at, expires_at, revoked_at, reason)
          values (${yield* makeUuidV7}, ${org_id}, ${name}, ${name}, 'localhost', '', '', '{mail:read}', ${identities}::uuid[],
                  now(), 'infinity', ${revoked}, ${revoked === null ? null : "holder"})`
      }
      yield* deleteAndWait(org_id, barbara, actor)
      const grants = yield* rows(
        (sql) => sql<{ name: string }>`
          select client_name as name, identities, reason, revoked_at = ${before} as before from client_grant
          where org_id = ${org_id} order by 1`,
      )
      expect(grants).toMatchObject([
        { name: "alone", reason: "account", before: false },
        { name: "both", identities: [kept], reason: null },
        { name: "everything", identities: null, reason: null },
        { name: "other", identities: [kept], reason: null },
        { name: "revoked", reason: "holder", before: true },
      ])
      const told = yield* rows(
        (sql) => sql`
          select data ->> 'client_name' as name from event where org_id = ${org_id} and type = 'grant.revoked'`,
      )
      expect(told).toEqual([{ name: "alone" }])
    }),
  )

  it.effect("leaves its Handle taken and counts against the quota", () =>
    Effect.gen(function* () {
      const grace = newHandle("grace")
      const org_id = yield* makeOrg
      const { actor } = yield* makeIdentity(org_id, grace)
      for (const [org, handle] of [
        [org_id, newHandle("nobody")],
        [yield* makeOrg, grace],
      ] as const) {
        expect(yield* Effect.flip(secretsOf(org, handle))).toMatchObject({ code: "not_found" })
      }
      yield* deleteAndWait(org_id, grace, actor)
      expect(yield* Effect.flip(makeIdentity(org_id, grace))).toMatchObject({ code: "handle_taken" })
      expect(yield* rows((sql) => sql`select identities_created from org where id = ${org_id}`)).toEqual([
        { identities_created: 1 },
      ])
    }),
  )
})

layer(actors({ limits: { identityQuota: 2 } }))("an Org's quota of Identities", (it) => {
  it.effect("is never restored by a deletion, and does not count rejected Handles", () =>
    Effect.gen(function* () {
      const [ada, grace, edsger] = [newHandle("ada"), newHandle("grace"), newHandle("edsger")]
      const [org_id, other] = [yield* makeOrg, yield* makeOrg]
      const { actor } = yield* makeIdentity(org_id, ada)
      yield* deleteAndWait(org_id, ada, actor)
      yield* makeIdentity(org_id, grace)
      expect(yield* Effect.flip(makeIdentity(org_id, edsger))).toMatchObject({ code: "identity_quota_exhausted" })
      yield* makeIdentity(other, edsger)
    }),
  )
})

layer(actors({ ports: { first: 20_000, last: 20_001 } }))("a TCP port", (it) => {
  it.effect("is reused 30 days after its release, oldest first", () =>
    Effect.gen(function* () {
      const [adaHandle, graceHandle, edsgerHandle] = [newHandle("ada"), newHandle("grace"), newHandle("edsger")]
      yield* setClockToNow
      yield* Effect.flatMap(Writes, (sql) => sql`update tunnel_port set identity_id = null, freed_at = null`)
      const org_id = yield* makeOrg
      const [ada, grace] = [yield* makeIdentity(org_id, adaHandle), yield* makeIdentity(org_id, graceHandle)]
      const freed = yield* portOf(ada.id)
      yield* deleteAndWait(org_id, adaHandle, ada.actor)
      yield* TestClock.adjust("1 day")
      yield* deleteAndWait(org_id, graceHandle, grace.actor)
      yield* TestClock.adjust("28 days")
      yield* TestClock.adjust("23 hours")
      // A saga gives up after half a minute; then no port is called any more.
      const edsger = (yield* Identities).of(edsgerHandle)
      yield* ask(edsger.Create({ org_id, identity_id: yield* makeUuidV7, handle: edsgerHandle }))
      yield* waitUntil(identityOf(edsgerHandle), (row) => row?.status === "failed")
      yield* TestClock.adjust("1 hour")
      yield* ask(edsger.Retry({ org_id }))
      yield* waitUntil(identityOf(edsgerHandle), (row) => row?.status === "ready", 0)
      const { id } = (yield* identityOf(edsgerHandle))!
      expect(yield* portOf(id)).toBe(freed)
    }),
  )
})

layer(actors())("show-once secrets", (it) => {
  it.effect("are available for an hour after the Identity is ready", () =>
    Effect.gen(function* () {
      const ada = newHandle("ada")
      const org_id = yield* makeOrg
      yield* makeIdentity(org_id, ada)
      yield* TestClock.adjust("3599 seconds")
      const key = yield* keyOf(org_id, ada)
      yield* TestClock.adjust("1 second")
      expect(yield* secretsOf(org_id, ada)).toEqual({})
      // Unread secrets are erased, but not revoked.
      expect(yield* caller(key)).toMatchObject({ kind: "identity_key" })
    }),
  )

  it.effect("change with a rotation, get another hour, and the former key is rejected", () =>
    Effect.gen(function* () {
      const grace = newHandle("grace")
      const org_id = yield* makeOrg
      const { id, actor } = yield* makeIdentity(org_id, grace)
      const former = yield* secretsOf(org_id, grace)
      const sql = yield* Writes
      yield* sql`
        insert into api_key (id, org_id, identity_id, name, token_prefix, token_hash, created_at, scopes, expires_at, networks)
        select uuidv7(), ${org_id}, ${id}, k.*
        from (values ('full', '', '1'::bytea, now(), '*', null::timestamptz, null),
                     ('narrow', '', '2', now(), 'mail:read', null, null),
                     ('short', '', '3', now(), '*', now() + interval '1 day', null),
                     ('local', '', '4', now(), '*', null, '10.0.0.0/8')) k`
      yield* TestClock.adjust("50 minutes")
      yield* ask(actor.RotateKey({ org_id }))
      // Whatever a key with fewer rights created does not go on with the rights of the new key.
      const replaced = yield* sql<{ name: string }>`
        select name from api_key where identity_id = ${id} and revoked_at is not null and replaced_by is not null order by name = 'full'`
      expect(replaced.map(({ name }) => name)).toEqual([grace, "full"])
      yield* TestClock.adjust("59 minutes")
      const latter = yield* secretsOf(org_id, grace)
      expect(yield* Effect.flip(caller(former.identity_key!))).toMatchObject({ code: "unauthenticated" })
      expect(yield* caller(latter.identity_key!)).toMatchObject({ kind: "identity_key" })
      expect(latter.imap!.password).not.toBe(former.imap!.password)
      yield* TestClock.adjust("1 minute")
      expect(yield* secretsOf(org_id, grace)).toEqual({})
    }),
  )

  it.effect("are deleted by an acknowledgement", () =>
    Effect.gen(function* () {
      const edsger = newHandle("edsger")
      const org_id = yield* makeOrg
      const { actor } = yield* makeIdentity(org_id, edsger)
      yield* ask(actor.Acknowledge({ org_id }))
      yield* ask(actor.Acknowledge({ org_id }))
      expect(yield* secretsOf(org_id, edsger)).toEqual({})
      const sql = yield* Writes
      expect(
        yield* sql`select 1 from show_once s join identity i on i.id = s.identity_id where i.canonical = ${edsger}`,
      ).toEqual([])
    }),
  )
})

/** The services that the steps use. No Connector is connected. */
const alone = Layer.mergeAll(
  Layer.succeed(Connectors, {} as Connectors["Service"]),
  Layer.succeed(Teardown.BatchedErasure, []),
).pipe(Layer.provideMerge(databaseLayer))

layer(alone)("a step of a deletion", (it) => {
  it.effect("changes nothing once another process owns the Identity", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      yield* fill(sql)
      yield* sql`delete from connector`
      yield* sql`delete from connector_revocation`
      yield* sql`update client_grant set identities = array[${filledId}::uuid]`
      yield* sql`update export set identity_id = null`
      yield* sql`update tunnel_port set identity_id = ${filledId}`
      yield* sql`update event set identity_id = ${filledId}`
      const before = yield* everything(sql)
      const identity = { id: filledId, handle: "x1", orgId: filledId, dataKey: {} as never }
      const changed: Array<string> = []
      for (const [name, step] of Object.entries(yield* Teardown.make)) {
        const { rows } = yield* step({ sql, identity, at: new Date(0), by: system, gate: sql`fence` })
        yield* sql`with fence as (select where false), ${rows} select 1`
        expect(yield* everything(sql), name).toEqual(before)
        // The same step of the owner changes rows.
        const after = sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`set local session_replication_role = replica`
            yield* sql`with fence as (select 1), ${rows} select 1`
            if (JSON.stringify(yield* everything(sql)) !== JSON.stringify(before)) changed.push(name)
            return yield* Effect.fail("undo" as const)
          }),
        )
        expect(yield* Effect.flip(after)).toBe("undo")
      }
      expect(changed).toEqual(["identity_keys", "card", "tunnel", "mailbox"])
    }),
  )
})
