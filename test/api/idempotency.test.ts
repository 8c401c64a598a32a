import { ProvisioningSteps } from "@svc/cluster/identity/Provisioning"
import { StepFailed } from "@svc/cluster/saga/Step"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
/** If true, no Identity becomes ready. */
let broken = true
const slowly = (options: Parameters<typeof ProvisioningSteps.layer>[0]) =>
  Layer.effect(
    ProvisioningSteps,
    Effect.map(Effect.service(ProvisioningSteps), (steps) => ({
      ...steps,
      card: (subject) => (broken ? Effect.fail(new StepFailed({ message: "not yet" })) : steps.card(subject)),
    })),
  ).pipe(Layer.provide(ProvisioningSteps.layer(options)))

beforeAll(async () => {
  service = await startService({ parts: { provisioningSteps: slowly } })
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const create = (handle: string, key: string, token = session) =>
  call(service.base, "POST", "/api/identities", { token, body: { handle }, headers: { "idempotency-key": key } })

describe("Idempotency-Key", () => {
  it("returns the first response to a repeat", async () => {
    const handle = newHandle()
    const first = await create(handle, "k1")
    const repeated = await create(handle, "k1")
    expect([first.status, repeated.status]).toEqual([202, 202])
    expect(repeated.body).toEqual(first.body)
    expect(repeated.headers.get("request-id")).not.toBe(first.headers.get("request-id"))
    const refused = [await create(handle, "k2"), await create(handle, "k2")]
    expect(refused.map(({ body }) => body.code)).toEqual(["handle_taken", "handle_taken"])
    expect(refused[1]!.body).toEqual(refused[0]!.body)
  })

  it("remains free after a malformed or premature request", async () => {
    const handle = newHandle()
    expect((await create("ab", "k7")).status).toBe(400)
    expect((await create(handle, "k7")).status).toBe(202)
    const rotate = () =>
      call(service.base, "POST", `/api/identities/${handle}/identity-key/rotate`, {
        token: session,
        headers: { "idempotency-key": "k8" },
      })
    const early = await rotate()
    expect([early.status, early.body.agent_hint]).toEqual([409, "wait"])
    broken = false
    const later = await eventually(rotate, ({ body }) => body?.agent_hint !== "wait")
    expect(later.status).toBeLessThan(300)
    broken = true
  })

  it("belongs to one request: another body is rejected, other credentials and paths have their own", async () => {
    await create(newHandle(), "k3")
    const other = await create(newHandle(), "k3")
    expect([other.status, other.body.code]).toEqual([422, "idempotency_key_reused"])
    const stranger = (await signUp(service.base)).session
    expect((await create(newHandle(), "k3", stranger)).status).toBe(202)
  })

  it("creates one resource of many concurrent requests", async () => {
    const handle = newHandle()
    const answers = await Promise.all(Array.from({ length: 20 }, () => create(handle, "k4")))
    const codes = new Set(answers.map(({ status, body }) => (status === 202 ? "made" : body.code)))
    expect(codes.has("made")).toBe(true)
    expect([...codes].filter((code) => code !== "made" && code !== "idempotency_key_in_progress")).toEqual([])
    const list = await call(service.base, "GET", "/api/identities", { token: session })
    expect(list.body.identities.filter((one: any) => one.handle === handle)).toHaveLength(1)
  })

  it("resumes a request that a crash interrupted as the same command", async () => {
    const handle = newHandle()
    const first = await create(handle, "k5")
    // The state after a crash between the commit and the response.
    await service.query(
      (sql) => sql`update idempotency_record set status = null, headers = null, body = null where key = 'k5'`,
    )
    expect((await create(handle, "k5")).body.code).toBe("idempotency_key_in_progress")
    await service.query(
      (sql) => sql`update idempotency_record set started_at = now() - interval '5 seconds' where key = 'k5'`,
    )
    const repeated = await create(handle, "k5")
    expect(repeated.status).toBe(202)
    expect(repeated.body.id).toBe(first.body.id)
  })

  it("does not store a response with a secret", async () => {
    const mint = () =>
      call(service.base, "POST", "/api/keys", {
        token: session,
        body: { name: "one" },
        headers: { "idempotency-key": "k6" },
      })
    const first = await mint()
    const repeated = await mint()
    expect([first.status, repeated.status]).toEqual([201, 409])
    expect(repeated.headers.get("location")).toBe(first.headers.get("location"))
    const rows = await service.query(
      (sql) => sql<{ body: string | null }>`select body from idempotency_record where key = 'k6'`,
    )
    expect(rows).toEqual([{ body: null }])
    // The state after a crash between the commit and the response.
    await service.query(
      (sql) =>
        sql`update idempotency_record set status = null, started_at = now() - interval '5 seconds' where key = 'k6'`,
    )
    const crashed = await mint()
    expect([crashed.status, crashed.headers.get("location")]).toEqual([409, first.headers.get("location")])
    const keys = await call(service.base, "GET", "/api/keys", { token: session })
    expect(keys.body.api_keys.filter(({ name }: { name: string }) => name === "one")).toHaveLength(1)
  })

  it("of an interrupted rotation returns its secret again; without a key another is created", async () => {
    broken = false
    const { handle } = await makeIdentity(service.base, session)
    const hook = { token: session, body: { url: "https://hooks.example/", event_types: ["*"] } }
    expect((await call(service.base, "POST", `/api/identities/${handle}/webhooks`, hook)).status).toBe(201)
    const rotate = async (headers: Record<string, string> = { "idempotency-key": "k9" }) => {
      const path = `/api/identities/${handle}/webhook-secret/rotate`
      return await call(service.base, "POST", path, { token: session, headers })
    }
    const first = await rotate()
    expect(first.body.signing_secret).toMatch(/^whsec_/)
    // The response was recorded, and it contains a secret.
    expect((await rotate()).status).toBe(409)
    await service.query(
      (sql) =>
        sql`update idempotency_record set status = null, started_at = now() - interval '5 seconds' where key = 'k9'`,
    )
    const repeated = await rotate()
    expect([repeated.status, repeated.body]).toEqual([first.status, first.body])
    const other = await rotate({})
    expect(other.body.signing_secret).toMatch(/^whsec_/)
    expect(other.body.signing_secret).not.toBe(first.body.signing_secret)
  })

  it("that is malformed is rejected", async () => {
    expect((await create(newHandle(), "x".repeat(300))).body.code).toBe("invalid_request")
  })
})

describe("Entity tags", () => {
  it("of single resources cause a 304 for unchanged representations", async () => {
    broken = false
    const { handle } = await makeIdentity(service.base, session)
    const read = (headers = {}) => call(service.base, "GET", `/api/identities/${handle}`, { token: session, headers })
    const tag = (await read()).headers.get("etag")!
    expect(tag).toMatch(/^"[\w-]{27}"$/)
    const known = await read({ "if-none-match": `"other", W/${tag}` })
    expect([known.status, known.body, known.headers.get("etag")]).toEqual([304, "", tag])
    expect((await read({ "if-none-match": '"other"' })).status).toBe(200)
    expect((await read({ "if-none-match": "*" })).status).toBe(304)
    // The response to a repeat has the tag, so that its client can make the next conditional change.
    const change = () =>
      call(service.base, "PATCH", `/api/identities/${handle}/card`, {
        token: session,
        body: { description: "once" },
        headers: { "idempotency-key": "k12" },
      })
    const [first, repeated] = [await change(), await change()]
    expect(repeated.headers.get("idempotent-replayed")).toBe("true")
    for (const name of ["etag", "content-type"]) expect(repeated.headers.get(name)).toBe(first.headers.get(name))
    expect(first.headers.get("etag")).not.toBeNull()
  })
})
