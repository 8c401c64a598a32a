/** Grants and their tokens in the store: what a client gets, which use ends the Grant, and what one account sees of another. */
import { expect, layer } from "@effect/vitest"
import { ChangeFeed } from "@svc/cluster/feed/ChangeFeed"
import { type Choice, Grants } from "@svc/cluster/oauth/Grants"
import { GrantTokens } from "@svc/cluster/oauth/GrantTokens"
import { OAuthRequests } from "@svc/cluster/oauth/OAuthRequests"
import { Writes } from "@svc/cluster/store/Database"
import { makeOAuthToken } from "@svc/domain/account/Token"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Clock, Effect, Layer, Result } from "effect"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, makeOrg, rows, storesLayer } from "../harness/Stores.ts"
import { challengeOf, verifierOf } from "./Consent.ts"

const redirect = "http://localhost:4711/callback"
const verifier = verifierOf()
const day = 86_400_000

/** Creates an Org with a session, and returns how its holder allows clients access. */
const account = Effect.gen(function* () {
  const [org, session, sql] = [yield* makeOrg, yield* makeUuidV7, yield* Writes]
  yield* sql`
    insert into session (id, org_id, token_hash, created_at, last_used_at, expires_at)
    values (${session}, ${org}, sha256(${session}::text::bytea), now(), now(), now() + interval '1 day')`
  const [grants, tokens, requests] = [yield* Grants, yield* GrantTokens, yield* OAuthRequests]
  const consent = Effect.fnUntraced(function* (choice: Partial<Choice> = {}, client = "oc_1", request?: string) {
    const { id } = request === undefined ? yield* requests.open("client_id=x", session) : { id: request }
    const app = { id: client, name: "App", redirects: [redirect], describedBy: null, idTokenAlgorithm: null }
    const requested = { client: app, redirect, challenge: challengeOf(verifier), resource: "" }
    const chosen = { scopes: ["mail:read"], identities: null, days: 30, ...choice }
    return yield* grants.consent(org, { id, session }, requested, chosen, accountHolder)
  })
  const exchange = (code: string, change: object = {}) =>
    tokens.exchange({ code, clientId: "oc_1", redirect, verifier, ...change })
  /** Obtains a first pair of tokens. */
  const pair = Effect.flatMap(consent(), ({ code }) => exchange(code))
  /** Makes the first uses of all tokens a minute older. */
  const aMinuteLater = sql`
    update oauth_token t set first_used_at = first_used_at - interval '61 seconds' from client_grant g
    where g.id = t.grant_id and g.org_id = ${org}`
  /** Returns an Identity of an Org. */
  const identityOf = Effect.fnUntraced(function* (org: string, handle: string) {
    const id = yield* makeUuidV7
    yield* sql`insert into handle (canonical, handle, org_id, registered_at) values (${handle}, ${handle}, ${org}, now())`
    yield* sql`
      insert into identity (id, canonical, handle, org_id, status, saga, created_at)
      values (${id}, ${handle}, ${handle}, ${org}, 'ready', '{}', now())`
    return id
  })
  return { org, session, sql, grants, tokens, requests, consent, exchange, pair, aMinuteLater, identityOf }
})

const refusal = <A, R>(call: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(call), (error) => {
    const { description, whose } = error as { description: string; whose: { ended: string | null } | null }
    return [description, whose?.ended]
  })

const world = Layer.mergeAll(Grants.layer, GrantTokens.layer, OAuthRequests.layer).pipe(Layer.provideMerge(storesLayer))

