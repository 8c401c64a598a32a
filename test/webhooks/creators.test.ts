/** A Webhook only receives Events that the credential that created it may still read, and stops when that credential is revoked. */
import { stateOf, withheld } from "@svc/cluster/webhooks/WebhookState"
import { allows, scopesOf, type ScopeName } from "@svc/domain/account/Scope"
import { identityEventTypes } from "@svc/domain/events/Event"
import { scopeNames } from "@svc/domain/ScopeTable"
import * as fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, newHandle } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { startReceiver } from "../harness/Receiver.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { registerClientId, obtainTokens, mcp, signedInUser } from "../oauth/Consent.ts"

let service: TestService
let receiver: Awaited<ReturnType<typeof startReceiver>>
let owner: Awaited<ReturnType<typeof signedInUser>>
beforeAll(async () => {
  service = await sharedService()
  owner = await signedInUser(service.base)
})
beforeAll(async () => void (receiver = await startReceiver()))
afterAll(() => receiver.stop())

const session = async (method: string, path: string, body?: unknown) =>
  call(service.base, method, path, { token: owner.session, ...(body === undefined ? {} : { body }) })
const at = (path: string) => `/api/identities/${owner.handle}${path}`
const hook = (id: string) => at(`/webhooks/${id}`)

/** A credential, with the actions that revoke or restrict it. */
interface Made {
  readonly token: string
  readonly id: string
}
type Creator = () => Promise<Made>

const key =
  (path: () => string, rights: object = {}): Creator =>
  async () => {
    const { body } = await session("POST", path(), { name: "creator", ...rights })
    return { token: body.key, id: body.api_key.id }
  }
const adminKey = key(() => "/api/keys")
const narrowAdminKey = key(() => "/api/keys", { scopes: ["webhook:write", "event:read"] })
const furtherKey = key(() => at("/keys"), { scopes: ["webhook:write", "event:read"] })
const identityKey: Creator = async () => {
  await session("POST", at("/identity-key/rotate"))
  return { token: (await session("GET", at("/identity-key"))).body.identity_key, id: "" }
}
const ownSession: Creator = async () => ({ token: owner.session, id: "" })
const app: Creator = async () => {
  const here = "http://localhost:4711/callback"
  const granted = await obtainTokens(service.base, owner.browser, await registerClientId(service.base, here), here)
  const [grant] = (await session("GET", "/api/grants")).body.grants
  await session("PATCH", `/api/grants/${grant.id}`, { scopes: ["event:read", "webhook:write"] })
  return { token: granted.access, id: grant.id }
}

/** Registers a Webhook, and forgets what the receiver got from former ones. */
const register = async ({ token }: Made, event_types: ReadonlyArray<string> = ["card.updated"]): Promise<string> => {
  const url = receiver.url
  receiver.got.length = 0
  if (!token.startsWith("svc_oat_")) {
    const made = await call(service.base, "POST", at("/webhooks"), { token, body: { url, event_types } })
    expect(made.status).toBe(201)
    return made.body.id
  }
  const input = { name: "svc_webhook_create", arguments: { handle: owner.handle, url, event_types } }
  return (await mcp(service.base, token, "tools/call", input)).body["result"].structuredContent.id
}

const raiseCardUpdated = () => session("PATCH", at("/card"), { description: newHandle("text") })
const state = async (id: string) => {
  const { status, stopped_reason } = (await session("GET", hook(id))).body
  return [status, stopped_reason]
}
/** Waits for the newest delivery of the Webhook to end, and returns its status and last error. */
const lastDelivery = async (id: string) => {
  const [newest] = await eventually(
    async () => (await session("GET", `${hook(id)}/deliveries`)).body.deliveries,
    ([newest]) => newest !== undefined && ["delivered", "failed"].includes(newest.status),
  )
  return [newest.status, newest.attempts.at(-1).error]
}

const revokeKey = ({ id }: Made) => session("DELETE", `/api/keys/${id}`)
const rotate = async ({ id }: Made) =>
  (await session("POST", `/api/keys/${id}/rotate`, { overlap_seconds: 0 })).body.api_key.id as string
