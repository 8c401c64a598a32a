/** Repeated tool calls take effect once. */
import { IdempotencyRecords } from "@svc/cluster/idempotency/IdempotencyRecords"
import { equalTo, ordered, repetitionArguments } from "@svc/api/mcp/Repetition"
import { makeUuidV7 } from "@svc/domain/Ids"
import { layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { setClockToNow, storesLayer } from "../harness/Stores.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

describe("Repeated tool call", () => {
  let service: TestService
  let session: string
  let ada: Awaited<ReturnType<typeof makeIdentity>>
  let to: ReadonlyArray<string>
  beforeAll(async () => {
    service = await sharedService()
    session = (await signUp(service.base)).session
    ada = await makeIdentity(service.base, session)
    const bob = await makeIdentity(service.base, session)
    to = [bob.identity.email]
    await call(service.base, "POST", `/api/identities/${ada.handle}/allowed-recipients`, {
      token: session,
      body: { address: to[0] },
    })
  })

  const tool = async (name: string, input: object, token: string = ada.secrets.identity_key) => {
    const params = { name, arguments: input }
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params }
    const { isError, structuredContent } = (await call(service.base, "POST", "/api/mcp", { token, body })).body.result
    return { isError: isError === true, ...structuredContent }
  }
  /** Returns the number of sent messages with this subject. */
  const sent = async (subject: string) =>
    (await tool("svc_email_list", { direction: "outbound", query: `subject:${subject}` })).messages.length

  it("sends a message once and returns the first result", async () => {
    const first = await tool("svc_email_send", { to, subject: "once", text: "x" })
    const again = await tool("svc_email_send", { text: "x", subject: "once", to })
    expect(first.repeated).toBeUndefined()
    expect(again).toEqual({ ...first, repeated: true })
    expect(await sent("once")).toBe(1)
  })

  it("sends a message once while the first call still runs", async () => {
    const calls = await Promise.all(
      Array.from({ length: 5 }, () => tool("svc_email_send", { to, subject: "parallel", text: "x" })),
    )
    for (const { isError, code } of calls) if (isError) expect(code).toBe("idempotency_key_in_progress")
    expect(calls.filter(({ isError, repeated }) => !isError && repeated === undefined)).toHaveLength(1)
    expect(await sent("parallel")).toBe(1)
  })

  it("sends again a minute later", async () => {
    const input = { to, subject: "later", text: "x" }
    const first = await tool("svc_email_send", input)
    const age = (seconds: number) =>
      service.query(
        (sql) =>
          sql`update idempotency_record set started_at = started_at - make_interval(secs => ${seconds}) returning 1`,
      )
    await age(50)
    expect(await tool("svc_email_send", input)).toEqual({ ...first, repeated: true })
    await age(11)
    const again = await tool("svc_email_send", input)
    expect([again.repeated, again.id === first.id]).toEqual([undefined, false])
    expect(await sent("later")).toBe(2)
  })

  it("sends again with `allow_duplicate` or different arguments", async () => {
    const input = { to, subject: "again", text: "x" }
    const first = await tool("svc_email_send", input)
    const again = await tool("svc_email_send", { ...input, allow_duplicate: true })
    const other = await tool("svc_email_send", { ...input, text: "y" })
    expect(new Set([first.id, again.id, other.id]).size).toBe(3)
    expect(await sent("again")).toBe(3)
  })

  it("is distinguished by credential and tool", async () => {
    const input = { handle: ada.handle, to, subject: "whose", text: "x" }
    const first = await tool("svc_email_send", input)
    const mine = await tool("svc_email_send", input, session)
    const draft = await tool("svc_email_draft", input)
    expect([mine.repeated, draft.repeated]).toEqual([undefined, undefined])
    expect(mine.id).not.toBe(first.id)
  })

  it("with an `idempotency_key` returns the first result, or an error if the arguments differ", async () => {
    const input = { to, subject: "keyed", text: "x", idempotency_key: "order 7" }
    const first = await tool("svc_email_send", input)
    expect(await tool("svc_email_send", input)).toEqual({ ...first, repeated: true })
    expect(await tool("svc_email_send", { ...input, text: "y" })).toMatchObject({ code: "idempotency_key_reused" })
    const other = await tool("svc_email_send", { ...input, idempotency_key: "order 8" })
    expect(other.id).not.toBe(first.id)
    for (const idempotency_key of ["", "a\nb", "ä", 7, "k".repeat(256)]) {
      expect(await tool("svc_email_send", { ...input, idempotency_key })).toMatchObject({
        code: "invalid_request",
        errors: [{ path: "/idempotency_key" }],
      })
    }
  })

  it("runs again after a refusal, whose reason may be gone", async () => {
    const input = { to: ["later@example.org"], subject: "later", text: "x" }
    expect(await tool("svc_email_send", input)).toMatchObject({ code: "recipient_not_allowed" })
    await call(service.base, "POST", `/api/identities/${ada.handle}/allowed-recipients`, {
      token: session,
      body: { address: "later@example.org" },
    })
    expect(await tool("svc_email_send", input)).toMatchObject({ isError: false, status: "queued" })
  })

  it("of an idempotent tool always runs, unless it has a key", async () => {
    const set = (value: string, more = {}) =>
      tool("svc_vault_set", { name: "letter", value, identity: ada.handle, ...more })
    const value = async () => (await tool("svc_vault_get", { name: "letter", identity: ada.handle })).value
    for (const letter of ["a", "b", "a"]) expect((await set(letter)).repeated).toBeUndefined()
    expect(await value()).toBe("a")
    const keyed = await set("b", { idempotency_key: "k" })
    await set("c")
    expect(await set("b", { idempotency_key: "k" })).toEqual({ ...keyed, repeated: true })
    expect(await value()).toBe("c")
    const removed = await tool("svc_vault_delete", { name: "letter", identity: ada.handle, idempotency_key: "k" })
    expect(removed).toEqual({ isError: false })
    expect(await tool("svc_vault_delete", { name: "letter", identity: ada.handle, idempotency_key: "k" })).toEqual({
      isError: false,
      repeated: true,
    })
  })

  it("creates one Webhook and names it without its secret", async () => {
    const input = { url: "http://127.0.0.1:9/once", event_types: ["*"] }
    const { id } = await tool("svc_webhook_create", input)
    const again = await tool("svc_webhook_create", input)
    expect(again).toMatchObject({ code: "conflict", repeated: true })
    expect(again.detail).toContain(id)
    expect((await tool("svc_webhook_list", {})).webhooks).toHaveLength(1)
  })

  it("accepts a key on every tool that writes", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/list" }
    const { tools } = (await call(service.base, "POST", "/api/mcp?schemas=full", { token: session, body })).body.result
    for (const { name, annotations, inputSchema } of tools) {
      const { idempotency_key, allow_duplicate } = inputSchema.properties ?? {}
      expect(idempotency_key !== undefined, name).toBe(!annotations.readOnlyHint)
      expect(allow_duplicate !== undefined, name).toBe(!annotations.readOnlyHint)
    }
  })
})