layer(world)("A code", (it) => {
  it.effect(
    "is exchanged once, by its client, for its redirect and with its verifier; a second use ends the Grant",
    () =>
      Effect.gen(function* () {
        const { org, grants, consent, exchange } = yield* account
        const { code, grantId } = yield* consent()
        const unknown = makeOAuthToken("code", new Uint8Array(32))
        expect(yield* refusal(exchange("nonsense"))).toEqual(["The code is invalid.", undefined])
        expect(yield* refusal(exchange(unknown))).toEqual(["The code is unknown or has expired.", undefined])
        for (const [change, description] of [
          [{ clientId: "oc_2" }, "The code was issued to another client."],
          [{ redirect: `${redirect}2` }, "The code was issued for another redirect_uri."],
          [{ verifier: verifierOf() }, "The code_verifier does not match the code."],
        ] as const)
          expect(yield* refusal(exchange(code, change))).toEqual([description, null])
        const pair = yield* exchange(code)
        expect(pair).toMatchObject({ grantId, orgId: org, client: "App", scopes: ["mail:read"] })
        expect([pair.access, pair.refresh].map((token) => token.slice(0, 8))).toEqual(["svc_oat_", "svc_ort_"])
        expect(pair.expiresInSeconds).toBeGreaterThan(3_500)
        expect((yield* grants.list(org, { limit: 10 })).entries).toHaveLength(1)
        let announced = 0
        yield* (yield* ChangeFeed).on(org, () => void announced++)
        const used = "The code was already used. The tokens that were issued for it are revoked."
        expect(yield* refusal(exchange(code))).toEqual([used, "code_reuse"])
        expect(announced).toBe(1)
        const notices = rows((sql) => sql`select kind from grant_notice where org_id = ${org}`)
        expect(yield* notices).toEqual([{ kind: "created" }])
        expect(yield* refusal(exchange(code))).toEqual([used, null])
        expect(announced).toBe(1)
        expect((yield* grants.list(org, { limit: 10 })).entries).toEqual([])
        expect(yield* refusal((yield* account).tokens.refresh(pair.refresh, "oc_1"))).toEqual([
          "The access was revoked or has expired.",
          null,
        ])
      }).pipe(Effect.scoped),
  )

  it.effect("is refused after it has expired, and after its Grant or its account has ended", () =>
    Effect.gen(function* () {
      const { org, sql, consent, exchange } = yield* account
      for (const end of [
        (hash: string) => sql`update oauth_token set expires_at = clock_timestamp() where grant_id = ${hash}`,
        (id: string) => sql`update client_grant set expires_at = now() where id = ${id}`,
        () => sql`update org set status = 'deleting' where id = ${org}`,
      ]) {
        const { code, grantId } = yield* consent()
        yield* end(grantId)
        expect(yield* refusal(exchange(code))).toEqual(["The code has expired.", null])
      }
    }),
  )
})

layer(world)("A refresh token", (it) => {
  it.effect("is accepted again until its new tokens are used, and a late second use ends the Grant", () =>
    Effect.gen(function* () {
      const { org, grants, tokens, pair, aMinuteLater } = yield* account
      const first = yield* pair
      const refresh = (token: string, client = "oc_1") => tokens.refresh(token, client)
      const unknown = makeOAuthToken("refresh", new Uint8Array(32))
      expect(yield* refusal(refresh("nonsense"))).toEqual(["The refresh token is invalid.", undefined])
      expect(yield* refusal(refresh(unknown))).toEqual(["The refresh token is unknown or has expired.", undefined])
      expect(yield* refusal(refresh(first.refresh, "oc_2"))).toEqual([
        "The refresh token was issued to another client.",
        null,
      ])
      const isAlive = (token: string, client = "oc_1") => tokens.isAlive(token, client)
      expect(
        yield* Effect.all([
          isAlive(first.refresh),
          isAlive(first.refresh, "oc_2"),
          isAlive(first.access),
          isAlive(unknown),
        ]),
      ).toEqual([true, false, false, false])
      yield* refresh(first.refresh)
      // The response was lost, and the program tries again later.
      yield* aMinuteLater
      const second = yield* refresh(first.refresh)
      yield* refresh(second.refresh)
      yield* aMinuteLater
      const used = "The refresh token was already used. The access is revoked."
      expect(yield* refusal(refresh(first.refresh))).toEqual([used, "refresh_reuse"])
      expect((yield* grants.list(org, { limit: 10 })).entries).toEqual([])
      const notices = rows((sql) => sql`select kind from grant_notice where org_id = ${org} and kind <> 'created'`)
      expect(yield* notices).toEqual([{ kind: "refresh_reuse" }])
      expect(yield* isAlive(second.refresh)).toBe(false)
    }),
  )

  it.effect("returns at most five pairs within a minute to parallel programs", () =>
    Effect.gen(function* () {
      const { tokens, pair, aMinuteLater } = yield* account
      const first = yield* pair
      const refresh = tokens.refresh(first.refresh, "oc_1")
      const start = yield* refresh
      yield* tokens.refresh(start.refresh, "oc_1")
      const pairs = [start, ...(yield* Effect.forEach(Array.from({ length: 4 }), () => refresh))]
      expect(new Set(pairs.map(({ refresh }) => refresh)).size).toBe(5)
      expect(yield* refusal(refresh)).toEqual([
        "The refresh token was used too often within a minute. Use the newest one.",
        null,
      ])
      yield* tokens.refresh(pairs[4]!.refresh, "oc_1")
      yield* aMinuteLater
      expect((yield* refusal(refresh))[1]).toBe("refresh_reuse")
      const other = tokens.refresh((yield* pair).refresh, "oc_1")
      yield* Effect.forEach(Array.from({ length: 5 }), () => other)
      yield* aMinuteLater
      expect((yield* refusal(other))[1]).toBe("refresh_reuse")
    }),
  )

  it.effect("ends when it expires, or when its own client revokes it", () =>
    Effect.gen(function* () {
      const { org, sql, tokens, pair } = yield* account
      const short = yield* pair
      yield* sql`update client_grant set expires_at = now() + interval '30 seconds' where id = ${short.grantId}`
      expect((yield* tokens.refresh(short.refresh, "oc_1")).expiresInSeconds).toBeLessThanOrEqual(30)
      yield* sql`update client_grant set expires_at = now() + interval '1 day' where id = ${short.grantId}`
      const late = yield* pair
      yield* sql`update oauth_token set expires_at = now() where grant_id = ${late.grantId} and kind = 'refresh'`
      expect(yield* tokens.isAlive(late.refresh, "oc_1")).toBe(false)
      expect(yield* refusal(tokens.refresh(late.refresh, "oc_1"))).toEqual([
        "The access was revoked or has expired.",
        null,
      ])
      for (const kind of ["access", "refresh"] as const) {
        const made = yield* pair
        for (const [token, client] of [
          ["nonsense", "oc_1"],
          [made[kind], "oc_2"],
        ] as const)
          expect(yield* tokens.revoke(token, client)).toBeUndefined()
        let announced = 0
        yield* (yield* ChangeFeed).on(org, () => void announced++)
        expect(yield* tokens.revoke(made[kind], "oc_1")).toMatchObject({ id: made.grantId, client_name: "App" })
        expect(announced).toBe(1)
        expect(yield* tokens.isAlive(made.refresh, "oc_1")).toBe(false)
        expect(yield* tokens.revoke(made[kind], "oc_1")).toBeUndefined()
        expect(announced).toBe(1)
      }
    }).pipe(Effect.scoped),
  )
})

