/** Account deletion as background work that continues without its caller. */
import { ask } from "@svc/cluster/actor/Ask"
import { unlimited } from "@svc/domain/account/Scope"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { Accounts } from "@svc/cluster/account/Accounts"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Orgs } from "@svc/cluster/account/Orgs"
import * as OrgActor from "@svc/cluster/capabilities/OrgActor"
import { Identities } from "@svc/cluster/actor/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Writes } from "@svc/cluster/store/Database"
import * as Overdue from "@svc/cluster/work/Overdue"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { actors, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

/** Returns the number of the Org's rows of each kind. */
const holdings = (org: string) =>
  Effect.map(
    rows(
      (sql) => sql<{ readonly [kind: string]: number }>`
        select (select count(*)::int from org where id = ${org}) as orgs,
               (select count(*)::int from identity where org_id = ${org}) as identities,
               (select count(*)::int from api_key where org_id = ${org}) as keys,
               (select count(*)::int from event where org_id = ${org}) as events,
               (select count(*)::int from client_grant where org_id = ${org}) as grants,
               (select count(*)::int from oauth_token) as tokens,
               (select count(*)::int from audit where org_id = ${org}) as records,
               (select count(*)::int from audit_seal where org_id = ${org}) as seals,
               (select count(*)::int from audit_usage where org_id = ${org}) as counted`,
    ),
    ([row]) => row!,
  )
const nothing = { orgs: 0, identities: 0, keys: 0, events: 0, grants: 0, tokens: 0, records: 0, seals: 0, counted: 0 }

const newKey = (name: string) =>
  Effect.map(makeUuidV7, (id) => ({
    id,
    name,
    identity: null,
    rights: { scopes: unlimited, expiresAt: null, networks: null },
  }))

layer(actors())("a deleted account", (it) => {
  it.effect("rejects its credentials from that commit on and leaves only its Handles", () =>
    Effect.gen(function* () {
      const [org, other, halfway] = [yield* makeOrg, yield* makeOrg, yield* makeOrg]
      yield* makeIdentity(org, "ada")
      const sql = yield* Writes
      yield* sql`update org set status = 'deleting' where id = ${halfway}`
      yield* sql`
        with granted as (
          insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
          values (uuidv7(), ${org}, 'oc_1', 'app', 'localhost', ''::bytea, '', '{mail:read}', now(), now() + interval '1 day')
          returning id
        )
        insert into oauth_token (hash, grant_id, kind, expires_at) select 'hash', id, 'access', now() + interval '1 hour' from granted`
      // More records than one batch deletes, and another one during the deletion.
      yield* sql`insert into audit (org_id, id, at, class, action, actor_kind, outcome, via)
        select ${org}::uuid, uuidv7(), now(), 'auth', 'test', 'session', 'allowed', 'rest' from generate_series(1, 6000)`
      yield* sql`insert into audit_seal (org_id, seq, record_id, record_at, previous, hash)
        select org_id, row_number() over (), id, at, '', '' from audit where org_id = ${org} limit 10`
      yield* sql`insert into audit_usage (org_id, hour, actor_kind, actor_id, action, tool, handle, count)
        values (${org}, now(), 'session', '', 'test', '', '', 1)`
      yield* sql.unsafe(`create function late_record() returns trigger language plpgsql as $$ begin
        insert into audit (org_id, id, at, class, action, actor_kind, outcome, via)
        values (old.id, uuidv7(), now(), 'auth', 'late', 'session', 'refused', 'rest');
        return old; end $$`)
      yield* sql.unsafe(`create trigger late before delete on org for each row execute function late_record()`)
      expect(yield* holdings(org)).toMatchObject({ grants: 1, tokens: 1, records: 6000, seals: 10, counted: 1 })
      const keys = yield* ApiKeys
      const { key } = yield* keys.create(org, yield* newKey("admin"), accountHolder)
      const lookup = yield* CredentialLookup
      const use = lookup.resolve(Redacted.make(key))
      expect(yield* use).toMatchObject({ kind: "admin_key" })
      // An Identity that is still being provisioned is deleted too.
      yield* ask((yield* Identities).of("late").Create({ org_id: org, identity_id: yield* makeUuidV7, handle: "late" }))
      const actor = (yield* Orgs).of(org)
      const first = yield* ask(actor.Delete())
      expect(first.identities).toBe(2)
      expect(yield* Effect.flip(use)).toMatchObject({ code: "account_deleting" })
      // The state of an Identity's keys once its teardown has started.
      yield* sql`update api_key set revoked_at = now() where org_id = ${org}`
      expect(yield* Effect.flip(use)).toMatchObject({ code: "account_deleting" })
      expect(yield* Effect.flip(keys.create(org, yield* newKey("late"), accountHolder))).toMatchObject({
        code: "account_deleting",
      })
      expect(yield* Effect.flip(makeIdentity(org, "later"))).toMatchObject({ code: "account_deleting" })
      // The account gets no link during its deletion, and the response does not reveal that.
      const link = { email: `${org}@example.org` }
      const accounts = yield* Accounts
      expect(yield* accounts.requestLink(link, "en")).toMatchObject({ token: null })
      yield* waitUntil(holdings(org), ({ orgs, records }) => orgs + records === 0)
      expect(yield* holdings(org)).toEqual(nothing)
      expect(
        yield* rows((sql) => sql`select id, status from org where id in (${other}, ${halfway}) order by status`),
      ).toEqual([
        { id: other, status: "active" },
        { id: halfway, status: "deleting" },
      ])
      expect(yield* Effect.flip(use)).toMatchObject({ code: "unauthenticated" })
      const queries = yield* IdentityQueries
      // Each Identity is deleted independently, even if the requests are concurrent.
      const handles = ["later", "ada", "late", "later"]
      expect(yield* Effect.forEach(handles, queries.isTaken, { concurrency: "unbounded" })).toEqual([
        false,
        true,
        true,
        false,
      ])
      expect(yield* accounts.requestLink({ ...link, tos_accepted: true }, "en")).toMatchObject({
        token: expect.any(String),
      })
    }),
  )
})

layer(Overdue.layer(OrgActor.watched).pipe(Layer.provideMerge(actors())))("an account deletion", (it) => {
  it.effect("is completed by another process after a crash", () =>
    Effect.gen(function* () {
      const [org, other] = [yield* makeOrg, yield* makeOrg]
      yield* makeIdentity(org, "ada")
      yield* makeIdentity(other, "grace")
      const sql = yield* Writes
      yield* sql`update org set status = 'deleting', deletion_requested_at = now() where id = ${org}`
      yield* waitUntil(holdings(org), ({ orgs }) => orgs === 0, "20 millis")
      expect(yield* holdings(org)).toEqual(nothing)
      expect(yield* holdings(other)).toMatchObject({ orgs: 1, identities: 1 })
    }),
  )
})