describe("Equal calls", () => {
  it("have the same mark whatever the order of their members", () => {
    const mark = (input: object) => equalTo("write", input, JSON.stringify(ordered(input)))
    expect(mark({ a: 1, b: { c: [1, 2], d: 3 } })).toBe(mark({ b: { d: 3, c: [1, 2] }, a: 1 }))
    expect(mark({ a: [1, 2] })).not.toBe(mark({ a: [2, 1] }))
    expect([
      equalTo("read", {}, "{}"),
      equalTo("idempotent_write", {}, "{}"),
      equalTo("destructive", {}, "{}"),
    ]).toEqual([undefined, undefined, undefined])
    expect(repetitionArguments("read")).toEqual({})
  })
})

layer(storesLayer)("Equal call", (it) => {
  const minute = 60_000
  it.effect("returns the first result for 60 seconds", () =>
    Effect.gen(function* () {
      yield* setClockToNow
      const records = yield* IdempotencyRecords
      const scope = { credentialId: yield* makeUuidV7, operation: "POST /api/x", key: "equal x" }
      const answer = { status: 202, headers: {}, body: "{}" }
      const claim = records.claim(scope, "{}", minute)
      const first = yield* claim
      yield* records.settle(scope, answer)
      yield* TestClock.adjust("59 seconds")
      expect(yield* claim).toEqual({ _tag: "Answered", answer })
      yield* TestClock.adjust("1 second")
      const next = yield* claim
      expect(next._tag).toBe("Fresh")
      expect(next).not.toEqual(first)
    }),
  )

  it.effect("resumes a call of unknown outcome as the same command", () =>
    Effect.gen(function* () {
      yield* setClockToNow
      const records = yield* IdempotencyRecords
      const scope = { credentialId: yield* makeUuidV7, operation: "POST /api/x", key: "equal y" }
      const claim = records.claim(scope, "{}", minute)
      const first = yield* claim
      yield* records.release(scope)
      expect(first).toMatchObject({ interrupted: false })
      expect(yield* claim).toEqual({ ...first, interrupted: true })
    }),
  )
})
