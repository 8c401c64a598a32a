/** Proof settings and refused identity tokens in the store. */
import { act, noKey } from "../audit/Acts.ts"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { IdentityTokens } from "@svc/cluster/proof/IdentityTokens"
import { Writes } from "@svc/cluster/store/Database"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { IdentityId } from "@svc/domain/IdentityRef"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { decodeJwt } from "jose"
import { actors, makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const prepared = Effect.gen(function* () {
  return yield* ofOrg(yield* makeOrg)
})

const ofOrg = Effect.fnUntraced(function* (org: string) {
  const [sql, tokens, handle] = [yield* Writes, yield* IdentityTokens, newHandle("tokens")]
  const id = (yield* makeIdentity(org, handle)).id as IdentityId
  const subject = { id, orgId: org, handle }
  const caller = { kind: "session", credentialId: accountHolder.credentialId!, expiresAt: null, grant: null } as const
  const refused = Effect.fnUntraced(function* (audience: string) {
    const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org)))
    const request = { id: yield* makeUuidV7, audience, seconds: 60, nonce: undefined, algorithm: "ES256" } as const
    const issue = tokens.issue(subject, caller, { ...request, isFree: false }, note, accountHolder)
    expect(yield* Effect.flip(issue)).toMatchObject({ code: "audience_not_allowed" })
  })
  const told = Effect.map(
    rows<{ audience: string }>(
      (sql) => sql`
        select data ->> 'audience' as audience from event where identity_id = ${id} and type = 'proof.token_refused' order by seq`,
    ),
    (events) => events.map(({ audience }) => audience),
  )
  return { sql, tokens, org, id, subject, refused, told }
})

layer(actors(), { timeout: "60 seconds" })("A refused token", (it) => {
  it.effect("raises an Event once an hour for an audience, and ten an hour for an Identity", () =>
    Effect.gen(function* () {
      const { sql, org, id, refused, told } = yield* prepared
      const names = Array.from({ length: 12 }, (_, n) => `a${n}`)
      for (const audience of ["a0", ...names]) yield* refused(audience)
      expect(yield* told).toEqual(names.slice(0, 10))
      yield* sql`
        update event set created_at = created_at - interval '61 minutes'
        where identity_id = ${id} and data ->> 'audience' in ('a0', 'a1')`
      for (const audience of ["a9", "a0", "a0", "a11", "a1"]) yield* refused(audience)
      expect(yield* told).toEqual([...names.slice(0, 10), "a0", "a11"])
      // Another Identity of the account has ten of its own.
      const other = yield* ofOrg(org)
      yield* other.refused("a0")
      expect(yield* other.told).toEqual(["a0"])
      expect(yield* rows((sql) => sql`select 1 from audit where org_id = ${org}`)).toEqual([])
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("A token for an app", (it) => {
  it.effect("names the Grant of the app as the actor", () =>
    Effect.gen(function* () {
      const { sql, tokens, org, subject } = yield* prepared
      const grant = yield* makeUuidV7
      yield* sql`
        insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
        values (${grant}, ${org}, 'oc_1', 'App', 'app.example', '', '', '{proof:token}', now(), now() + interval '1 day')`
      const note = AuditWrite.toNote(yield* AuditWrite.make(noKey, act(org)))
      const app = { kind: "grant", credentialId: grant, expiresAt: null, grant: { id: grant } } as never
      const request = {
        id: grant,
        audience: "aud",
        seconds: 60,
        nonce: undefined,
        algorithm: "ES256",
        isFree: true,
      } as const
      const { token } = yield* tokens.issue(subject, app, request, note, accountHolder)
      expect(decodeJwt(token)["act"]).toEqual({ sub: grant })
    }),
  )
})

layer(actors(), { timeout: "60 seconds" })("Proof settings", (it) => {
  it.effect("are changed one at a time, and only if neither has changed since it was read", () =>
    Effect.gen(function* () {
      const { sql, tokens, org, id, subject } = yield* prepared
      const set = (patch: object, seen?: { audiences: ReadonlyArray<string>; sites: ReadonlyArray<string> }) =>
        tokens.set(subject, patch, seen, undefined)
      const none = { audiences: [], sites: [] }
      yield* set({ sites: ["app.example"] }, none)
      yield* set({ audiences: ["aud"] }, { audiences: [], sites: ["app.example"] })
      const now = { audiences: ["aud"], sites: ["app.example"] }
      expect(yield* tokens.settings(id)).toEqual(now)
      for (const seen of [none, { ...now, sites: [] }, { ...now, audiences: [] }])
        expect(yield* Effect.flip(set({ audiences: [] }, seen))).toMatchObject({ code: "precondition_failed" })
      expect(yield* tokens.settings(id)).toEqual(now)
      yield* set({ audiences: "any" })
      yield* set({ sites: [] })
      expect(yield* tokens.settings(id)).toEqual({ audiences: "any", sites: [] })
      yield* sql`update org set status = 'deleting' where id = ${org}`
      expect(yield* Effect.flip(set({ audiences: [] }))).toMatchObject({ code: "not_found" })
    }),
  )
})
