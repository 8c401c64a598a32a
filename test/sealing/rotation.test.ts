import { keyPlace } from "@svc/cluster/account/Devices"
import * as ExportPieces from "@svc/cluster/account/exports/ExportPieces"
import { sealedPlace } from "@svc/cluster/connectors/ConnectorState"
import * as Authorizations from "@svc/cluster/connectors/credentials/Authorizations"
import * as Registrations from "@svc/cluster/connectors/credentials/Registrations"
import { identityKeyPlace, imapPasswordPlace, imapVerifierPlace } from "@svc/cluster/credentials/ShowOnce"
import * as SigningKeys from "@svc/cluster/proof/SigningKeys"
import { parseMasterKeys, type Place, Sealing } from "@svc/cluster/sealing/Sealing"
import { passwordPlace } from "@svc/cluster/tunnel/Tunnels"
import * as SecretRows from "@svc/cluster/vault/SecretRows"
import * as SigningSecrets from "@svc/cluster/webhooks/SigningSecrets"
import { makeUuidV7 } from "@svc/domain/Ids"
import { keysInUse, rotate } from "@svc/cluster/sealing/Rotation"
import { Unhurried } from "@svc/cluster/store/Database"
import { Vault } from "@svc/cluster/vault/Vault"
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { makeOrg } from "../harness/Actors.ts"
import { databaseLayer } from "../harness/Database.ts"

const [former, present] = [Buffer.alloc(32, 1).toString("base64"), Buffer.alloc(32, 2).toString("base64")]
const keys = (text: string) => Layer.fresh(Layer.unwrap(Effect.map(parseMasterKeys(text), Sealing.layer)))
const withKeys = (text: string) => Effect.provide(keys(text))
const unconditional = { ifTag: null, ifAbsent: false, ifPresent: false } as const

layer(databaseLayer)("changing the master key", (it) => {
  it.effect("takes one start with both keys; then the service runs without the old key", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      yield* Effect.andThen(rotate, Effect.void).pipe(withKeys(`a:${former}`))
      const orgs = yield* Effect.all([makeOrg, makeOrg, makeOrg]).pipe(withKeys(`a:${former}`))
      yield* Effect.gen(function* () {
        const vault = yield* Vault
        yield* vault.put({ org: orgs[0], identity: null }, "kept", { value: "over it all" }, unconditional)
        const sealing = yield* Sealing
        yield* sql`insert into service_key (name, sealed) values ('one', ${yield* sealing.sealForService("one", new Uint8Array(3))})`
        // One statement replaces the keys of 500 Orgs, so two more are needed.
        const many = yield* Effect.forEach(Array.from({ length: 1_001 }), () =>
          Effect.gen(function* () {
            const id = yield* makeUuidV7
            return { id, sealed: Buffer.from((yield* sealing.makeDataKey(id)).sealed).toString("hex") }
          }),
        )
        yield* sql`
          insert into org (id, email, language, tos_version, tos_accepted_at, data_key, created_at)
          select id, id::text, 'en', '1', now(), decode(sealed, 'hex'), now()
          from jsonb_to_recordset(${JSON.stringify(many)}::jsonb) as one (id uuid, sealed text)`
      }).pipe(Effect.provide(Layer.provideMerge(Vault.layer, keys(`a:${former}`))))

      // Without the rotation, a start with only the new key is rejected, and the error names the missing key.
      const refusal = yield* Effect.flip(rotate.pipe(withKeys(`b:${present}`)))
      expect(refusal).toMatchObject({ _tag: "MasterKeyMissing", message: expect.stringContaining('"a"') })
      expect(yield* keysInUse(sql)).toEqual(["a"])
      const logged: Array<unknown> = []
      const log = Logger.layer([Logger.make(({ message }) => void logged.push(message))])
      yield* rotate.pipe(withKeys(`b:${present}, a : ${former} `), Effect.provide(log))
      expect(yield* keysInUse(sql)).toEqual(["b"])
      const [all] = yield* sql<{ n: number }>`select count(*)::int as n from org`
      expect(String(logged)).toContain(`data keys of ${all!.n} Orgs`)
      yield* rotate.pipe(withKeys(`b:${present}`))
      yield* Effect.gen(function* () {
        const vault = yield* Vault
        const { value } = yield* vault.valueOnRecord({ org: orgs[0], identity: null }, "kept")
        expect(value).toBe("over it all")
        const sealing = yield* Sealing
        const [row] = yield* sql<{ sealed: Uint8Array }>`select sealed from service_key where name = 'one'`
        expect(yield* sealing.openForService("one", row!.sealed)).toEqual(new Uint8Array(3))
      }).pipe(Effect.provide(Layer.provideMerge(Vault.layer, keys(`b:${present}`))))

      // If a process with the old key has created an Org in the meantime, dropping the old key is still rejected.
      yield* makeOrg.pipe(withKeys(`a:${former}`))
      const again = yield* Effect.flip(rotate.pipe(withKeys(`b:${present}`)))
      expect(again).toMatchObject({ _tag: "MasterKeyMissing", message: expect.stringContaining('"a"') })
    }),
  )

  it.effect("is refused for a key that has the id of the present one, and changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      yield* rotate.pipe(withKeys(`b:${present},a:${former}`))
      const sealed = sql`
        select sealed from sealing_canary union all select sealed from service_key union all
        select data_key from org order by 1`
      const before = yield* sealed
      expect(before.length).toBeGreaterThan(4)
      for (const wrong of [`b:${former}`, `c:${present},b:${former}`, `b:${former},a:${former}`]) {
        expect(yield* Effect.flip(rotate.pipe(withKeys(wrong)))).toMatchObject({
          _tag: "MasterKeyMissing",
          message: "SVC_MASTER_KEY is not the key this database was written with.",
        })
      }
      expect(yield* sealed).toEqual(before)
    }),
  )
})

