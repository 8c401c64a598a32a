/** The lookup of credentials: what each kind may do, when it ends, and when its use is recorded. Also the ends of apps' access. */
import { type CallerInfo } from "@svc/domain/account/Authorization"
import { system } from "@svc/domain/account/Initiator"
import { unlimited } from "@svc/domain/account/Scope"
import { makeUuidV7 } from "@svc/domain/Ids"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import * as GrantRevocation from "@svc/cluster/credentials/GrantRevocation"
import { mint } from "@svc/cluster/credentials/CredentialMint"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { makeOrg, rows, setClockToNow, storesLayer } from "../harness/Stores.ts"

const from = { address: "192.0.2.7", via: "rest" }
const tools = { address: "192.0.2.8", via: "mcp" }

const makeOwner = Effect.gen(function* () {
  yield* setClockToNow
  const [sql, org] = [yield* Writes, yield* makeOrg]
  const makeIdentity = Effect.fnUntraced(function* (stem: string) {
    const [id, canonical] = [yield* makeUuidV7, newHandle(stem)]
    const handle = canonical.toUpperCase()
    yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${canonical}, ${handle}, ${org}, now())`
    yield* sql`
      insert into identity (id, canonical, handle, org_id, status, saga, created_at)
      values (${id}, ${canonical}, ${handle}, ${org}, 'ready', '{}', now())`
    return { id, handle, canonical, status: "ready" }
  })
  const now = yield* Clock.currentTimeMillis
  return { org, makeIdentity, now }
})
type Owner = Effect.Success<typeof makeOwner>

const makeKey = Effect.fnUntraced(function* (
  { org, now }: Owner,
  {
    identity = null,
    ends = null,
    scopes = "*",
  }: { identity?: string | null; ends?: number | null; scopes?: string } = {},
) {
  const [sql, id] = [yield* Writes, yield* makeUuidV7]
  const { token, hash, prefix } = mint(identity === null ? "admin_key" : "identity_key")
  yield* sql`
    insert into api_key (id, org_id, identity_id, name, token_prefix, token_hash, created_at, scopes, expires_at, networks)
    values (${id}, ${org}, ${identity}, 'ci', ${prefix}, ${hash}, now(), ${scopes}, ${ends === null ? null : new Date(now + ends)}, '192.0.2.0/24')`
  return { id, token }
})

const makeSession = Effect.fnUntraced(function* ({ org, now }: Owner, ends: number) {
  const [sql, id] = [yield* Writes, yield* makeUuidV7]
  const { token, hash } = mint("session")
  yield* sql`
    insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${id}, ${org}, ${hash}, ${new Date(now)}, ${new Date(now)}, ${new Date(now + ends)})`
  return { id, token }
})

/** Creates an app's access of an age. The other times are the minutes until the end of the token and of the access. */
const makeGrant = Effect.fnUntraced(function* (
  { org }: Owner,
  identities: ReadonlyArray<string> | null,
  { token: tokenMinutes = 60, grant = 60, kind = "access", age = 0 } = {},
) {
  const [sql, id] = [yield* Writes, yield* makeUuidV7]
  const { token, hash } = mint("grant")
  yield* sql`
    insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, identities, created_at, expires_at)
    values (${id}, ${org}, ${id}, 'The app', 'app.example', '', 'r', '{mail:read}', ${identities}::uuid[],
            now() - make_interval(mins => ${age}), now() + make_interval(mins => ${grant}))`
  yield* sql`
    insert into oauth_token (hash, grant_id, kind, expires_at)
    values (${hash}, ${id}, ${kind}, now() + make_interval(mins => ${tokenMinutes}))`
  return { id, token, hash }
})

const resolve = (token: string, canonical = "", origin: { address: string; via?: string } | undefined = from) =>
  Effect.flatMap(CredentialLookup, (lookup) => lookup.resolveNaming(Redacted.make(token), canonical, origin))
const refusal = (...of: Parameters<typeof resolve>) =>
  Effect.map(Effect.flip(resolve(...of)), (error) => ("code" in error ? error.code : error))
const setOrg = (org: string, status: string) =>
  Effect.flatMap(Writes, (sql) => sql`update org set status = ${status} where id = ${org}`)

layer(storesLayer)("the lookup of", (it) => {
  it.effect("a key gives its own rights, and an Identity Key its own Identity only", () =>
    Effect.gen(function* () {
      const owner = yield* makeOwner
      const ada = yield* owner.makeIdentity("ada")
      const admin = yield* makeKey(owner, { ends: 60_000, scopes: "mail:read" })
      const own = yield* makeKey(owner, { identity: ada.id })
      const at = (hour: number) => new Date(Date.UTC(2026, 0, 1, hour))
      const dates = { created_at: at(1), email_verified_at: at(2), tos_accepted_at: at(3) }
      const texts = { email: `${owner.org}@example.org`, language: "de", api_version: "2026-11-20", tos_version: "2" }
      const sql = yield* Writes
      yield* sql`update org set ${sql.update({ ...dates, ...texts })} where id = ${owner.org}`
      const common = { org: { id: owner.org, ...dates, ...texts }, keyName: "ci", grant: null, session: null }
      const { caller, named } = yield* resolve(admin.token)
      const expected = { kind: "admin_key", credentialId: admin.id, identities: null } satisfies Partial<CallerInfo>
      expect(caller).toMatchObject({ ...common, ...expected, expiresAt: new Date(owner.now + 60_000) })
      expect([caller.scopes.text, caller.networks?.text, named]).toEqual(["mail:read", "192.0.2.0/24", undefined])
      expect((yield* resolve(own.token)).caller).toMatchObject({
        ...common,
        kind: "identity_key",
        credentialId: own.id,
        identities: [ada],
        scopes: unlimited,
        expiresAt: null,
      })
    }),
  )

  it.effect("a call names an Identity of the credential's own account only", () =>
    Effect.gen(function* () {
      const [owner, other] = [yield* makeOwner, yield* makeOwner]
      const [ada, foreign] = [yield* owner.makeIdentity("ada"), yield* other.makeIdentity("grace")]
      const tokens = [
        (yield* makeKey(owner)).token,
        (yield* makeSession(owner, 60_000)).token,
        (yield* makeGrant(owner, null)).token,
      ]
      // Concurrent calls share a statement, and each gets its own answer.
      for (const token of tokens) {
        const calls = [ada.canonical, foreign.canonical, "", ada.canonical]
        const found = yield* Effect.forEach(calls, (canonical) => resolve(token, canonical, tools), {
          concurrency: "unbounded",
        })
        expect(found.map(({ named }) => named)).toEqual([ada, undefined, undefined, ada])
      }
      const [key, otherKey] = [yield* makeKey(owner), yield* makeKey(other)]
      const both = yield* Effect.forEach([otherKey, key], ({ token }) => resolve(token), { concurrency: "unbounded" })
      expect(both.map(({ caller }) => caller.org.id)).toEqual([other.org, owner.org])
    }),
  )

  it.effect("a credential that ended gives the reason", () =>
    Effect.gen(function* () {
      const [sql, owner] = [yield* Writes, yield* makeOwner]
      const [key, revoked, session] = [
        yield* makeKey(owner, { ends: 5_000 }),
        yield* makeKey(owner),
        yield* makeSession(owner, 5_000),
      ]
      yield* sql`update api_key set revoked_at = now() where id = ${revoked.id}`
      const codes = Effect.forEach([key, revoked, session], ({ token }) =>
        Effect.match(resolve(token), { onFailure: ({ _tag }) => _tag, onSuccess: ({ caller }) => caller.kind }),
      )
      expect(yield* refusal("svc_admin_nothing")).toBe("unauthenticated")
      expect(yield* refusal(mint("admin_key").token)).toBe("unauthenticated")
      yield* TestClock.adjust(4_999)
      expect(yield* codes).toEqual(["admin_key", "unauthenticated", "session"])
      yield* TestClock.adjust(1)
      expect(yield* codes).toEqual(["key_expired", "unauthenticated", "unauthenticated"])
      const open = yield* makeSession(yield* Effect.succeed({ ...owner, now: yield* Clock.currentTimeMillis }), 5_000)
      yield* setOrg(owner.org, "deleting")
      expect(yield* codes).toEqual(["account_deleting", "account_deleting", "unauthenticated"])
      expect(yield* refusal(open.token)).toBe("account_deleting")
    }),
  )

  it.effect("an app's token is valid for the tools, until it expires or the access of the app ends", () =>
    Effect.gen(function* () {
      const [sql, owner, other] = [yield* Writes, yield* makeOwner, yield* makeOwner]
      const [ada, grace] = [yield* owner.makeIdentity("ada"), yield* owner.makeIdentity("grace")]
      const foreign = yield* other.makeIdentity("edsger")
      const narrow = yield* makeGrant(owner, [grace.id, foreign.id, ada.id])
      const { caller } = yield* resolve(narrow.token, "", tools)
      expect(caller).toMatchObject({
        kind: "grant",
        credentialId: narrow.id,
        grant: { id: narrow.id, client: "The app" },
        keyName: null,
        networks: null,
        identities: [ada, grace],
      })
      expect(caller.scopes.text).toBe("mail:read")
      const identitiesOf = (token: string) => Effect.map(resolve(token, "", tools), ({ caller }) => caller.identities)
      expect(yield* identitiesOf((yield* makeGrant(owner, null)).token)).toBe(null)
      // An app whose Identities are gone may not act for the account.
      expect(yield* identitiesOf((yield* makeGrant(owner, [foreign.id])).token)).toEqual([])
      for (const origin of [from, { address: "192.0.2.7" }]) {
        expect(yield* refusal(narrow.token, "", origin)).toBe("unauthenticated")
      }
      expect(yield* refusal((yield* makeGrant(owner, null, { token: 0 })).token, "", tools)).toBe("unauthenticated")
      expect(yield* refusal((yield* makeGrant(owner, null, { kind: "refresh" })).token, "", tools)).toBe(
        "unauthenticated",
      )
      expect(yield* refusal((yield* makeGrant(owner, null, { grant: 0 })).token, "", tools)).toBe("grant_revoked")
      yield* sql`update client_grant set revoked_at = now(), reason = 'holder' where id = ${narrow.id}`
      expect(yield* refusal(narrow.token, "", tools)).toBe("grant_revoked")
      yield* setOrg(owner.org, "deleting")
      expect(yield* refusal(narrow.token, "", tools)).toBe("account_deleting")
    }),
  )

  it.effect("a credential records its use once a minute, and a session lasts on from it", () =>
    Effect.gen(function* () {
      const owner = yield* makeOwner
      const [key, session] = [yield* makeKey(owner), yield* makeSession(owner, Timing.sessionMillis)]
      const grant = yield* makeGrant(owner, null)
      const uses = rows(
        (sql) => sql<{
          key: Date | null
          address: string | null
          session: Date
          ends: Date
          app: Date | null
          from: string | null
          seen: boolean
        }>`
          select k.last_used_at as key, k.last_used_address as address, s.last_used_at as session, s.expires_at as ends,
                 g.last_used_at as app, g.last_used_address as from, t.first_used_at is not null as seen
          from api_key k, session s, client_grant g join oauth_token t on t.hash = ${grant.hash}
          where k.id = ${key.id} and s.id = ${session.id} and g.id = ${grant.id}`,
      )
      const use = Effect.fnUntraced(function* (address: string) {
        yield* resolve(key.token, "", { address })
        yield* resolve(session.token, "", { address })
        yield* resolve(grant.token, "", { address, via: "mcp" })
      })
      const at = (millis: number) => new Date(owner.now + millis)
      const usedAt = Effect.fnUntraced(function* (millis: number, address: string) {
        const expected = { key: at(millis), address, app: at(millis), from: address, seen: true }
        const { value } = yield* waitUntil(
          uses,
          ([row]) => row!.key?.getTime() === expected.key.getTime() && row!.app?.getTime() === expected.app.getTime(),
          0,
        )
        expect(value).toMatchObject([expected])
      })
      yield* use("192.0.2.1")
      yield* usedAt(0, "192.0.2.1")
      // The first use of each token is recorded, however soon it follows the use of another one.
      const sql = yield* Writes
      const next = mint("grant")
      yield* sql`insert into oauth_token (hash, grant_id, kind, expires_at) values (${next.hash}, ${grant.id}, 'access', now() + interval '1 hour')`
      yield* resolve(next.token, "", { address: "192.0.2.1", via: "mcp" })
      const unseen = rows((sql) => sql`select from oauth_token where grant_id = ${grant.id} and first_used_at is null`)
      yield* waitUntil(unseen, (tokens) => tokens.length === 0, 0)
      // A session was used when it was made.
      expect(yield* uses).toMatchObject([{ session: at(0), ends: at(Timing.sessionMillis) }])
      yield* TestClock.adjust(Timing.lastUsedMillis)
      yield* use("192.0.2.2")
      yield* TestClock.adjust(1)
      yield* use("192.0.2.3")
      const later = Timing.lastUsedMillis + 1
      yield* usedAt(later, "192.0.2.3")
      const extended = yield* waitUntil(uses, ([row]) => row!.session.getTime() === at(later).getTime(), 0)
      const ends = at(later + Timing.sessionMillis)
      expect(extended.value).toMatchObject([{ ends }])
      const { session: shown } = yield* (yield* CredentialLookup).resolve(Redacted.make(session.token))
      expect(shown).toEqual({ createdAt: at(0), expiresAt: ends })
      // Without an address the last one stays.
      yield* TestClock.adjust(later)
      yield* (yield* CredentialLookup).resolve(Redacted.make(key.token))
      const { value } = yield* waitUntil(uses, ([row]) => row!.key?.getTime() === at(2 * later).getTime(), 0)
      expect(value).toMatchObject([{ address: "192.0.2.3", app: at(later), session: at(later) }])
    }),
  )
})

/** Returns how the access of apps ended, and the Events that say so. */
const endsOf = Effect.fnUntraced(function* (org: string) {
  const grants = yield* rows(
    (sql) => sql<{
      id: string
      revoked_at: Date | null
      reason: string | null
      identities: ReadonlyArray<string> | null
    }>`
      select id, revoked_at, reason, identities from client_grant where org_id = ${org}`,
  )
  const events = yield* rows(
    (sql) => sql<{ data: Record<string, unknown> }>`
      select data from event where org_id = ${org} and type = 'grant.revoked' order by data ->> 'grant_id'`,
  )
  return { of: new Map(grants.map((grant) => [grant.id, grant])), told: events.map(({ data }) => data) }
})
const toldOf = (ids: ReadonlyArray<string>, reason: string) =>
  ids.toSorted().map((id) => ({ grant_id: id, client_id: id, client_name: "The app", reason }))

layer(storesLayer)("the access of an app", (it) => {
  it.effect("ends when it has expired, or when nobody used it for an hour after its tokens", () =>
    Effect.gen(function* () {
      const [sql, owner, other] = [yield* Writes, yield* makeOwner, yield* makeOwner]
      const withoutToken = Effect.fnUntraced(function* (age: number) {
        const { id } = yield* makeGrant(owner, null, { age })
        yield* sql`delete from oauth_token where grant_id = ${id}`
        return id
      })
      const foreign = (yield* makeGrant(other, null, { grant: 0 })).id
      const ended = [
        (yield* makeGrant(owner, null, { grant: 0 })).id,
        yield* withoutToken(61),
        (yield* makeGrant(owner, null, { age: 300, token: -61, kind: "refresh" })).id,
      ]
      const kept = [yield* withoutToken(59), (yield* makeGrant(owner, null, { age: 300, token: -59 })).id]
      const former = (yield* makeGrant(owner, null, { grant: 0 })).id
      yield* sql`update client_grant set revoked_at = now(), reason = 'holder' where id = ${former}`
      const now = new Date()
      yield* TestClock.setTime(now.getTime())
      yield* GrantRevocation.endExpired
      yield* GrantRevocation.endExpired
      const { of, told } = yield* endsOf(owner.org)
      const reasons = (ids: ReadonlyArray<string>) => ids.map((id) => of.get(id)?.reason)
      expect(reasons(ended)).toEqual(["expired", "expired", "expired"])
      expect(of.get(ended[0]!)!.revoked_at).toEqual(now)
      expect(reasons([...kept, former])).toEqual([null, null, "holder"])
      expect(told).toEqual(toldOf(ended, "expired"))
      expect((yield* endsOf(other.org)).told).toEqual(toldOf([foreign], "expired"))
    }),
  )

  it.effect("no longer includes a deleted Identity, and ends if it was for that one alone", () =>
    Effect.gen(function* () {
      const [sql, owner, other] = [yield* Writes, yield* makeOwner, yield* makeOwner]
      const [ada, grace] = [yield* owner.makeIdentity("ada"), yield* owner.makeIdentity("grace")]
      const grants = yield* Effect.forEach(
        [[ada.id], [ada.id, grace.id], [grace.id], null, [grace.id, ada.id]],
        (identities) => makeGrant(owner, identities),
      )
      const [alone, both, unrelated, all, former] = grants.map(({ id }) => id)
      yield* sql`update client_grant set revoked_at = now(), reason = 'holder' where id = ${former!}`
      const foreign = (yield* makeGrant(other, [ada.id])).id
      const identity = { id: ada.id, handle: ada.handle, orgId: owner.org, dataKey: {} as never }
      const removal = GrantRevocation.withoutIdentity({ sql, identity, at: new Date(), by: system, gate: sql`fence` })
      // Another process owns the Identity.
      yield* sql`with fence as (select where false), ${removal} select 1`
      expect((yield* endsOf(owner.org)).told).toEqual([])
      expect((yield* endsOf(owner.org)).of.get(both!)?.identities).toEqual([ada.id, grace.id])
      yield* sql`with fence as (select 1), ${removal} select 1`
      const { of, told } = yield* endsOf(owner.org)
      expect([alone, both, unrelated, all, former].map((id) => [of.get(id!)?.reason, of.get(id!)?.identities])).toEqual(
        [
          ["account", [ada.id]],
          [null, [grace.id]],
          [null, [grace.id]],
          [null, null],
          ["holder", [grace.id, ada.id]],
        ],
      )
      expect(told).toEqual(toldOf([alone!], "account"))
      expect((yield* endsOf(other.org)).of.get(foreign)).toMatchObject({ reason: null, identities: [ada.id] })
    }),
  )
})
