/**
 * Writes that no actor owns wait for an end of their account, Identity or credential that is just being committed, and are not
 * made after it.
 */
import { act, noKey } from "../audit/Acts.ts"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { CardQueries } from "@svc/cluster/card/CardQueries"
import { Grants } from "@svc/cluster/oauth/Grants"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import type { Credential } from "@svc/cluster/proof/IssuePermission"
import { IdentityTokens } from "@svc/cluster/proof/IdentityTokens"
import { SigningKeys } from "@svc/cluster/proof/SigningKeys"
import { SignIns } from "@svc/cluster/proof/SignIns"
import { Writes } from "@svc/cluster/store/Database"
import { Vault } from "@svc/cluster/vault/Vault"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { afterwards } from "../harness/Afterwards.ts"
import { newHandle } from "../harness/Client.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const world = Layer.mergeAll(Grants.layer, OAuthRequests.layer, Vault.layer, CardQueries.layer).pipe(
  Layer.provideMerge(actors()),
)

const always = { ifTag: null, ifAbsent: false, ifPresent: false }
const redirect = "http://localhost:4711/callback"
const client = { id: "oc_test", name: "App", redirects: [redirect], describedBy: null, idTokenAlgorithm: null }
const consented = { client, redirect, challenge: "c".repeat(43), resource: "http://localhost:8080/mcp" }
const holder: Credential = { kind: "session", credentialId: accountHolder.credentialId!, expiresAt: null, grant: null }

/** An Identity, and the ends that a write may have to wait for. */
const prepared = Effect.gen(function* () {
  const [sql, org, handle] = [yield* Writes, yield* makeOrg, newHandle("ends")]
  // Another Identity of the account, which does not change.
  yield* makeIdentity(org, newHandle("beside"))
  const id = (yield* makeIdentity(org, handle)).id as IdentityId
  const subject = { id, orgId: org, handle, canonical: handle } as never
  const ends = {
    account: sql`update org set status = 'deleting' where id = ${org}`,
    identity: sql`update identity set status = 'deleting' where id = ${id}`,
    stop: sql`update mailbox set stopped_at = now() where identity_id = ${id}`,
  }
  const undone = Effect.all([
    sql`update org set status = 'active' where id = ${org}`,
    sql`update identity set status = 'ready' where id = ${id}`,
    sql`update mailbox set stopped_at = null where identity_id = ${id}`,
  ])
  /** Returns why the write is refused after the end. */
  const refused = <A, E extends object, R>(end: keyof typeof ends, write: Effect.Effect<A, E, R>) =>
    Effect.map(Effect.ensuring(afterwards(ends[end], Effect.flip(write)), Effect.orDie(undone)), (error) =>
      "code" in error ? error.code : "reason" in error ? error.reason : error,
    )
  return { sql, org, handle, id, subject, ends, undone, refused }
})