layer(world)("A Grant", (it) => {
  it.effect("is renewed by a later consent, contains only Identities of its account, and is one of at most 50", () =>
    Effect.gen(function* () {
      const { org, session, sql, grants, requests, consent, identityOf } = yield* account
      const [ada, foreign] = [
        yield* identityOf(org, newHandle("ada")),
        yield* identityOf(yield* makeOrg, newHandle("bob")),
      ]
      for (const identities of [[], [foreign], [ada, foreign]])
        expect(yield* Effect.flip(consent({ identities }))).toMatchObject({ reason: "identities" })
      const { grantId } = yield* consent({ identities: [ada, ada], days: 1 })
      const now = yield* Clock.currentTimeMillis
      const [found] = (yield* grants.list(org, { limit: 10 })).entries
      expect(found).toMatchObject({ id: grantId, scopes: ["mail:read"], handles: [expect.stringMatching(/^ada/)] })
      expect(Math.round((found!.expires_at.getTime() - now) / day)).toBe(1)
      expect((yield* consent({ scopes: ["card:read"] })).grantId).toBe(grantId)
      const renewed = yield* grants.read(org, grantId)
      expect(renewed).toMatchObject({ scopes: ["card:read"], handles: null })
      expect(Math.round((renewed.expires_at.getTime() - now) / day)).toBe(30)
      const events = rows((sql) => sql<{ type: string }>`select type from event where org_id = ${org} order by seq`)
      expect((yield* events).map(({ type }) => type)).toEqual(["grant.created", "grant.changed"])
      const others = (n: number, expires: string) => sql`
        insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
        select uuidv7(), ${org}, 'oc_' || ${expires} || n, 'Other', 'x', 'x', '', '{mail:read}', now(), now() + ${expires}::interval
        from generate_series(1, ${n}::int) n`
      yield* others(48, "1 day")
      yield* others(3, "-1 day")
      const clients = ["oc_last", "oc_a", "oc_b", "oc_c", "oc_d", "oc_e"]
      const together = yield* Effect.forEach(clients, (client) => Effect.result(consent({}, client)), {
        concurrency: "unbounded",
      })
      expect(together.filter(Result.isSuccess)).toHaveLength(1)
      yield* sql`delete from client_grant where org_id = ${org} and client_name = 'App' and client_id <> 'oc_1'`
      const last = yield* consent({}, "oc_last")
      expect(yield* Effect.flip(consent({}, "oc_more"))).toMatchObject({ reason: "full" })
      // A Grant of the same client for another redirect is another one.
      yield* sql`update client_grant set client_id = 'oc_more' where id = (
        select id from client_grant where org_id = ${org} and client_name = 'Other' and expires_at > now() limit 1)`
      expect(yield* Effect.flip(consent({}, "oc_more"))).toMatchObject({ reason: "full" })
      expect((yield* consent({}, "oc_last")).grantId).toBe(last.grantId)
      yield* sql`update client_grant set expires_at = now() where id = ${last.grantId}`
      const again = yield* consent({}, "oc_last")
      expect(again.grantId).not.toBe(last.grantId)
      const first = yield* grants.list(org, { limit: 30 })
      const rest = yield* grants.list(org, { limit: 30, cursor: first.next_cursor! })
      const ids = [...first.entries, ...rest.entries].map(({ id }) => id)
      expect(ids).toEqual([...new Set(ids)].toSorted().toReversed())
      expect([ids.length, ids.includes(again.grantId), rest.next_cursor]).toEqual([50, true, null])
      // Only the request of this session is decided, and only this one.
      const { id: open } = yield* requests.open("client_id=x", session)
      const { id: brought } = yield* requests.keep("client_id=x")
      for (const request of [yield* makeUuidV7, brought])
        expect(yield* Effect.flip(consent({}, "oc_1", request))).toMatchObject({ reason: "gone" })
      yield* consent({}, "oc_last")
      expect(yield* requests.close(open, session)).toBe(true)
      yield* sql`update org set status = 'deleting' where id = ${org}`
      expect(yield* Effect.flip(consent())).toMatchObject({ reason: "gone" })
    }),
  )

  it.effect(
    "is changed only by its own account, one member at a time, and only if it is unchanged since it was read",
    () =>
      Effect.gen(function* () {
        const { org, grants, consent, identityOf } = yield* account
        const [one, two, other] = [newHandle("one"), newHandle("two"), yield* makeOrg]
        for (const handle of [one, two]) yield* identityOf(org, handle)
        yield* identityOf(other, newHandle("away"))
        const { grantId } = yield* consent()
        const beside = yield* grants.read(org, (yield* consent({}, "oc_2")).grantId)
        const change = (patch: object, seen?: Parameters<typeof grants.change>[3]) =>
          grants.change(org, grantId, patch, seen, accountHolder)
        let expected = yield* grants.read(org, grantId)
        const ends = new Date((yield* Clock.currentTimeMillis) + 5 * day)
        for (const patch of [
          { scopes: ["card:read"] },
          { handles: [two, one.toUpperCase()] },
          { networks: ["192.0.2.0/24", "2001:db8::/32"] },
          { expires_at: ends },
          { handles: null },
          { networks: null },
        ]) {
          const before = expected
          expected = {
            ...expected,
            ...(patch as object),
            ...("handles" in patch && patch.handles ? { handles: [one, two] } : {}),
          }
          yield* change(patch, before)
          expect(yield* grants.read(org, grantId)).toEqual(expected)
          expect(yield* Effect.flip(change(patch, before))).toMatchObject({ code: "precondition_failed" })
        }
        expect(yield* Effect.flip(change({ handles: [one, newHandle("none")] }))).toMatchObject({ code: "not_found" })
        for (const call of [
          grants.read(other, grantId),
          grants.change(other, grantId, { scopes: ["mail:read"] }, undefined, accountHolder),
          grants.revoke(other, grantId, accountHolder),
        ])
          expect(yield* Effect.flip(call as Effect.Effect<unknown, unknown>)).toMatchObject({ code: "not_found" })
        expect((yield* grants.list(other, { limit: 10 })).entries).toEqual([])
        yield* grants.revokeAll(other, accountHolder)
        expect(yield* grants.read(org, grantId)).toEqual(expected)
        yield* grants.revoke(org, grantId, accountHolder)
        yield* grants.revoke(org, grantId, accountHolder)
        expect(yield* grants.read(org, beside.id)).toEqual(beside)
        const changes = rows((sql) => sql`select 1 from event where org_id = ${org} and type = 'grant.changed'`)
        const told = yield* changes
        expect(yield* Effect.flip(change({ scopes: ["mail:read"] }))).toMatchObject({ code: "not_found" })
        expect(yield* changes).toEqual(told)
        yield* consent()
        yield* grants.revokeAll(org, accountHolder)
        expect((yield* grants.list(org, { limit: 10 })).entries).toEqual([])
      }),
  )
})
