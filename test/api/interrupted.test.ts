/** Changes whose response was lost: a repeat with the same `Idempotency-Key` has the response of the first request, and no effect. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { startService, type OwnService } from "../harness/Service.ts"

let service: OwnService
let session: string
let of: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
  of = `/api/identities/${(await makeIdentity(service.base, session, "interrupted")).handle}`
})
afterAll(() => service.stop())

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const ask = ({ method, path, body, headers = {} }: Request) =>
  call(service.base, method, path, { token: session, body, headers })
const made = async (method: string, path: string, body: unknown) => {
  const answer = await ask({ method, path, body })
  expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
  return answer
}
/** Returns the change of a resource on the condition that it is as it is now. */
const asItIs = async (method: string, path: string, body?: unknown): Promise<Request> => ({
  method,
  path,
  body,
  headers: { "if-match": (await ask({ method: "GET", path })).headers.get("etag")! },
})
const draft = async () => `${of}/drafts/${(await made("POST", `${of}/drafts`, { text: "one" })).body.id}`
const message = async () => {
  await send(service.smtpPort, { from: "a@example.org", to: "interrupted@mail.localhost", subject: "s", text: "t" })
  return `${of}/messages/${(await ask({ method: "GET", path: `${of}/messages?limit=1` })).body.messages[0].id}`
}
const webhook = async () => {
  const hook = { url: "https://hooks.example/", event_types: ["*"] }
  return `${of}/webhooks/${(await made("POST", `${of}/webhooks`, hook)).body.id}`
}
const secret = async (): Promise<Request> => {
  const path = "/api/vault/secrets/interrupted"
  const { headers } = await made("PUT", path, { value: "1" })
  return { method: "DELETE", path, headers: { "if-match": headers.get("etag")! } }
}

/** Leaves the state after a crash between the commit and the response. */
const loseResponse = (key: string) =>
  service.query(
    (sql) => sql`
      update idempotency_record set status = null, headers = null, body = null, started_at = now() - interval '1 minute'
      where key = ${key}`,
  )

interface Case {
  readonly first: Request
  /** Another change, which follows the first one before the repeat and must remain. */
  readonly later?: Request
  /** Where it is read, if not at its own path. */
  readonly shown?: string
}
const changes: Readonly<Record<string, () => Promise<Case>>> = {
  "a draft is deleted": async () => ({ first: await asItIs("DELETE", await draft()) }),
  "a draft is replaced": async () => {
    const path = await draft()
    return {
      first: await asItIs("PUT", path, { text: "two" }),
      later: { method: "PUT", path, body: { text: "three" } },
    }
  },
  "a draft is sent": async () => {
    const path = await draft()
    await made("POST", `${of}/allowed-recipients`, { address: "interrupted@mail.localhost" })
    await made("PUT", path, { text: "two", to: ["interrupted@mail.localhost"] })
    const { headers = {} } = await asItIs("POST", path)
    return { first: { method: "POST", path: `${path}/send`, headers } }
  },
  "a secret is deleted": async () => ({
    first: await secret(),
    later: { method: "PUT", path: "/api/vault/secrets/interrupted", body: { value: "2" } },
    shown: "/api/vault/secrets",
  }),
  "a message is deleted": async () => ({ first: await asItIs("DELETE", await message()) }),
  "a message is marked": async () => {
    const path = await message()
    return {
      first: await asItIs("PATCH", path, { seen: true }),
      later: { method: "PATCH", path, body: { seen: false } },
    }
  },
  "messages are marked": async () => {
    const path = await message()
    const body = { ids: [path.split("/").at(-1)!], flagged: true }
    return {
      first: { method: "PATCH", path: `${of}/messages`, body },
      later: { method: "PATCH", path, body: { flagged: false } },
    }
  },
  "an account is changed": async () => ({
    first: await asItIs("PATCH", "/api/account", { language: "de" }),
    later: { method: "PATCH", path: "/api/account", body: { language: "fr" } },
  }),
  "a key is revoked": async () => {
    const { id } = (await made("POST", "/api/keys", { name: "k" })).body.api_key
    return { first: await asItIs("DELETE", `/api/keys/${id}`) }
  },
  "a Webhook is changed": async () => {
    const path = await webhook()
    return {
      first: await asItIs("PATCH", path, { url: "https://two.example/" }),
      later: { method: "PATCH", path, body: { url: "https://three.example/" } },
    }
  },
  "a Webhook is deleted": async () => ({ first: await asItIs("DELETE", await webhook()) }),
  "a card is changed": async () => ({
    first: await asItIs("PATCH", `${of}/card`, { description: "two" }),
    later: { method: "PATCH", path: `${of}/card`, body: { description: "three" } },
  }),
  "a tunnel is changed": async () => ({
    first: await asItIs("PATCH", `${of}/tunnel`, { host_header: "rewrite" }),
    later: { method: "PATCH", path: `${of}/tunnel`, body: { host_header: "preserve" } },
  }),
  "the settings of proofs are changed": async () => ({
    first: await asItIs("PATCH", `${of}/proof`, { audiences: "any" }),
  }),
  "a message is approved": async () => {
    await made("PATCH", `${of}/mail`, { approval: "required" })
    const ask = { to: ["interrupted@mail.localhost"], text: "t" }
    const key = (await made("POST", `${of}/keys`, { name: "asks" })).body.key
    const { body } = await call(service.base, "POST", `${of}/messages/send`, { token: key, body: ask })
    const { content_sha256 } = (await made("GET", `${of}/approvals/${body.id}`, undefined)).body
    await made("PATCH", `${of}/mail`, { approval: "none" })
    return { first: { method: "POST", path: `${of}/approvals/${body.id}/approve`, body: { content_sha256 } } }
  },
  "the stop of all mail is changed": async () => ({
    first: { method: "PATCH", path: "/api/account/mail", body: { outgoing: "active" } },
    later: { method: "PATCH", path: "/api/account/mail", body: { outgoing: "stopped" } },
    shown: `${of}/mail`,
  }),
  "the stop of mail is changed": async () => ({
    first: await asItIs("PATCH", `${of}/mail`, { outgoing: "stopped", reason: "r" }),
    later: { method: "PATCH", path: `${of}/mail`, body: { outgoing: "active" } },
  }),
}