layer(world, { timeout: "60 seconds" })("After the end that it waited for", (it) => {
  it.effect("a secret is not written", () =>
    Effect.gen(function* () {
      const { org, id, refused } = yield* prepared
      const vault = yield* Vault
      const [own, ofIdentity] = [null, id].map((identity) =>
        vault.put({ org, identity }, "token", { value: "x" }, always),
      )
      expect(yield* refused("account", own!)).toBe("account_deleting")
      expect(yield* refused("account", ofIdentity!)).toBe("account_deleting")
      expect(yield* refused("identity", ofIdentity!)).toBe("identity_not_ready")
      expect(yield* rows((sql) => sql`select 1 from vault_secret where org_id = ${org}`)).toEqual([])
    }),
  )

  it.effect("an app gets no Grant", () =>
    Effect.gen(function* () {
      const { sql, org, refused } = yield* prepared
      const session = yield* makeUuidV7
      yield* sql`
        insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
        values (${session}, ${org}, ${Buffer.from(session)}, now(), now(), now() + interval '1 day')`
      const { id } = yield* (yield* OAuthRequests).open("client_id=oc_test", session)
      const choice = { scopes: ["identity:read"], identities: null, days: 30 }
      const consent = (yield* Grants).consent(org, { id, session }, consented, choice, accountHolder)
      expect(yield* refused("account", consent)).toBe("gone")
      expect(yield* rows((sql) => sql`select 1 from client_grant where org_id = ${org}`)).toEqual([])
    }),
  )

  it.effect("proof settings are not changed, no key is made, and no sign-in is approved", () =>
    Effect.gen(function* () {
      const { sql, handle, id, subject, ends, undone, refused } = yield* prepared
      const [tokens, signing, signIns] = [yield* IdentityTokens, yield* SigningKeys, yield* SignIns]
      const [signIn] = yield* insertSignIn(sql, handle)
      yield* sql`delete from signing_key where identity_id = ${id}`
      for (const end of ["account", "identity"] as const) {
        expect(yield* refused(end, tokens.set(subject, { audiences: "any" }, undefined, undefined))).toBe("not_found")
        expect(yield* afterwards(ends[end], signing.ensured(subject))).toEqual([])
        yield* undone
        const decided = signIns.decide(subject, signIn!.id, true, accountHolder, undefined)
        expect(yield* refused(end, decided)).toBe("conflict")
      }
      expect(yield* tokens.settings(id)).toEqual({ audiences: [], sites: [] })
    }),
  )

  it.effect("nothing is signed for an Identity, nor for a credential that was revoked or narrowed", () =>
    Effect.gen(function* () {
      const { sql, org, id, subject, ends, refused } = yield* prepared
      const tokens = yield* IdentityTokens
      const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org)))
      const issue = (caller: Credential) =>
        Effect.flatMap(makeUuidV7, (id) =>
          tokens.issue(
            subject,
            caller,
            { id, audience: "aud", seconds: 60, nonce: undefined, algorithm: "ES256", isFree: true },
            note,
            accountHolder,
          ),
        )
      expect(yield* refused("account", issue(holder))).toBe("not_found")
      expect(yield* refused("identity", issue(holder))).toBe("identity_not_ready")
      expect(yield* refused("stop", issue(holder))).toBe("mail_paused")
      const grant = yield* makeUuidV7
      yield* sql`
        insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
        values (${grant}, ${org}, 'oc_test', 'App', 'x', 'x', '', '{proof:token}', now(), now() + interval '1 day')`
      const app: Credential = { kind: "grant", credentialId: grant, expiresAt: null, grant: null }
      const narrowed = sql`update client_grant set scopes = '{proof:read}' where id = ${grant}`
      const revoked = sql`update client_grant set scopes = '{proof:token}', revoked_at = now() where id = ${grant}`
      expect(yield* Effect.exit(issue(app))).toHaveProperty("_tag", "Success")
      expect(yield* afterwards(narrowed, Effect.flip(issue(app)))).toMatchObject({ code: "unauthenticated" })
      yield* sql`update client_grant set scopes = '{proof:token}' where id = ${grant}`
      expect(yield* afterwards(revoked, Effect.flip(issue(app)))).toMatchObject({ code: "unauthenticated" })
      expect(yield* rows((sql) => sql`select 1 from audit where org_id = ${org}`)).toHaveLength(1)
      // The card is signed by its first reader.
      const cards = yield* CardQueries
      const signatures = rows((sql) => sql`select signature from card where identity_id = ${id}`)
      const retired = sql`update signing_key set retired_at = now() where identity_id = ${id}`
      for (const end of [ends.stop, ends.identity, retired]) {
        yield* sql`update mailbox set stopped_at = null where identity_id = ${id}`
        yield* sql`update identity set status = 'ready' where id = ${id}`
        yield* cards.read(id)
        expect(yield* signatures).not.toEqual([{ signature: null }])
        yield* sql`update card set signature = null where identity_id = ${id}`
        yield* afterwards(end, cards.read(id))
        expect(yield* signatures).toEqual([{ signature: null }])
      }
    }),
  )
})
