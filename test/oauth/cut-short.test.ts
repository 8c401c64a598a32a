/** Consents that are interrupted before their commit, and processes with different clocks (docs/crash-matrix.md). */
import { createHash } from "node:crypto"
import { Grants } from "@svc/cluster/oauth/Grants"
import { GrantTokens } from "@svc/cluster/oauth/GrantTokens"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { makeUuidV7 } from "@svc/domain/Ids"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { interruptAtLock } from "../harness/InterruptedStatement.ts"
import { accountHolder, makeOrg, rows, storesLayer } from "../harness/Stores.ts"

const redirect = "http://localhost:4711/callback"
const client = { id: "oc_test", name: "App", redirects: [redirect], describedBy: null, idTokenAlgorithm: null }
const verifier = "v".repeat(43)
const requestFields = {
  client,
  redirect,
  challenge: createHash("sha256").update(verifier).digest("base64url"),
  resource: "http://localhost:8080/mcp",
}
const choice = { scopes: ["identity:read"], identities: null, days: 30 }
const world = Layer.mergeAll(Grants.layer, GrantTokens.layer, OAuthRequests.layer).pipe(Layer.provideMerge(storesLayer))

/** An account holder who opens the client's request. */
const looking = Effect.gen(function* () {
  const org = yield* makeOrg
  const session = yield* makeUuidV7
  const sql = yield* Writes
  yield* sql`
    insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${session}, ${org}, ${Buffer.from(session)}, now(), now(), now() + interval '1 day')`
  const requests = yield* OAuthRequests
  const grants = yield* Grants
  const open = Effect.map(requests.open("client_id=oc_test", session), ({ id }) => ({ id, session }))
  return {
    org,
    requests,
    session,
    open,
    allow: (request: { readonly id: string; readonly session: string }) =>
      grants.consent(org, request, requestFields, choice, accountHolder),
  }
})

layer(world, { timeout: "60 seconds" })("Consent", (it) => {
  it.effect("interrupted before its commit leaves the request unchanged, and the form can be sent again", () =>
    Effect.gen(function* () {
      const { org, open, allow, requests, session } = yield* looking
      const request = yield* open
      const made = rows<{ table: string; n: number }>(
        (sql) => sql`
          select 'client_grant' as table, count(*)::int as n from client_grant where org_id = ${org}
          union all select 'event', count(*)::int from event where org_id = ${org}
          union all select 'grant_notice', count(*)::int from grant_notice where org_id = ${org}
          union all select 'oauth_token', count(*)::int from oauth_token t join client_grant g on g.id = t.grant_id where g.org_id = ${org}`,
      )
      const counts = Effect.map(made, (found) => Object.fromEntries(found.map(({ table, n }) => [table, n])))
      expect(yield* interruptAtLock(allow(request))).toMatchObject({
        _tag: "Failure",
        failure: { code: "unavailable" },
      })
      expect(yield* counts).toEqual({ client_grant: 0, event: 0, grant_notice: 0, oauth_token: 0 })
      expect(yield* requests.claim(request.id, session, undefined)).toMatchObject({ id: request.id })
      const { code } = yield* allow(request)
      expect(yield* counts).toEqual({ client_grant: 1, event: 1, grant_notice: 1, oauth_token: 1 })
      // The user saw no response and sends the form again: the request is settled, and nothing is created twice.
      expect(yield* Effect.flip(allow(request))).toMatchObject({ _tag: "ConsentRefused", reason: "gone" })
      expect((yield* counts)["client_grant"]).toBe(1)
      const tokens = yield* GrantTokens
      const pair = yield* tokens.exchange({ code, clientId: client.id, redirect, verifier })
      expect(pair.scopes).toEqual(choice.scopes)
    }),
  )

  it.effect("uses the clock of the store for codes and tokens, not that of the process", () =>
    Effect.gen(function* () {
      const { open, allow } = yield* looking
      const tokens = yield* GrantTokens
      const sql = yield* Writes
      const exchange = (code: string) => tokens.exchange({ code, clientId: client.id, redirect, verifier })
      for (const minutes of [-90, 90]) {
        const { code } = yield* allow(yield* open)
        // The clock of the second process differs by this much.
        yield* TestClock.setTime(Date.now() + minutes * 60_000)
        const pair = yield* exchange(code)
        expect(pair.expiresInSeconds * 1_000).toBeGreaterThan(Timing.accessTokenMillis - 120_000)
        expect(pair.expiresInSeconds * 1_000).toBeLessThanOrEqual(Timing.accessTokenMillis)
        yield* tokens.refresh(pair.refresh, client.id)
        // Within its minute the previous token is accepted again, by the clock of the store.
        const repeated = yield* tokens.refresh(pair.refresh, client.id)
        expect(yield* tokens.isAlive(repeated.refresh, client.id)).toBe(true)

        const { code: late } = yield* allow(yield* open)
        yield* sql`
          update oauth_token set expires_at = expires_at - ${`${Timing.codeMillis} milliseconds`}::interval where kind = 'code'`
        expect(yield* Effect.flip(exchange(late))).toMatchObject({ description: "The code has expired." })
        yield* TestClock.setTime(Date.now())
      }
    }),
  )
})
