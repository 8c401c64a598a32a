/** Sign-ins in the store: which request an approval is good for, what ends it, and what ends the access token. */
import { act, noKey } from "../audit/Acts.ts"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import type { Credential } from "@svc/cluster/proof/IssuePermission"
import { SignIns, type SignInRequest } from "@svc/cluster/proof/SignIns"
import { SignInTokens } from "@svc/cluster/proof/SignInTokens"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { decodeJwt, decodeProtectedHeader } from "jose"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { insertSignIn } from "../harness/SignIns.ts"
import { accountHolder } from "../harness/Stores.ts"
import { challengeOf, verifierOf } from "../oauth/Consent.ts"

const redirect = "https://app.example/callback"
const clientOf = (name: string): SignInRequest["client"] => ({
  id: `oc_${name}`,
  name,
  redirects: [redirect],
  idTokenAlgorithm: "ES256",
})

/** An Identity with a Grant and a session as credentials, and what a site and an account holder do. */
const prepared = Effect.gen(function* () {
  const [sql, signIns, tokens, org, handle] = [
    yield* Writes,
    yield* SignIns,
    yield* SignInTokens,
    yield* makeOrg,
    newHandle("signs"),
  ]
  const id = (yield* makeIdentity(org, handle)).id as IdentityId
  const subject = { id, orgId: org, handle }
  const [grantId, sessionId, keyId] = [yield* makeUuidV7, yield* makeUuidV7, yield* makeUuidV7]
  yield* sql`
    insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
    values (${grantId}, ${org}, 'oc_test', 'App', 'x', 'x', '', '{proof:token}', now(), now() + interval '1 day')`
  yield* sql`
    insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${sessionId}, ${org}, ${Buffer.from(sessionId)}, now(), now(), now() + interval '1 day')`
  yield* sql`
    insert into api_key (id, org_id, identity_id, name, token_hash, token_prefix, created_at)
    values (${keyId}, ${org}, ${id}, 'agent', ${Buffer.from(keyId)}, 'svc_', now())`
  // Another site is allowed.
  yield* sql`insert into proof_setting (identity_id, audiences, sites) values (${id}, '[]', '["shop.example"]')`
  const credentials = {
    key: { kind: "identity_key", credentialId: keyId, expiresAt: null, grant: null },
    grant: { kind: "grant", credentialId: grantId, expiresAt: null, grant: null },
    session: { kind: "session", credentialId: sessionId, expiresAt: null, grant: null },
  } as const satisfies Record<string, Credential>
  const note = Effect.map(AuditWrite.make(noKey, act(org)), (made) => AuditWrite.toNote(made))
  /** Requests a sign-in. Returns it with what the token endpoint expects if it has a code. */
  const request = Effect.fnUntraced(function* (
    wanted: Partial<SignInRequest> = {},
    caller: Credential = credentials.session,
  ) {
    const verifier = verifierOf()
    const asked: SignInRequest = {
      id: yield* makeUuidV7,
      client: clientOf("shop"),
      redirect,
      scopes: ["openid"],
      nonce: null,
      challenge: challengeOf(verifier),
      isFree: false,
      ...wanted,
    }
    const { code, signIn } = yield* signIns.create(subject, caller, asked, accountHolder, yield* note)
    return { signIn, form: { code: code!, clientId: asked.client.id, redirect: asked.redirect, verifier } }
  })
  const decide = (signIn: string, isApproved = true) =>
    signIns.decide(subject, signIn, isApproved, accountHolder, undefined)
  const expire = (signIn: string, interval: string) =>
    sql`update agent_sign_in set expires_at = clock_timestamp() + ${interval}::interval where id = ${signIn}`
  const exchange = (form: Parameters<typeof tokens.exchange>[0]) => tokens.exchange(form, () => note)
  return { sql, signIns, tokens, org, handle, id, subject, credentials, request, decide, expire, exchange }
})

