import { tools } from "@svc/api/mcp/Tools"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"
import { type Operation, operations, pathOf } from "./Operations.ts"

let service: TestService
let owner: Awaited<ReturnType<typeof signUp>>
let ada: Awaited<ReturnType<typeof makeIdentity>>
let bob: Awaited<ReturnType<typeof makeIdentity>>
let admin: string
let stranger: string
let dead: Readonly<Record<"garbage" | "revoked" | "expired" | "deleting", string>>
const nobody = newHandle("nobody")

beforeAll(async () => {
  service = await startService()
  owner = await signUp(service.base)
  ada = await makeIdentity(service.base, owner.session)
  bob = await makeIdentity(service.base, owner.session)
  const mint = async (token: string) =>
    (await call(service.base, "POST", "/api/keys", { token, body: { name: "key" } })).body
  admin = (await mint(owner.session)).key
  const revoked = await mint(owner.session)
  await call(service.base, "DELETE", `/api/keys/${revoked.api_key.id}`, { token: owner.session })
  const expired = await signUp(service.base)
  await service.query(
    (sql) =>
      sql`update session s set expires_at = now() - interval '1 second' from org o where o.id = s.org_id and o.email = ${expired.email}`,
  )
  const leaving = await signUp(service.base)
  await call(service.base, "POST", "/api/account/deletion", {
    token: leaving.session,
    body: { confirm: leaving.email },
  })
  dead = { garbage: "svc_admin_nonsense", revoked: revoked.key, expired: expired.session, deleting: leaving.session }
  stranger = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const ask = (operation: Operation, handle: string, token?: string): Promise<Answer> =>
  call(service.base, operation.method, pathOf(operation, handle), {
    ...(token === undefined ? {} : { token }),
    ...(operation.body === undefined ? {} : { body: operation.body }),
  })
const outcome = ({ status, body }: Answer) => [status, body?.code]
const comparable = ({ status, body }: Answer) => ({ status, body: { ...body, instance: "" } })

/** Streams would never end here. */
const credentialed = operations.filter(({ access, id }) => access !== undefined && !id.startsWith("events.stream"))
const streams = operations.filter(({ id }) => id.startsWith("events.stream"))

const denial = {
  any: "foreign_identity",
  org: "org_scope_required",
  admin: "admin_required",
  session: "session_required",
} as const

describe.each([...credentialed, ...streams].map((operation) => [operation.id, operation] as const))(
  "%s",
  (_, operation) => {
    it("refuses whoever has no live credential, all alike", async () => {
      const without = await ask(operation, ada.handle)
      expect(outcome(without)).toEqual([401, "unauthenticated"])
      expect(without.headers.get("www-authenticate")).toBe("Bearer")
      for (const kind of ["garbage", "revoked", "expired"] as const) {
        expect(comparable(await ask(operation, ada.handle, dead[kind])), kind).toEqual(comparable(without))
      }
      expect((await ask(operation, ada.handle, dead.deleting)).status).toBe(401)
    })

    it("refuses an Identity Key beyond its own Identity", async () => {
      const level = operation.access!
      if (level === "any" && !operation.path.includes(":handle")) return
      const refused = await ask(operation, bob.handle, ada.secrets.identity_key)
      expect(outcome(refused)).toEqual([403, denial[level]])
      // Whether the other one exists makes no difference.
      if (operation.path.includes(":handle")) {
        expect(comparable(await ask(operation, nobody, ada.secrets.identity_key))).toEqual(comparable(refused))
      }
    })

    it("tells a stranger's Identity from none in nothing", async () => {
      if (!operation.path.includes(":handle") || operation.id === "handles.check") return
      const foreign = await ask(operation, ada.handle, stranger)
      expect(foreign.status).toBe(404)
      expect(comparable(foreign)).toEqual(comparable(await ask(operation, nobody, stranger)))
    })

    it("lets in those it is for", async () => {
      if (["session.revoke", "session.revokeAll"].includes(operation.id) || streams.includes(operation)) return
      const session = await ask(operation, nobody, owner.session)
      expect([401, 403]).not.toContain(session.status)
      const byAdmin = await ask(operation, nobody, admin)
      if (operation.access === "session") expect(outcome(byAdmin)).toEqual([403, "session_required"])
      else expect([401, 403]).not.toContain(byAdmin.status)
      if (operation.access !== "any") return
      const own = await ask(operation, ada.handle, ada.secrets.identity_key)
      // Of "any" operations, some have a part that is the account's alone, and one names an Identity in its query or body.
      if (!["mail_settings.switch", "exports.create", "tunnels.patch"].includes(operation.id))
        expect([401, 403], own.body?.code).not.toContain(own.status)
    })
  },
)

describe("public operations", () => {
  it.each(
    operations.filter(({ access }) => access === undefined).map((operation) => [operation.id, operation] as const),
  )("%s takes no credential and minds none", async (_, operation) => {
    const plain = await ask(operation, ada.handle)
    expect([401, 403]).not.toContain(plain.status)
    const withGarbage = await ask(operation, ada.handle, "svc_admin_nonsense")
    expect(withGarbage.status).toBe(plain.status)
  })
})

describe("over MCP", () => {
  const tool = (name: string, input: object, token: string) =>
    call(service.base, "POST", "/api/mcp", {
      token,
      body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } },
    })

  it.each(tools.map((bound) => [bound.listed.name, bound] as const))(
    "%s is refused as over REST",
    async (name, bound) => {
      const operation = operations.find(({ method, path }) => method === bound.method && path === bound.path)!
      const input = {
        ...(bound.inPath.includes("handle") ? { handle: bob.handle } : {}),
        ...Object.fromEntries(
          bound.inPath
            .filter((one) => one !== "handle")
            .map((one) => [
              one,
              decodeURIComponent(pathOf(operation, "x").split("/")[operation.path.split("/").indexOf(`:${one}`)]!),
            ]),
        ),
        ...operation.body,
      }
      for (const token of [dead.revoked, dead.garbage, dead.expired]) {
        const refused = await tool(name, input, token)
        expect([refused.status, refused.body.code]).toEqual([401, "unauthenticated"])
      }
      const rest = await ask(operation, bob.handle, ada.secrets.identity_key)
      const { body } = await tool(name, input, ada.secrets.identity_key)
      if (rest.status === 403)
        expect({ ...body.result.structuredContent, instance: "" }).toEqual({ ...rest.body, instance: "" })
      const foreign = await ask(operation, bob.handle, stranger)
      if (foreign.status !== 404) return
      const over = await tool(name, input, stranger)
      expect({ ...over.body.result.structuredContent, instance: "" }).toEqual({ ...foreign.body, instance: "" })
    },
  )
})
