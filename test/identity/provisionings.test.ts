/** Identities that are provisioned in one statement: each succeeds or fails independently. */
import { identityKeyPlace, imapPasswordPlace } from "@svc/cluster/credentials/ShowOnce"
import { sha256Hex } from "@svc/cluster/credentials/CredentialMint"
import * as Provisioning from "@svc/cluster/identity/Provisioning"
import * as ProvisioningBatch from "@svc/cluster/identity/ProvisioningBatch"
import type { Part, StepRows } from "@svc/cluster/saga/Step"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { system } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { sagaSteps } from "@svc/domain/identity/Identity"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { actors } from "../harness/Actors.ts"
import { afterwards } from "../harness/Afterwards.ts"
import { newHandle } from "../harness/Client.ts"
import { rows } from "../harness/Stores.ts"

const ports = { first: 20_000, last: 20_008 }

/** Releases all ports, and creates an Org. */
const makeOwner = Effect.gen(function* () {
  const [sql, sealing] = [yield* Writes, yield* Sealing]
  yield* sql`update tunnel_port set identity_id = null`
  const orgId = yield* makeUuidV7
  const { dataKey, sealed } = yield* sealing.makeDataKey(orgId)
  yield* sql`
    insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
    values (${orgId}, ${`${orgId}@example.org`}, 'en', '1', now(), ${sealed}, now())`
  return { orgId, dataKey }
})

