/** The deletion of an account, as work that outlives whoever began it. */
import { ask } from "@svc/cluster/actor/Ask"
import { unlimited } from "@svc/domain/account/Scope"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Accounts } from "@svc/cluster/account/Accounts"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Orgs } from "@svc/cluster/account/Orgs"
import * as OrgWork from "@svc/cluster/account/OrgWork"
import { Identities } from "@svc/cluster/identity/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Writes } from "@svc/cluster/store/Database"
import * as Overdue from "@svc/cluster/work/Overdue"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { actors, makeIdentity, makeOrg, passing } from "../harness/Actors.ts"
import { holder, rows } from "../harness/Stores.ts"

/** How many rows of each kind the Org has. */
const holdings = (org: string) =>
  Effect.map(
    rows(
      (sql) => sql<{ readonly [kind: string]: number }>`
        select (select count(*)::int from org where id = ${org}) as orgs,
               (select count(*)::int from identity where org_id = ${org}) as identities,
               (select count(*)::int from api_key where org_id = ${org}) as keys,
               (select count(*)::int from event where org_id = ${org}) as events`,
    ),
    ([row]) => row!,
  )
const nothing = { orgs: 0, identities: 0, keys: 0, events: 0 }

const newKey = (name: string) =>
  Effect.map(makeUuidV7, (id) => ({
    id,
    name,
    identity: null,
    rights: { scopes: unlimited, expiresAt: null, networks: null },
  }))

layer(actors())("an account that is deleted", (it) => {
  it.effect("refuses its credentials from that commit on, and leaves only its names behind", () =>
    Effect.gen(function* () {
      const org = yield* makeOrg
      yield* makeIdentity(org, "ada")
      const keys = yield* ApiKeys
      const { key } = yield* keys.create(org, yield* newKey("admin"), holder)
      const lookup = yield* CredentialLookup
      const use = lookup.resolve(Redacted.make(key))
      expect(yield* use).toMatchObject({ kind: "admin_key" })
      // One that is still being made goes too.
      yield* ask((yield* Identities).of("late").Create({ org_id: org, identity_id: yield* makeUuidV7, handle: "late" }))
      const actor = (yield* Orgs).of(org)
      const first = yield* ask(actor.Delete())
      expect(first.identities).toBe(2)
      expect(yield* Effect.flip(use)).toMatchObject({ code: "account_deleting" })
      expect(yield* Effect.flip(keys.create(org, yield* newKey("late"), holder))).toMatchObject({
        code: "account_deleting",
      })
      expect(yield* Effect.flip(makeIdentity(org, "later"))).toMatchObject({ code: "account_deleting" })
      // It gets no link while it goes, and nobody learns that from the answer.
      const link = { email: `${org}@example.org` }
      const accounts = yield* Accounts
      expect(yield* accounts.requestLink(link, "en")).toMatchObject({ token: null })
      yield* passing(holdings(org), ({ orgs }) => orgs === 0)
      expect(yield* holdings(org)).toEqual(nothing)
      expect(yield* Effect.flip(use)).toMatchObject({ code: "unauthenticated" })
      const queries = yield* IdentityQueries
      for (const name of ["ada", "late"]) expect(yield* queries.isTaken(name)).toBe(true)
      expect(yield* queries.isTaken("later")).toBe(false)
      expect(yield* accounts.requestLink({ ...link, tos_accepted: true }, "en")).toMatchObject({
        token: expect.any(String),
      })
    }),
  )
})

layer(Overdue.layer(OrgWork.watched).pipe(Layer.provideMerge(actors())))("a deletion", (it) => {
  it.effect("that its process did not live to see is taken up and ended by another", () =>
    Effect.gen(function* () {
      const [org, other] = [yield* makeOrg, yield* makeOrg]
      yield* makeIdentity(org, "ada")
      yield* makeIdentity(other, "grace")
      const sql = yield* Writes
      yield* sql`update org set status = 'deleting', deletion_requested_at = now() where id = ${org}`
      yield* passing(holdings(org), ({ orgs }) => orgs === 0)
      expect(yield* holdings(org)).toEqual(nothing)
      expect(yield* holdings(other)).toMatchObject({ orgs: 1, identities: 1 })
    }),
  )
})
