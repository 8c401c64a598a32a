/** The account for which a rejected credential is recorded. There is no store: the test answers the look-ups. */
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { mint, sha256Hex } from "@svc/cluster/credentials/CredentialMint"
import { Reads } from "@svc/cluster/store/Database"
import { kindOf, makeOAuthToken } from "@svc/domain/account/Token"
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"

const source = { address: "192.0.2.1", via: "rest", tool: null, user_agent: "x" } as const
const what = { action: "messages.list", code: "unauthenticated", source, requestId: "req_1" }

/** `row` is the owner of every credential, or undefined. */
const recording = Effect.gen(function* () {
  const state = { row: undefined as object | undefined, fails: false }
  const [looked, recorded] = [[] as Array<[string, unknown]>, [] as Array<Act>]
  const sql = (parts: ReadonlyArray<string>, ...values: ReadonlyArray<unknown>) =>
    Effect.suspend(() => {
      looked.push([/from (\w+)/.exec(parts.join("?"))![1]!, values[0]])
      if (state.fails) return Effect.fail({ _tag: "unavailable" })
      return Effect.succeed(state.row === undefined ? [] : [state.row])
    })
  const credentials = yield* RefusedCredentials.pipe(
    Effect.provide(
      RefusedCredentials.layer.pipe(
        Layer.provide([
          Layer.succeed(Reads, sql as unknown as Reads["Service"]),
          Layer.succeed(Audit, {
            record: (act: Act) => Effect.sync(() => void recorded.push(act)),
          } as unknown as Audit["Service"]),
        ]),
      ),
    ),
  )
  const refuse = (token: string) => credentials.turnedAway(Redacted.make(token), what)
  return { state, looked, recorded, refuse, credentials }
})

it.effect("A rejected credential is recorded for the account that it once belonged to, whatever its kind", () =>
  Effect.gen(function* () {
    const { state, looked, recorded, refuse } = yield* recording
    const of = { org_id: "org", id: "credential", identity_id: null, handle: null, client: null }
    const base = {
      org: "org",
      class: "auth",
      action: what.action,
      target: null,
      outcome: "refused",
      code: what.code,
      scope: null,
      source,
      requestId: "req_1",
    }
    for (const [token, table, row, actor, identity] of [
      [
        mint("admin_key").token,
        "api_key",
        { ...of, name: "ci" },
        { kind: "admin_key", name: "ci", client: null },
        null,
      ],
      [
        mint("identity_key").token,
        "api_key",
        { ...of, name: "k", identity_id: "id", handle: "ada" },
        { kind: "identity_key", name: "k", client: null },
        { id: "id", handle: "ada" },
      ],
      [mint("session").token, "session", { ...of, name: null }, { kind: "session", name: null, client: null }, null],
      [
        makeOAuthToken("access", new Uint8Array(32)),
        "oauth_token",
        { ...of, name: null, client: "app" },
        { kind: kindOf(makeOAuthToken("access", new Uint8Array(32))), name: null, client: "app" },
        null,
      ],
    ] as const) {
      state.row = row
      yield* refuse(token)
      expect(looked.splice(0)).toEqual([[table, sha256Hex(token)]])
      expect(recorded.splice(0)).toEqual([{ ...base, actor: { ...actor, id: "credential" }, identity }])
    }
  }),
)

it.effect("An unknown credential is not recorded, and its owner is looked up once a minute", () =>
  Effect.gen(function* () {
    const { state, looked, recorded, refuse, credentials } = yield* recording
    const token = makeOAuthToken("access", new Uint8Array(32))
    for (const text of ["", "nonsense", `${token}x`]) yield* refuse(text)
    expect(looked).toEqual([])
    for (let n = 0; n < 3; n++) yield* refuse(token)
    yield* TestClock.adjust("59999 millis")
    yield* refuse(token)
    expect([looked.length, recorded]).toEqual([1, []])
    yield* TestClock.adjust("1 millis")
    state.row = { org_id: "org", id: "grant", name: null, client: "app", identity_id: null, handle: null }
    for (let n = 0; n < 2; n++) yield* refuse(token)
    expect([looked.length, recorded.length]).toEqual([2, 2])
    yield* credentials.handedOut(Redacted.make(token), { action: "mcp.exchange", source, requestId: null })
    expect(recorded.at(-1)).toMatchObject({ action: "mcp.exchange", outcome: "allowed", code: null, requestId: null })
    // While the store is down nothing is recorded, and the failed look-up is not cached.
    state.fails = true
    yield* TestClock.adjust("1 minute")
    yield* refuse(token)
    expect(recorded).toHaveLength(3)
    state.fails = false
    yield* refuse(token)
    expect([looked.length, recorded.length]).toEqual([4, 4])
  }),
)

it.effect("At most 10,000 owners are remembered", () =>
  Effect.gen(function* () {
    const { looked, refuse } = yield* recording
    const token = (n: number) =>
      makeOAuthToken("access", new Uint8Array(new Uint32Array([n, 0, 0, 0, 0, 0, 0, 0]).buffer))
    for (let n = 0; n < 10_000; n++) yield* refuse(token(n))
    yield* refuse(token(0))
    expect(looked.length).toBe(10_000)
    for (const n of [10_000, 0]) yield* refuse(token(n))
    expect(looked.length).toBe(10_002)
  }),
)