/** Creates an Identity and returns its provisioning as its actor would request it, `epochs` after the latest claim. */
const createIdentity = Effect.fnUntraced(function* (
  owner: Effect.Success<typeof makeOwner>,
  stem: string,
  { epochs = 0, status = "provisioning" }: { readonly epochs?: number; readonly status?: string } = {},
) {
  const sql = yield* Writes
  const id = yield* makeUuidV7
  const handle = newHandle(stem)
  const at = new Date()
  yield* sql`insert into actor (kind, id, epoch) values ('Identity', ${handle}, 1)`
  yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${owner.orgId}, now())`
  yield* sql`
    insert into identity (id, canonical, handle, org_id, status, saga, saga_due_at, created_at)
    values (${id}, ${handle}, ${handle}, ${owner.orgId}, ${status}, '{}', now(), now())`
  const identity = { id, handle, ...owner }
  const steps = yield* Provisioning.ProvisioningSteps
  const made: ReadonlyArray<StepRows> = yield* Effect.forEach(sagaSteps.provisioning, (name) =>
    steps[name]({ sql, identity, at, by: system, gate: sql`unprovisioned` }),
  )
  let due = 0
  const provisioning: ProvisioningBatch.Provisioning = {
    write: {
      sql,
      claim: { kind: "Identity", id: handle, epoch: 1 + epochs },
      fence: sql``,
      at,
      by: system,
      due: () => due++,
      memory: new Map(),
      identity,
    },
    parts: made.flatMap(({ part }): ReadonlyArray<Part> => (part === undefined ? [] : [part])),
    saga: JSON.stringify({ of: handle }),
  }
  return { identity, provisioning, due: () => due }
})
type Born = Effect.Success<ReturnType<typeof createIdentity>>

/** Runs the provisionings in one turn of the event loop, so that they share a statement. */
const together = (...all: ReadonlyArray<Pick<Born, "provisioning">>) =>
  Effect.flatMap(Effect.service(ProvisioningBatch.ProvisioningBatch), ({ finish }) =>
    Effect.forEach(all, ({ provisioning }) => Effect.exit(finish(provisioning)), { concurrency: "unbounded" }),
  )

const outcome = (exit: Exit.Exit<boolean, { readonly _tag: string }>) =>
  Exit.match(exit, {
    onSuccess: (moved) => (moved ? "ready" : "left"),
    onFailure: ({ reasons: [reason] }) => (reason?._tag === "Fail" ? reason.error._tag : "defect"),
  })

/** Returns what an Identity has, and the transaction in which it became ready. */
const has = ({ identity: { id } }: Born) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{
        status: string
        saga: unknown
        due: Date | null
        xmin: string
        folders: number
        subscriptions: number
        port: number | null
        card: string | null
        hash: string | null
        identity_key: Uint8Array | null
        imap_password: Uint8Array | null
        told: ReadonlyArray<string> | null
      }>`
        select i.status, i.saga, i.saga_due_at as due, i.xmin::text as xmin, p.port, c.fields ->> 'name' as card, encode(k.token_hash, 'hex') as hash,
          s.identity_key, s.imap_password,
          (select count(*)::int from folder f join mailbox m using (identity_id)
           where f.identity_id = i.id and f.uid_validity <= m.uid_validity) as folders,
          (select count(*)::int from folder_subscription where identity_id = i.id) as subscriptions,
          (select array_agg(type order by seq) from event
           where identity_id = i.id or data ->> 'identity_id' = i.id::text) as told
        from identity i left join tunnel_port p on p.identity_id = i.id left join card c on c.identity_id = i.id
        left join api_key k on k.identity_id = i.id and k.name = i.handle
        left join show_once s on s.identity_id = i.id and s.key_id = k.id and s.expires_at > now()
        where i.id = ${id}`,
      ([row]) => row!,
    ),
  )

const firstOf = (orgId: string) =>
  rows((sql) => sql<{ first: string | null }>`select first_ready_identity as first from org where id = ${orgId}`)

layer(
  Layer.mergeAll(ProvisioningBatch.layer, Provisioning.ProvisioningSteps.layer({ tunnelPorts: ports })).pipe(
    Layer.provideMerge(actors({ ports })),
  ),
  { timeout: "60 seconds" },
)("Identities provisioned at the same time", (it) => {
  it.effect("become ready in one commit, each with its own rows", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* makeOwner, yield* makeOwner]
      const sealing = yield* Sealing
      const all = [
        yield* createIdentity(one, "ada"),
        yield* createIdentity(other, "grace"),
        yield* createIdentity(one, "edsger"),
      ]
      const [ada, grace] = all as [Born, Born, Born]
      yield* Effect.flatMap(
        Writes,
        (sql) => sql`
          insert into webhook (id, identity_id, url, event_types, status, created_at, version)
          values (uuidv7(), ${grace.identity.id}::uuid, 'https://receiver.example/', '{*}', 'active', now(), 1)`,
      )
      expect((yield* together(...all)).map(outcome)).toEqual(["ready", "ready", "ready"])
      const got = yield* Effect.forEach(all, has)
      expect(new Set(got.map(({ xmin }) => xmin)).size).toBe(1)
      expect(new Set(got.map(({ port }) => port)).size).toBe(3)
      for (const [index, { identity }] of all.entries()) {
        const { hash, identity_key, imap_password, ...row } = got[index]!
        expect(row).toMatchObject({
          status: "ready",
          saga: { of: identity.handle },
          due: null,
          folders: 5,
          subscriptions: 5,
          port: expect.any(Number),
          card: identity.handle,
          told: ["identity.ready", "api_key.created"],
        })
        // The secret is sealed for this Identity, and the stored hash is the hash of the key.
        const token = yield* sealing.open(identity.dataKey, identityKeyPlace(identity), identity_key!)
        expect(sha256Hex(new TextDecoder().decode(token))).toBe(hash)
        const password = yield* sealing.open(identity.dataKey, imapPasswordPlace(identity), imap_password!)
        // 32 letters of an alphabet of 32 have 160 bits.
        expect(new TextDecoder().decode(password)).toMatch(/^(?:[a-km-np-z2-9]{8}-){3}[a-km-np-z2-9]{8}$/)
      }
      expect(all.map(({ due }) => due())).toEqual([0, 1, 0])
      expect(yield* firstOf(one.orgId)).toEqual([{ first: ada.identity.id }])
      expect(yield* firstOf(other.orgId)).toEqual([{ first: grace.identity.id }])
      // A later Identity is not the first one of its Org.
      expect((yield* together(yield* createIdentity(one, "later"))).map(outcome)).toEqual(["ready"])
      expect(yield* firstOf(one.orgId)).toEqual([{ first: ada.identity.id }])
    }),
  )

  it.effect("get no rows if the ownership was lost or the Identity is being deleted", () =>
    Effect.gen(function* () {
      const owner = yield* makeOwner
      const all = [
        yield* createIdentity(owner, "moved", { epochs: -1 }),
        yield* createIdentity(owner, "going", { status: "deleting" }),
        yield* createIdentity(owner, "whole"),
      ]
      expect((yield* together(...all)).map(outcome)).toEqual(["FenceLost", "left", "ready"])
      const [moved, going, complete] = yield* Effect.forEach(all, has)
      const nothing = { folders: 0, port: null, card: null, hash: null, told: null }
      expect(moved).toMatchObject({ status: "provisioning", ...nothing })
      expect(going).toMatchObject({ status: "deleting", ...nothing })
      expect(complete).toMatchObject({ status: "ready", folders: 5 })
    }),
  )

  it.effect("get no rows if the deletion of the Identity commits meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const owner = yield* makeOwner
      const [going, complete] = [yield* createIdentity(owner, "going"), yield* createIdentity(owner, "whole")]
      const exits = yield* afterwards(
        sql`update identity set status = 'deleting' where id = ${going.identity.id}`,
        together(going, complete),
      )
      expect(exits.map(outcome)).toEqual(["left", "ready"])
      expect(yield* has(going)).toMatchObject({ status: "deleting", folders: 0, port: null, card: null, told: null })
    }),
  )

  it.effect("are provisioned one by one if the rows of one cannot be written", () =>
    Effect.gen(function* () {
      const owner = yield* makeOwner
      const [good, bad, last] = [
        yield* createIdentity(owner, "good"),
        yield* createIdentity(owner, "bad"),
        yield* createIdentity(owner, "last"),
      ]
      // The last part is replaced by the key of another Identity.
      const parts = [...bad.provisioning.parts.slice(0, 3), good.provisioning.parts[3]!]
      const invalid = { provisioning: { ...bad.provisioning, parts } }
      expect((yield* together(good, invalid, last)).map(outcome)).toEqual(["ready", "SqlError", "ready"])
      expect(yield* has(bad)).toMatchObject({ status: "provisioning", folders: 0, told: null })
      expect(yield* has(last)).toMatchObject({ status: "ready", folders: 5, card: last.identity.handle })
    }),
  )

  it.effect("are skipped only if another statement holds the Org of a first Identity", () =>
    Effect.gen(function* () {
      const sql = yield* Writes
      const [held, free] = [yield* makeOwner, yield* makeOwner]
      const [late, early] = [yield* createIdentity(held, "late"), yield* createIdentity(free, "early")]
      const exits = yield* sql.withTransaction(
        Effect.andThen(sql`update org set language = 'de' where id = ${held.orgId}`, together(late, early)),
      )
      expect(exits.map(outcome)).toEqual(["left", "ready"])
      expect(yield* has(late)).toMatchObject({ status: "provisioning", folders: 0, told: null })
      expect((yield* together(late)).map(outcome)).toEqual(["ready"])
    }),
  )

  it.effect("stop at the port step if too few ports are free", () =>
    Effect.gen(function* () {
      const owner = yield* makeOwner
      const [{ n: free }] = (yield* rows(
        (sql) => sql<{ n: number }>`select count(*)::int as n from tunnel_port where identity_id is null`,
      )) as [{ n: number }]
      const all = yield* Effect.forEach([..."pqrstuvwxyz"].slice(0, free + 1), (letter) =>
        createIdentity(owner, `port${letter}`),
      )
      const outcomes = (yield* together(...all)).map(outcome)
      expect(outcomes).toEqual([...all.slice(1).map(() => "ready"), "left"])
      expect(yield* has(all.at(-1)!)).toMatchObject({ status: "provisioning", port: null, card: null, hash: null })
    }),
  )
})