const grantPatch = (body: object) => (made: Made) => session("PATCH", `/api/grants/${made.id}`, body)
const expire = (table: "api_key" | "client_grant") => async (made: Made) => {
  await service.query(
    (sql) => sql`update ${sql(table)} set expires_at = now() - interval '1 second' where id = ${made.id}`,
  )
}

const survivors: ReadonlyArray<readonly [string, Creator, (made: Made) => Promise<unknown>]> = [
  ["an Admin Key that was rotated", adminKey, rotate],
  [
    "a narrow Admin Key that was rotated twice",
    narrowAdminKey,
    async (made) => rotate({ ...made, id: await rotate(made) }),
  ],
  ["a further Identity Key that was rotated", furtherKey, rotate],
  ["the Identity Key that was rotated", identityKey, () => session("POST", at("/identity-key/rotate"))],
  ["an app whose scopes still include the Event", app, grantPatch({ scopes: ["card:read"] })],
]

const ends: ReadonlyArray<readonly [string, Creator, (made: Made) => Promise<unknown>, string]> = [
  ["an Admin Key that was revoked", adminKey, revokeKey, "creator_revoked"],
  [
    "an Admin Key whose successor was revoked",
    adminKey,
    async (made) => revokeKey({ ...made, id: await rotate(made) }),
    "creator_revoked",
  ],
  ["an Admin Key that expired", adminKey, expire("api_key"), "creator_expired"],
  ["a further Identity Key that was revoked", furtherKey, revokeKey, "creator_revoked"],
  [
    "a further Identity Key that ended with the rotation of the Identity Key",
    furtherKey,
    () => session("POST", at("/identity-key/rotate")),
    "creator_revoked",
  ],
  ["an app that was revoked", app, ({ id }) => session("DELETE", `/api/grants/${id}`), "creator_revoked"],
  ["an app whose access expired", app, expire("client_grant"), "creator_expired"],
  ["an app that may not read the Event any more", app, grantPatch({ scopes: ["mail:read"] }), "creator_narrowed"],
  [
    "an app without access to the Identity",
    app,
    async ({ id }) => {
      const other = await session("POST", "/api/identities", { handle: newHandle("other") })
      await session("PATCH", `/api/grants/${id}`, { handles: [other.body.handle] })
    },
    "creator_narrowed",
  ],
]