describe("A change that was made, but whose response was lost, is answered once more and not made again:", () => {
  it.each(Object.keys(changes))("%s", async (name) => {
    const { first, later, shown = later?.path } = await changes[name]!()
    const read = async () => (shown === undefined ? undefined : (await ask({ method: "GET", path: shown })).body)
    const request = { ...first, headers: { ...first.headers, "idempotency-key": name } }
    const answer = await ask(request)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    if (later !== undefined) expect((await ask(later)).status).toBeLessThan(300)
    const before = await read()
    await loseResponse(name)
    const again = await ask(request)
    expect([again.status, again.body?.detail]).toEqual([answer.status, undefined])
    expect(again.body?.recipients).toEqual(answer.body?.recipients)
    expect(again.body?.changed).toEqual(answer.body?.changed)
    expect(await read()).toEqual(before)
    const [recorded] = await service.query<{ n: number }>(
      (sql) => sql`
        select count(*)::int as n from audit a join idempotency_record r on r.key = ${name}
        where a.outcome = 'allowed' and left(a.id::text, 13) = left(r.command_id::text, 13)`,
    )
    expect(recorded).toEqual({ n: 1 })
  })
})

const creations: Readonly<Record<string, () => Promise<Request>>> = {
  "a draft": async () => ({ method: "POST", path: `${of}/drafts`, body: { text: "one" } }),
  "a message": async () => {
    const body = { to: ["interrupted@mail.localhost"], text: "t" }
    await made("PATCH", `${of}/mail`, { outgoing: "active" })
    await made("PATCH", "/api/account/mail", { outgoing: "active" })
    return { method: "POST", path: `${of}/messages/send`, body }
  },
  "an export": async () => ({ method: "POST", path: "/api/exports", body: {} }),
  "a Webhook": async () => ({
    method: "POST",
    path: `${of}/webhooks`,
    body: { url: "https://hooks.example/", event_types: ["*"] },
  }),
  "a test of a Webhook": async () => ({ method: "POST", path: `${await webhook()}/test` }),
  "a replay of an Event": async () => {
    const { events } = (await made("GET", "/api/events?limit=1&handle=interrupted", undefined)).body
    const webhook_id = (await webhook()).split("/").at(-1)
    return { method: "POST", path: `/api/events/${events[0].id}/replay`, body: { webhook_id } }
  },
}

describe("A creation whose response was lost returns what the first request created:", () => {
  it.each(Object.keys(creations))("%s", async (name) => {
    const request = { ...(await creations[name]!()), headers: { "idempotency-key": name } }
    const once = async () => {
      const { status, body, headers } = await ask(request)
      return [status, (body.delivery ?? body).id, headers.get("location")]
    }
    const first = await once()
    expect(first).toEqual([expect.toBeOneOf([200, 201, 202]), expect.any(String), expect.any(String)])
    await loseResponse(name)
    expect(await once()).toEqual(first)
  })
})

describe("A creation of an Identity whose response was lost", () => {
  it("is not refused because its Handle is taken while the Identity cannot be read", async () => {
    const request = {
      method: "POST",
      path: "/api/identities",
      body: { handle: "interrupted-too" },
      headers: { "idempotency-key": "creation" },
    }
    const first = await ask(request)
    expect(first.status).toBe(202)
    await loseResponse("creation")
    const [meanwhile] = await service.query((sql) =>
      sql.withTransaction(
        Effect.andThen(
          sql`lock table tunnel_port in access exclusive mode`,
          Effect.promise(async () => [await ask(request)]),
        ),
      ),
    )
    expect(meanwhile).toMatchObject({ status: 503, body: { agent_hint: "wait" } })
    expect(await ask(request)).toMatchObject({ status: 202, body: { id: first.body.id } })
  })
})
