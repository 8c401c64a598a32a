/** Writes that no actor owns: each is announced to open pages and streams, and none is made while its account is deleted. */
import { Accounts } from "@svc/cluster/account/Accounts"
import { ApiKeys } from "@svc/cluster/account/ApiKeys"
import { Devices } from "@svc/cluster/account/Devices"
import { ask } from "@svc/cluster/actor/Ask"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { Identities } from "@svc/cluster/actor/Identities"
import { Drafts } from "@svc/cluster/mail/sending/Drafts"
import { Grants } from "@svc/cluster/oauth/Grants"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { IdentityTokens } from "@svc/cluster/proof/IdentityTokens"
import { SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { Writes } from "@svc/cluster/store/Database"
import type { Initiator } from "@svc/domain/account/Initiator"
import { creationLock } from "@svc/cluster/vault/SecretWrites"
import { Vault } from "@svc/cluster/vault/Vault"
import { judgeRights } from "@svc/domain/account/KeyRights"
import { unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { isScope } from "@svc/domain/ScopeTable"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { afterwards } from "../harness/Afterwards.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const world = Layer.mergeAll(Grants.layer, OAuthRequests.layer, Vault.layer).pipe(Layer.provideMerge(actors()))

const rights = { scopes: unlimited, expiresAt: null, networks: null }
const redirect = "http://localhost:4711/callback"
const client = { id: "oc_test", name: "App", redirects: [redirect], describedBy: null, idTokenAlgorithm: null }
const consented = { client, redirect, challenge: "c".repeat(43), resource: "http://localhost:8080/mcp" }
const choice = { scopes: ["identity:read"], identities: null, days: 30 }

const makeSession = Effect.fnUntraced(function* (org: string) {
  const id = yield* makeUuidV7
  const sql = yield* Writes
  yield* sql`
    insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${id}, ${org}, ${Buffer.from(id)}, now(), now(), now() + interval '1 day')`
  return id
})
const makeKey = Effect.fnUntraced(function* (org: string) {
  const wanted = { id: yield* makeUuidV7, name: "ci", rights, identity: null }
  return (yield* (yield* ApiKeys).create(org, wanted, accountHolder)).api_key.id
})
const approve = Effect.fnUntraced(function* (org: string) {
  const devices = yield* Devices
  const { userCode } = yield* devices.start({ name: "laptop" }, undefined)
  return devices.approve(org, userCode, {}, (wanted) => judgeRights(rights, wanted, isScope, 0), accountHolder)
})
const consent = Effect.fnUntraced(function* (org: string) {
  const session = yield* makeSession(org)
  const { id } = yield* (yield* OAuthRequests).open("client_id=oc_test", session)
  return (yield* Grants).consent(org, { id, session }, consented, choice, accountHolder)
})

layer(world, { timeout: "60 seconds" })("A write of the store", (it) => {
  it.effect("is announced", () =>
    Effect.gen(function* () {
      const [keys, accounts, grants, drafts] = [yield* ApiKeys, yield* Accounts, yield* Grants, yield* Drafts]
      const feed = yield* ChangeFeed
      const org = yield* makeOrg
      const identity = (yield* makeIdentity(org, newHandle("ada"))).id as IdentityId
      let [ofOrg, ofIdentity] = [0, 0]
      yield* feed.on(org, () => void ofOrg++)
      yield* feed.on(identity, () => void ofIdentity++)
      /** Runs a write and expects that it announces the Org, and the Identity if it belongs to one. */
      const announces = <A, E, R>(what: string, write: Effect.Effect<A, E, R>, isOfIdentity = false) =>
        Effect.gen(function* () {
          const before = [ofOrg, ofIdentity] as const
          const made = yield* write
          expect([what, ofOrg > before[0]]).toEqual([what, true])
          if (isOfIdentity) expect([what, ofIdentity > before[1]]).toEqual([what, true])
          return made
        })
      const key = yield* announces("create a key", makeKey(org))
      yield* announces("revoke a key", keys.revoke(org, key, accountHolder))
      yield* announces("approve a device", yield* approve(org))
      const granted = yield* announces("consent", yield* consent(org))
      const patch = { scopes: ["mail:read"] as const }
      yield* announces("change a Grant", grants.change(org, granted.grantId, patch, undefined, accountHolder))
      yield* announces("revoke a Grant", grants.revoke(org, granted.grantId, accountHolder))
      yield* announces("consent again", yield* consent(org))
      yield* announces("revoke all Grants", grants.revokeAll(org, accountHolder))
      expect(
        yield* rows((sql) => sql`select 1 from client_grant where org_id = ${org} and revoked_at is null`),
      ).toEqual([])
      const session = yield* makeSession(org)
      yield* announces("revoke a session", accounts.revokeSession(org, session))
      yield* makeSession(org)
      yield* announces("revoke all sessions", accounts.revokeSessions(org))
      expect(yield* rows((sql) => sql`select 1 from session where org_id = ${org}`)).toEqual([])
      const mail = { to: ["grace@example.org"], text: "x" } as never
      const draft = yield* makeUuidV7
      yield* announces("create a draft", drafts.create(identity, draft, mail), true)
      const [stored] = yield* rows((sql) => sql<{ id: string }>`select id from draft where identity_id = ${identity}`)
      expect(stored?.id).toBe(draft)
      const sql = yield* Writes
      yield* sql`
        insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
        select uuidv7(), ${identity}::uuid, 1, '{}', '{"text":"x"}', now(), now() from generate_series(1, 98)`
      yield* drafts.create(identity, yield* makeUuidV7, mail)
      expect(yield* Effect.flip(drafts.create(identity, yield* makeUuidV7, mail))).toMatchObject({ code: "conflict" })
      const nobody = (yield* makeUuidV7) as IdentityId
      expect(yield* Effect.flip(drafts.create(nobody, yield* makeUuidV7, mail))).toMatchObject({ code: "not_found" })
    }).pipe(Effect.scoped),
  )

  it.effect("is not made while the account is deleted", () =>
    Effect.gen(function* () {
      const [keys, accounts, tokens, signing] = [
        yield* ApiKeys,
        yield* Accounts,
        yield* IdentityTokens,
        yield* SigningKeys,
      ]
      const sql = yield* Writes
      const org = yield* makeOrg
      const handle = newHandle("bob")
      const { id } = yield* makeIdentity(org, handle)
      const subject = { id: id as IdentityId, orgId: org, handle, canonical: handle } as never
      const [approval, consenting, key] = [yield* approve(org), yield* consent(org), yield* makeKey(org)]
      const email = `${org}@example.org`
      const link = yield* accounts.requestLink({ email, tos_accepted: true }, "en")
      yield* sql`delete from signing_key where identity_id = ${id}`
      const counts = rows(
        (sql) => sql`
          select (select count(*)::int from api_key where org_id = ${org}) as keys,
                 (select count(*)::int from client_grant where org_id = ${org}) as grants,
                 (select count(*)::int from session where org_id = ${org}) as sessions,
                 (select count(*)::int from identity where org_id = ${org}) as identities,
                 (select count(*)::int from signing_key where identity_id = ${id}) as pairs,
                 (select count(*)::int from proof_setting where identity_id = ${id}) as settings`,
      )
      const before = yield* counts
      yield* sql`update org set status = 'deleting' where id = ${org}`
      const maker = { org: { id: org }, kind: "session", ...rights } as never
      const refused = <A, E extends object, R>(write: Effect.Effect<A, E, R>) =>
        Effect.map(Effect.flip(write), (error) =>
          "code" in error ? error.code : "reason" in error ? error.reason : error,
        )
      expect(yield* refused(makeKey(org))).toBe("account_deleting")
      expect(yield* refused(keys.rotate(maker, key, yield* makeUuidV7, 0, accountHolder))).toBe("account_deleting")
      expect(yield* refused(approval)).toBe("account_deleting")
      expect(yield* refused(consenting)).toBe("gone")
      expect(yield* refused(accounts.consume(link.token!, undefined))).toBe("magic_link_invalid")
      expect((yield* accounts.requestLink({ email }, "en")).token).toBeNull()
      expect(yield* refused(tokens.set(subject, { audiences: "any" }, undefined, undefined))).toBe("not_found")
      expect(yield* signing.ensured(subject)).toEqual([])
      const other = newHandle("carol")
      const create = (yield* Identities)
        .of(other)
        .Create({ org_id: org, identity_id: yield* makeUuidV7, handle: other })
      expect(yield* refused(ask(create))).toBe("account_deleting")
      expect(yield* counts).toEqual(before)
    }),
  )

  it.effect("is not made by a credential that was revoked after its request was admitted", () =>
    Effect.gen(function* () {
      const [keys, devices] = [yield* ApiKeys, yield* Devices]
      const org = yield* makeOrg
      const [key, session] = [yield* makeKey(org), yield* makeSession(org)]
      const makers: ReadonlyArray<readonly [by: Initiator, revoke: Effect.Effect<unknown, unknown>]> = [
        [{ kind: "admin_key", credentialId: key, requestId: null }, keys.revoke(org, key, accountHolder)],
        [{ kind: "session", credentialId: session, requestId: null }, (yield* Accounts).revokeSession(org, session)],
      ]
      const wanted = Effect.map(makeUuidV7, (id) => ({ id, name: "late", rights, identity: null }))
      const maker = { org: { id: org }, kind: "session", ...rights } as never
      const other = yield* makeKey(org)
      for (const [by, revoke] of makers) {
        const { userCode } = yield* devices.start({ name: "laptop" }, undefined)
        yield* afterwards(keys.create(org, yield* wanted, by), revoke)
        for (const write of [
          keys.create(org, yield* wanted, by),
          keys.rotate(maker, other, yield* makeUuidV7, 0, by),
          devices.approve(org, userCode, {}, (asked) => judgeRights(rights, asked, isScope, 0), by),
        ])
          expect(yield* Effect.flip(write as Effect.Effect<unknown, unknown>)).toMatchObject({
            code: "unauthenticated",
          })
      }
      const late = yield* rows((sql) => sql`select from api_key where org_id = ${org} and name in ('late', 'laptop')`)
      expect(late.length).toBe(makers.length)
    }),
  )

  it.effect("of a Grant ends with all sessions and apps of its account", () =>
    Effect.gen(function* () {
      const [accounts, grants] = [yield* Accounts, yield* Grants]
      const org = yield* makeOrg
      yield* afterwards(yield* consent(org), accounts.revokeSessions(org, grants.revokeAll(org, accountHolder)))
      const left = yield* rows((sql) => sql`select from client_grant where org_id = ${org} and revoked_at is null`)
      expect(left).toEqual([])
    }),
  )

  it.effect("of a secret is one of at most 1,000 of a Vault, also beside another process", () =>
    Effect.gen(function* () {
      const [sql, vault] = [yield* Writes, yield* Vault]
      const org = yield* makeOrg
      const { id } = yield* makeIdentity(org, newHandle("elsewhere"))
      const put = (name: string, identity: string | null = null) =>
        vault.put(
          { org, identity: identity as IdentityId | null },
          name,
          { value: "x" },
          { ifTag: null, ifAbsent: false, ifPresent: false },
        )
      const more = (count: number, stem: string) => sql`
        insert into vault_secret
        select (jsonb_populate_record(s, to_jsonb(s) || jsonb_build_object('id', uuidv7(), 'name', ${stem}::text || n))).*
        from vault_secret s, generate_series(1, ${count}::int) n where s.org_id = ${org} and s.name = 'first'`
      yield* put("first")
      yield* more(997, "a")
      yield* put("second")
      // Another process holds the lock while it creates the last one.
      const lock = sql`select pg_advisory_xact_lock(${creationLock}, hashtext(${org}::text))`
      const refused = Effect.map(Effect.flip(put("late")), (error) => expect(error).toMatchObject({ code: "conflict" }))
      yield* afterwards(Effect.andThen(lock, more(1, "b")), refused)
      yield* put("first")
      yield* put("other", id)
    }),
  )

  it.effect("is not made while the Identity is deleted", () =>
    Effect.gen(function* () {
      const [drafts, tokens, signing] = [yield* Drafts, yield* IdentityTokens, yield* SigningKeys]
      const sql = yield* Writes
      const org = yield* makeOrg
      const handle = newHandle("dora")
      const { id } = yield* makeIdentity(org, handle)
      const wanted = { id: yield* makeUuidV7, name: "ci", rights, identity: { id, handle } }
      const subject = { id: id as IdentityId, orgId: org, handle, canonical: handle } as never
      expect((yield* signing.published(handle))?.keys.length).toBeGreaterThan(0)
      expect((yield* signing.signing(subject))?.kid).toBeDefined()
      yield* sql`update identity set status = 'deleting' where id = ${id}`
      const mail = { to: ["grace@example.org"], text: "x" } as never
      expect(yield* Effect.flip(drafts.create(id as IdentityId, yield* makeUuidV7, mail))).toMatchObject({
        code: "identity_not_ready",
        agent_hint: "stop",
      })
      expect(yield* Effect.flip((yield* ApiKeys).create(org, wanted, accountHolder))).toMatchObject({
        code: "identity_not_ready",
      })
      expect(yield* Effect.flip(tokens.set(subject, { audiences: "any" }, undefined, undefined))).toMatchObject({
        code: "not_found",
      })
      expect(yield* signing.published(handle)).toBeUndefined()
      expect(yield* signing.signing(subject)).toBeUndefined()
      yield* sql`delete from signing_key where identity_id = ${id}`
      expect(yield* signing.ensured(subject)).toEqual([])
      expect(yield* rows((sql) => sql`select 1 from draft where identity_id = ${id}`)).toEqual([])
    }),
  )
})
