/** The audit records of calls, without a store: of reads of the log, of secrets, of changes and of refusals. */
import { actOf, outcomeOf, planOf, sourceOf } from "@svc/api/audit/AuditedOperations"
import * as AuditRecorder from "@svc/api/audit/AuditRecorder"
import { makeRequestContext } from "@svc/api/RequestContext"
import { Audit } from "@svc/cluster/audit/Audit"
import { rowOf } from "@svc/cluster/audit/AuditWrite"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { AuditUnavailable, NotFound, Unavailable } from "@svc/domain/problems/Problem"
import { Cause, Effect, Exit } from "effect"
import { expect, it } from "@effect/vitest"
import { HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { endpoints } from "../api/Manifest.ts"
import { act } from "./Acts.ts"

const caller = { kind: "session", credentialId: "c", keyName: null, grant: null, org: { id: "o" } } as never
const done = HttpServerResponse.empty({ status: 200 })
const called = (id: string) => ({ endpoint: endpoints.get(id)!, group: { identifier: id.split(".")[0]! } })
const missing = new NotFound({ detail: "It does not exist." })

/** A recorder, and in the order of events: the records, the counted reads, and the handler. */
const recorder = Effect.gen(function* () {
  const seen: Array<string> = []
  const add =
    (what: string) =>
    ({ outcome = "allowed", code }: { outcome?: string; code?: string | null }) =>
      Effect.sync(() => void seen.push([what, outcome, ...(code == null ? [] : [code])].join(" ")))
  let closed = false
  const audit = {
    used: () => void seen.push("counted"),
    record: add("record"),
    secret: (act: object) => (closed ? Effect.fail(new AuditUnavailable({ detail: "Not now." })) : add("before")(act)),
    kept: () => void seen.push("kept"),
  }
  const make = AuditRecorder.make.pipe(
    Effect.provideService(Audit, audit as never),
    Effect.provideService(RefusedCredentials, { turnedAway: () => Effect.void } as never),
  )
  const { recorded, refused } = yield* make
  const exchangeFrom = (address: string) =>
    makeRequestContext("req_1", { address, via: "rest", tool: null, userAgent: null })
  const handler = Effect.sync(() => (seen.push("handler"), done))
  const call = (
    id: string,
    address = "192.0.2.1",
    answer: Effect.Effect<typeof done, unknown> = handler,
    stored = false,
  ) => {
    const exchange = exchangeFrom(address)
    if (stored) exchange.recorded = {} as never
    const answered = recorded(answer, (once) => once, called(id), caller, null, {}, exchange)
    return Effect.map(Effect.exit(answered), () => seen.splice(0))
  }
  const refuse = (id: string, problem: NotFound | Unavailable) =>
    Effect.map(refused(called(id), caller, {}, exchangeFrom("192.0.2.1"), problem), () => seen.splice(0))
  return { call, refuse, close: () => void (closed = true) }
})

it.effect("A read of the log is recorded before it, once an hour for each client, and otherwise counted", () =>
  Effect.gen(function* () {
    const { call } = yield* recorder
    const first = ["counted", "before allowed", "handler"]
    expect(yield* call("audit.list")).toEqual(first)
    expect(yield* call("audit.read")).toEqual(["counted", "handler"])
    expect(yield* call("audit.list", "192.0.2.2")).toEqual(first)
    yield* TestClock.adjust("59 minutes")
    expect(yield* call("audit.list")).toEqual(["counted", "handler"])
    yield* TestClock.adjust("1 minute")
    expect(yield* call("audit.list")).toEqual(first)
    // Other reads are only counted, and a download of the log is always recorded.
    expect(yield* call("identities.list")).toEqual(["counted", "handler"])
    for (let n = 0; n < 2; n++) expect(yield* call("audit.export")).toEqual(["before allowed", "handler"])
  }),
)

it.effect("A secret is recorded once, before it is read, and not read without its record", () =>
  Effect.gen(function* () {
    const { call, close } = yield* recorder
    expect(yield* call("exports.archive")).toEqual(["before allowed", "handler"])
    const failing = Effect.fail(missing)
    expect(yield* call("exports.archive", "192.0.2.1", failing)).toEqual(["before allowed", "record refused not_found"])
    close()
    expect(yield* call("exports.archive")).toEqual(["record failed audit_unavailable"])
  }),
)

it.effect(
  "A change is recorded with its outcome, but neither a refused read of an unknown object nor a failure of the store",
  () =>
    Effect.gen(function* () {
      const { call, refuse } = yield* recorder
      expect(yield* call("cards.patch")).toEqual(["handler", "record allowed"])
      expect(yield* call("cards.patch", "192.0.2.1", Effect.fail(missing))).toEqual(["record refused not_found"])
      // The statement of a change stores its record; a call that fails after it has another outcome.
      expect(yield* call("cards.patch", "192.0.2.1", Effect.succeed(done), true)).toEqual(["kept"])
      expect(yield* call("cards.patch", "192.0.2.1", Effect.fail(missing), true)).toEqual(["record refused not_found"])
      expect(yield* refuse("cards.patch", missing)).toEqual(["record refused not_found"])
      expect(yield* refuse("cards.read", missing)).toEqual([])
      expect(yield* refuse("cards.patch", new Unavailable({ detail: "Busy." }))).toEqual([])
    }),
)

it.each<readonly [string, Exit.Exit<typeof done, unknown>, string, string | null]>([
  ["a response", Exit.succeed(done), "allowed", null],
  ["a response with a problem", Exit.succeed(HttpServerResponse.empty({ status: 404 })), "refused", null],
  ["a response with a failure", Exit.succeed(HttpServerResponse.empty({ status: 503 })), "failed", null],
  ["a problem", Exit.fail(missing), "refused", "not_found"],
  ["a problem that the library wrapped", Exit.fail({ error: missing }), "refused", "not_found"],
  ["a problem as a defect", Exit.die(missing), "refused", "not_found"],
  ["an unavailable store", Exit.fail(new Unavailable({ detail: "Busy." })), "failed", "unavailable"],
  ["a call that was interrupted", Exit.failCause(Cause.interrupt(1)), "failed", "unavailable"],
  ["a defect", Exit.die(new Error("x")), "failed", "internal"],
])("The record of %s has its outcome", (_, exit, outcome, code) => {
  expect(outcomeOf(exit)).toEqual({ outcome, code })
})

it.each([
  ["webhooks.remove", { handle: "ada", id: "wh_1" }, { type: "webhook", id: "wh_1", name: null }],
  ["vault.remove", { name: "token" }, { type: "secret", id: null, name: "token" }],
  ["connectors.disconnect", { handle: "ada", platform: "bluesky" }, { type: "connector", id: null, name: "bluesky" }],
  ["mail_settings.disallow", { handle: "ada", address: "a@b.c" }, { type: "mail", id: null, name: "a@b.c" }],
  ["cards.patch", { handle: "ada" }, { type: "card", id: null, name: "ada" }],
  ["account.update", {}, null],
])("The target of %s with %j is %j", (id, params, target) => {
  const plan = planOf(called(id))
  expect(actOf(plan, caller, null, params as Record<string, string>, makeRequestContext()).target).toEqual(target)
})

it("A record has no address if the address of the client is unknown", () => {
  const from = (address: string) => sourceOf({ address, via: "rest", tool: null, userAgent: null }).address
  expect([from("192.0.2.1"), from("unknown")]).toEqual(["192.0.2.1", null])
})

it("A record has texts that others chose without control characters, and cut without half a character", () => {
  const text = `a\u0000\u0085${"b".repeat(296)}\u{1f600}`
  const row = rowOf({
    ...act("org", {
      actor: { kind: "grant", id: "id", name: text, client: text },
      target: { type: "card", id: text, name: text },
      source: { address: null, via: "rest", tool: null, user_agent: text },
    }),
    id: "id",
    at: new Date(0),
    count: 1,
  })
  const shown = `a${"b".repeat(296)}\ufffd`
  const { actor_name, actor_client, target_id, target_name, user_agent } = row
  expect([actor_name, actor_client, target_id, target_name, user_agent]).toEqual(Array(5).fill(shown))
})