layer(Layer.provideMerge(Vault.layer, Layer.provideMerge(keys(former), databaseLayer)))(
  "a value of the Vault",
  (it) => {
    const prepared = Effect.gen(function* () {
      const vault = yield* Vault
      const sql = yield* Unhurried
      const org = yield* makeOrg
      const identities = yield* Effect.forEach(["ada", "bob"], (name) =>
        Effect.gen(function* () {
          const id = yield* makeUuidV7
          const handle = `${name}${id.slice(-12)}`
          yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${org}, now())`
          yield* sql`insert into identity (id, canonical, handle, org_id, status, saga, created_at)
          values (${id}, ${handle}, ${handle}, ${org}, 'ready', '{}', now())`
          return id
        }),
      )
      const put = (identity: string | null, name: string, value: string) =>
        vault.put({ org, identity: identity as never }, name, { value }, unconditional)
      const read = (identity: string | null, name: string) =>
        Effect.exit(vault.valueOnRecord({ org, identity: identity as never }, name))
      /** Copies the newest sealed value of one secret, including its id, over that of another secret. */
      const move = (from: string | null, name: string, to: string | null, toName: string) => sql`
      with source as (select v.id, v.sealed from vault_version v join vault_secret s on s.id = v.secret_id
        where s.org_id = ${org} and s.identity_id is not distinct from ${from}::uuid and s.name = ${name} order by v.version desc limit 1)
      update vault_version v set id = source.id, sealed = source.sealed from source, vault_secret s
      where s.id = v.secret_id and s.org_id = ${org} and s.identity_id is not distinct from ${to}::uuid and s.name = ${toName}
        and v.version = s.version`
      return { org, sql, ada: identities[0]!, bob: identities[1]!, put, read, move }
    })

    it.effect("does not open in the place of another secret, Identity or Org", () =>
      Effect.gen(function* () {
        const { org, sql, ada, bob, put, read, move } = yield* prepared
        yield* put(ada, "pass", "ada's")
        yield* put(bob, "pass", "bob's")
        yield* put(null, "pass", "the Org's")
        yield* put(bob, "other", "bob's other")
        for (const [to, name] of [
          [bob, "pass"],
          [null, "pass"],
          [bob, "other"],
        ] as const) {
          yield* move(ada, "pass", to, name)
          expect(yield* read(to, name), `${to} ${name}`).toMatchObject({ _tag: "Failure" })
        }
        expect(yield* read(ada, "pass")).toMatchObject({ _tag: "Success", value: { value: "ada's" } })
        // A secret that was created after the removal of another secret with the same name is a different secret.
        const vault = yield* Vault
        const [stored] = yield* sql<{
          id: string
          sealed: Uint8Array
        }>`select v.id::text as id, v.sealed from vault_version v
          join vault_secret s on s.id = v.secret_id where s.identity_id = ${ada} and s.name = 'pass'`
        yield* vault.remove({ org, identity: ada as never }, "pass", null)
        yield* put(ada, "pass", "ada's next")
        yield* sql`update vault_version v set id = ${stored!.id}, sealed = ${stored!.sealed} from vault_secret s
          where s.id = v.secret_id and s.identity_id = ${ada} and s.name = 'pass'`
        expect(yield* read(ada, "pass")).toMatchObject({ _tag: "Failure" })
      }),
    )

    it.effect("does not open after its secret is moved to another owner or renamed", () =>
      Effect.gen(function* () {
        const { ada, bob, put, read, sql } = yield* prepared
        yield* put(ada, "given", "ada's")
        yield* put(ada, "named", "ada's")
        yield* put(ada, "the.org", "ada's")
        yield* sql`update vault_secret set identity_id = ${bob} where identity_id = ${ada} and name = 'given'`
        yield* sql`update vault_secret set name = 'renamed' where identity_id = ${ada} and name = 'named'`
        yield* sql`update vault_secret set identity_id = null where identity_id = ${ada} and name = 'the.org'`
        for (const [whose, name] of [
          [bob, "given"],
          [ada, "renamed"],
          [null, "the.org"],
        ] as const)
          expect(yield* read(whose, name), name).toMatchObject({ _tag: "Failure" })
      }),
    )

    it.effect("has the value of one of its concurrent writers", () =>
      Effect.gen(function* () {
        const { org, put, read } = yield* prepared
        const vault = yield* Vault
        yield* Effect.forEach(
          Array.from({ length: 30 }, (_, i) => i),
          (i) =>
            i % 5 === 4
              ? Effect.ignore(vault.remove({ org, identity: null }, "raced", null))
              : put(null, "raced", `v${i}`),
          { concurrency: "unbounded" },
        )
        yield* put(null, "raced", "last")
        expect(yield* read(null, "raced")).toMatchObject({ _tag: "Success", value: { value: "last" } })
      }),
    )
  },
)

describe("the place of a sealed value", () => {
  const own = (orgId: string, id: string) => ({ orgId, id, handle: "ada", dataKey: {} as never })
  const bytes = (text: string) => Buffer.from(text)
  const places: Readonly<Record<string, (org: string, id: string, c: string, d: string, e: string) => Place>> = {
    "vault secret": (org, identity, c, d, e) => SecretRows.place({ org, identity }, c, d, e),
    "signing key": (org, id, c) => SigningKeys.place(org, id, c),
    "signing secret": (org, id, c) => SigningSecrets.place(own(org, id), c),
    "initial key": (org, id) => identityKeyPlace(own(org, id)),
    "initial password": (org, id) => imapPasswordPlace(own(org, id)),
    "password of the Mailbox": (org, id) => imapVerifierPlace(own(org, id)),
    "password of the Tunnel": (org, id) => passwordPlace(own(org, id)),
    "key of a device": (org, id, c, d) => keyPlace(org, id, c, bytes(d)),
    "piece of an export": (org, id, c, d) => ExportPieces.place(org, { id, identityId: c }, d, 1),
    "app at a platform": (org, platform, c) => Registrations.place(org, platform, c),
    authorization: (org, id, c, d) => Authorizations.place(own(org, id), c, bytes(d)),
    credential: (orgId, identityId, platform, d, e) => sealedPlace({ orgId, identityId, platform }, d, e),
  }
  /** The number of ids that a place has, without those that the function ignores. */
  const counts: Readonly<Record<string, number>> = {
    "vault secret": 5,
    "key of a device": 4,
    "piece of an export": 4,
    authorization: 4,
    credential: 5,
    "signing key": 3,
    "signing secret": 3,
    "app at a platform": 3,
  }

  it.each(Object.entries(places))(
    "differs for each %s, so that no value can be moved to another row",
    (name, place) => {
      const ids: ReadonlyArray<string> = ["1", "2", "3", "4", "5"]
      const textOf = ([a, b, c, d, e]: ReadonlyArray<string>) => JSON.stringify(place(a!, b!, c!, d!, e!))
      const others = [...ids.keys()].map((index) => textOf(ids.with(index, "x")))
      expect(new Set([textOf(ids), ...others])).toHaveLength((counts[name] ?? 2) + 1)
    },
  )

  it("belongs to one column", () => {
    const columns = Object.entries(places).map(([name, place]) => {
      const { table, column } = place("1", "2", "3", "4", "5")
      return name === "credential" ? table : `${table}.${column}`
    })
    expect(new Set(columns)).toHaveLength(columns.length)
  })
})