describe("Webhook", () => {
  it.each(survivors)("of %s stays active", async (_, creator, act) => {
    const made = await creator()
    const id = await register(made)
    await act(made)
    expect(await state(id)).toEqual(["active", null])
    await raiseCardUpdated()
    expect(await lastDelivery(id)).toEqual(["delivered", null])
    await session("DELETE", hook(id))
  })

  it.each(ends)("of %s is stopped until the account holder adopts it", async (_, creator, act, reason) => {
    const made = await creator()
    const id = await register(made)
    await act(made)
    expect(await state(id)).toEqual(["stopped", reason])
    const { webhooks } = (await session("GET", at("/webhooks"))).body
    expect(webhooks.find((one: { id: string }) => one.id === id)).toMatchObject({
      status: "stopped",
      stopped_reason: reason,
    })
    const since = new Date(Date.now() - 60_000).toISOString()
    expect((await session("POST", `${hook(id)}/test`)).body.code).toBe("conflict")
    expect((await session("POST", `${hook(id)}/recover`, { since })).body.code).toBe("conflict")
    await raiseCardUpdated()
    expect(await lastDelivery(id)).toEqual(["failed", reason])
    expect(receiver.got).toEqual([])
    // A change that keeps the Webhook's destination does not reactivate the Webhook.
    await session("PATCH", hook(id), { description: "seen" })
    expect(await state(id)).toEqual(["stopped", reason])
    await session("PATCH", hook(id), { status: "active" })
    expect(await state(id)).toEqual(["active", null])
    expect((await session("POST", `${hook(id)}/recover`, { since })).body.queued).toBe(1)
    expect(await lastDelivery(id)).toEqual(["delivered", null])
    expect(receiver.got.map(({ body }) => body.type)).toEqual(["card.updated"])
    const failures = (await session("GET", `/api/events?type=webhook.failed&handle=${owner.handle}`)).body.events
    expect(failures).toEqual([])
    await session("DELETE", hook(id))
  })

  it("of a session keeps receiving Events after the session ended", async () => {
    const other = await signedInUser(service.base)
    const path = `/api/identities/${other.handle}/webhooks`
    const body = { url: receiver.url, event_types: ["email.received"] }
    receiver.got.length = 0
    await call(service.base, "POST", path, { token: other.session, body })
    const key = (await call(service.base, "POST", "/api/keys", { token: other.session, body: { name: "k" } })).body.key
    expect((await call(service.base, "DELETE", "/api/auth/session", { token: other.session })).status).toBe(204)
    await send(service.smtpPort, {
      from: "g@example.org",
      to: `${other.handle}@mail.localhost`,
      subject: "s",
      text: "x",
    })
    await eventually(
      async () => receiver.got.length,
      (n) => n === 1,
    )
    const { webhooks } = (await call(service.base, "GET", path, { token: key })).body
    expect(webhooks).toMatchObject([{ status: "active", stopped_reason: null }])
  })

  it("of a narrowed app delivers the Events that the app may still read, and no others", async () => {
    const made = await app()
    const id = await register(made, ["*"])
    await grantPatch({ scopes: ["card:read"] })(made)
    expect(await state(id)).toEqual(["active", null])
    await send(service.smtpPort, {
      from: "g@example.org",
      to: `${owner.handle}@mail.localhost`,
      subject: "s",
      text: "x",
    })
    expect(await lastDelivery(id)).toEqual(["failed", "creator_narrowed"])
    await raiseCardUpdated()
    expect(await lastDelivery(id)).toEqual(["delivered", null])
    expect(receiver.got.map(({ body }) => body.type)).toEqual(["card.updated"])
    const [mail] = (await session("GET", `/api/events?type=email.received&handle=${owner.handle}`)).body.events
    await session("POST", `/api/events/${mail.id}/replay`, { webhook_id: id })
    expect(await lastDelivery(id)).toEqual(["failed", "creator_narrowed"])
    expect(receiver.got).toHaveLength(1)
    await session("DELETE", hook(id))
  })

  it("that a key redirected ends with that key", async () => {
    const id = await register(await ownSession())
    const made = await adminKey()
    const patch = { token: made.token, body: { url: receiver.url } }
    expect((await call(service.base, "PATCH", hook(id), patch)).status).toBe(200)
    expect(await state(id)).toEqual(["active", null])
    await revokeKey(made)
    expect(await state(id)).toEqual(["stopped", "creator_revoked"])
    await session("DELETE", hook(id))
  })

  it("carries an Event exactly if a valid creator may read it, for generated creators", () => {
    const creators = fc.record({
      creator_kind: fc.constantFrom("admin_key", "identity_key", "grant"),
      creator_end: fc.constantFrom(null, null, "creator_revoked" as const, "creator_expired" as const),
      creator_scopes: fc.subarray(["*", ...scopeNames]).map((names) => names.join(" ")),
    })
    const subjects: Record<string, string> = { email: "mail", signing_key: "proof", token: "proof" }
    const reads = (scopes: string, type: string) => {
      const [subject] = type.split(".") as [string]
      const needed = `${subjects[subject] ?? subject}:read` as ScopeName
      return allows(scopesOf(scopes), needed) || allows(scopesOf(scopes), "event:read")
    }
    fc.assert(
      fc.property(creators, fc.subarray([...identityEventTypes], { minLength: 1 }), (creator, event_types) => {
        const readable = event_types.filter(
          (type) => creator.creator_end === null && reads(creator.creator_scopes, type),
        )
        expect(event_types.filter((type) => withheld(creator, type) === undefined)).toEqual(readable)
        const { status } = stateOf({ ...creator, status: "active", event_types })
        expect(status).toBe(readable.length > 0 ? "active" : "stopped")
      }),
      { numRuns: 2_000 },
    )
    const unknown = { creator_kind: "admin_key", creator_end: null, creator_scopes: null }
    expect(withheld(unknown, "card.updated")).toBe("creator_revoked")
    expect(withheld({ ...unknown, creator_kind: null }, "card.updated")).toBeUndefined()
  })
})