layer(actors(), { timeout: "60 seconds" })("An approved sign-in", (it) => {
  it.effect(
    "starts only for its client at its site, for no more scopes, once, before it expires, and as asked last",
    () =>
      Effect.gen(function* () {
        const { sql, tokens, credentials, request, decide, expire, exchange } = yield* prepared
        const scopes = ["openid", "email"]
        const { signIn: first } = yield* request({ scopes }, credentials.grant)
        expect(first.status).toBe("awaiting_approval")
        expect((yield* request({ scopes })).signIn.id).toBe(first.id)
        expect(yield* decide(first.id)).toMatchObject({ status: "approved", decided_at: expect.any(Date) })
        for (const other of [
          { client: clientOf("other") },
          { redirect: "https://elsewhere.example/callback" },
          { scopes: ["openid", "profile"] },
        ]) {
          const { signIn } = yield* request(other)
          expect([signIn.status, signIn.id === first.id]).toEqual(["awaiting_approval", false])
        }
        yield* expire(first.id, "0")
        const { signIn: second } = yield* request()
        expect([second.status, second.id === first.id]).toEqual(["awaiting_approval", false])
        // An approved sign-in starts, although a newer one awaits approval.
        yield* expire(first.id, "1 hour")
        const { signIn, form } = yield* request({ redirect: `${redirect}/2`, nonce: "n-2" })
        expect(signIn).toMatchObject({
          id: first.id,
          status: "started",
          scopes: ["openid"],
          redirect_uri: `${redirect}/2`,
        })
        expect((yield* request()).signIn.id).toBe(second.id)
        // The credential that asked last counts.
        yield* sql`update client_grant set revoked_at = now() where id = ${credentials.grant.credentialId}`
        const { access, idToken } = yield* exchange(form)
        expect(decodeProtectedHeader(idToken).alg).toBe("ES256")
        expect(yield* tokens.claims(access)).toBeDefined()
      }),
  )

  it.effect("starts immediately for the account holder, also if it still awaits approval", () =>
    Effect.gen(function* () {
      const { request } = yield* prepared
      const { signIn: waiting } = yield* request()
      const { signIn } = yield* request({ isFree: true })
      expect(signIn).toMatchObject({ id: waiting.id, status: "started" })
    }),
  )

  it.effect("is good for a day, and is used before an older request that awaits approval", () =>
    Effect.gen(function* () {
      const { request, decide } = yield* prepared
      yield* request({ scopes: ["openid", "email"] })
      const { signIn: newer } = yield* request({ scopes: ["openid", "profile"] })
      const { decided_at, expires_at } = yield* decide(newer.id)
      expect(Math.round((expires_at.getTime() - decided_at!.getTime()) / 1000)).toBe(Timing.signInApprovedMillis / 1000)
      expect((yield* request()).signIn).toMatchObject({ id: newer.id, status: "started" })
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("A sign-in", (it) => {
  it.effect("names the agent as its card does, and ends if its code is used twice at the same time", () =>
    Effect.gen(function* () {
      const { sql, signIns, tokens, handle, id, request, exchange } = yield* prepared
      yield* sql`update card set fields = fields || '{"name":"Ada L."}' where identity_id = ${id}`
      const { signIn, form } = yield* request({ isFree: true, scopes: ["openid", "profile"] })
      expect(yield* Effect.flip(exchange({ ...form, clientId: "oc_other" }))).toMatchObject({
        description: "The code was issued to another client.",
        known: { id: signIn.id },
      })
      const uses = yield* Effect.all([Effect.result(exchange(form)), Effect.result(exchange(form))], {
        concurrency: "unbounded",
      })
      const [made] = uses.filter(Result.isSuccess)
      expect(decodeJwt(made!.success.idToken)).toMatchObject({
        name: "Ada L.",
        preferred_username: handle,
        auth_time: Math.floor(signIn.created_at.getTime() / 1000),
      })
      expect(uses.filter(Result.isFailure).map(({ failure }) => failure)).toMatchObject([{ hasEnded: true }])
      expect(yield* signIns.read(id, signIn.id)).toMatchObject({ status: "ended" })
      expect(yield* tokens.claims(made!.success.access)).toBeUndefined()
    }),
  )

  it.effect("is decided once and before it expires, and a refused or ended one stays so", () =>
    Effect.gen(function* () {
      const { signIns, subject, handle, id, sql, decide, expire } = yield* prepared
      const made = Effect.map(insertSignIn(sql, handle), ([row]) => row!.id)
      const late = yield* made
      yield* expire(late, "0")
      for (const isApproved of [true, false])
        expect(yield* Effect.flip(decide(late, isApproved))).toMatchObject({ detail: "The sign-in is expired." })
      const beside = yield* made
      const refused = yield* made
      expect((yield* decide(refused, false)).status).toBe("refused")
      expect(yield* Effect.flip(decide(refused))).toMatchObject({ detail: "The sign-in is refused." })
      const end = (signIn: string) => signIns.end(subject, signIn, undefined)
      yield* end(refused)
      const ended = yield* made
      yield* end(ended)
      const { ended_at } = yield* signIns.read(id, ended)
      yield* end(ended)
      expect(yield* signIns.read(id, ended)).toMatchObject({ status: "ended", ended_at })
      expect(yield* signIns.read(id, refused)).toMatchObject({ status: "refused", ended_at: null })
      const stranger = yield* prepared
      for (const call of [
        end(yield* makeUuidV7),
        stranger.signIns.end(stranger.subject, beside, undefined),
        stranger.decide(beside),
        stranger.signIns.read(stranger.id, beside),
      ])
        expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
      expect(yield* signIns.read(id, beside)).toMatchObject({ status: "awaiting_approval", decided_at: null })
      const page = yield* signIns.list(id, { limit: 2 })
      const rest = yield* signIns.list(id, { limit: 2, cursor: page.next_cursor! })
      expect([page, rest].map(({ entries }) => entries.map((one) => one.id))).toEqual([
        [ended, refused],
        [beside, late],
      ])
    }),
  )

  it.effect("is shown as expired only while it could still have continued", () =>
    Effect.gen(function* () {
      const { signIns, handle, id, sql, expire } = yield* prepared
      const [row] = yield* insertSignIn(sql, handle)
      const shown: Record<string, ReadonlyArray<string>> = {}
      for (const status of ["awaiting_approval", "approved", "started", "signed_in", "refused", "ended"]) {
        yield* sql`update agent_sign_in set status = ${status} where id = ${row!.id}`
        const statuses: Array<string> = []
        for (const end of ["1 hour", "0"]) {
          yield* expire(row!.id, end)
          statuses.push((yield* signIns.read(id, row!.id)).status)
        }
        shown[status] = statuses
      }
      expect(shown).toEqual({
        awaiting_approval: ["awaiting_approval", "expired"],
        approved: ["approved", "expired"],
        started: ["started", "expired"],
        signed_in: ["signed_in", "signed_in"],
        refused: ["refused", "refused"],
        ended: ["ended", "ended"],
      })
    }),
  )

  it.effect("gives an access token that ends with its credential, if that ends first", () =>
    Effect.gen(function* () {
      const { sql, credentials, request, exchange } = yield* prepared
      const { credentialId } = credentials.grant
      const ends = sql<{ same: boolean }>`
        select s.expires_at = date_trunc('milliseconds', g.expires_at) as same from agent_sign_in s join client_grant g on g.id = s.credential_id
        where g.id = ${credentialId}`
      for (const [interval, same] of [
        ["30 seconds", true],
        ["1 day", false],
      ]) {
        yield* sql`delete from agent_sign_in where credential_id = ${credentialId}`
        yield* sql`update client_grant set expires_at = now() + ${interval}::interval where id = ${credentialId}`
        yield* exchange((yield* request({ isFree: true }, credentials.grant)).form)
        expect(yield* ends).toEqual([{ same }])
      }
    }),
  )

  it.effect("gives no token after it or its credential has ended, and its access token ends with what allowed it", () =>
    Effect.gen(function* () {
      const { sql, signIns, tokens, org, id, subject, credentials, request, expire, exchange } = yield* prepared
      const free = { isFree: true }
      const late = yield* request(free)
      yield* expire(late.signIn.id, "0")
      const ended = yield* request(free)
      yield* signIns.end(subject, ended.signIn.id, undefined)
      for (const { form } of [late, ended])
        expect(yield* Effect.flip(exchange(form))).toMatchObject({ description: "The code has expired." })
      const beside = yield* request(free)
      const { access: stays } = yield* exchange(beside.form)
      for (const kind of ["session", "grant", "key"] as const) {
        const { credentialId } = credentials[kind]
        const { signIn, form } = yield* request(free, credentials[kind])
        const { access } = yield* exchange(form)
        expect(yield* signIns.read(id, signIn.id)).toMatchObject({
          status: "signed_in",
          signed_in_at: expect.any(Date),
        })
        const ofCredential = {
          session: {
            "the session": [
              sql`update session set expires_at = clock_timestamp() where id = ${credentialId}`,
              sql`update session set expires_at = now() + interval '1 day' where id = ${credentialId}`,
            ],
          },
          grant: {
            "the Grant": [
              sql`update client_grant set expires_at = clock_timestamp() where id = ${credentialId}`,
              sql`update client_grant set expires_at = now() + interval '1 day' where id = ${credentialId}`,
            ],
            "its revocation": [
              sql`update client_grant set revoked_at = now() where id = ${credentialId}`,
              sql`update client_grant set revoked_at = null where id = ${credentialId}`,
            ],
            "its other Identities": [
              sql`update client_grant set identities = ${[org]}::uuid[] where id = ${credentialId}`,
              sql`update client_grant set identities = ${[id]}::uuid[] where id = ${credentialId}`,
            ],
          },
          key: {
            "the key": [
              sql`update api_key set revoked_at = now() where id = ${credentialId}`,
              sql`update api_key set revoked_at = null where id = ${credentialId}`,
            ],
          },
        }
        const ends: Record<string, ReadonlyArray<Effect.Effect<unknown, unknown>>> = {
          "the token": [expire(signIn.id, "0"), expire(signIn.id, "1 hour")],
          "the Identity": [
            sql`update identity set status = 'deleting' where id = ${id}`,
            sql`update identity set status = 'ready' where id = ${id}`,
          ],
          "a stop": [
            sql`update mailbox set stopped_at = now() where identity_id = ${id}`,
            sql`update mailbox set stopped_at = null where identity_id = ${id}`,
          ],
          "the account": [
            sql`update org set status = 'deleting' where id = ${org}`,
            sql`update org set status = 'active' where id = ${org}`,
          ],
          ...ofCredential[kind],
        }
        for (const [what, [end, undone]] of Object.entries(ends)) {
          yield* end!
          expect([what, yield* tokens.claims(access)]).toEqual([what, undefined])
          yield* undone!
          expect([what, yield* tokens.claims(access)]).toEqual([what, { sub: `agent:${id}` }])
        }
        // A second use of the code ends the sign-in, once.
        const used = { description: expect.stringContaining("already used"), hasEnded: true }
        expect(yield* Effect.flip(exchange(form))).toMatchObject(used)
        expect(yield* signIns.read(id, signIn.id)).toMatchObject({ status: "ended", ended_at: expect.any(Date) })
        expect(yield* Effect.flip(exchange(form))).toMatchObject({ description: "The code has expired." })
        expect(yield* tokens.claims(access)).toBeUndefined()
        expect(yield* tokens.claims(stays)).toEqual({ sub: `agent:${id}` })
      }
    }),
  )
})
