/**
 * A resource has one representation wherever it is read, and no change overwrites a version that the caller has not seen.
 */
import { document } from "@svc/api/openapi/Document"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"
import { createAccount, type AccountResources, pathTo } from "./AccountResources.ts"
import { type Operation, operations, pathOf } from "./Operations.ts"

let service: OwnService
let own: AccountResources
beforeAll(async () => {
  service = await startService()
  own = await createAccount(service)
})
afterAll(() => service.stop())

const read = (path: string) => call(service.base, "GET", path, { token: own.session })

describe("List entry and single read", () => {
  const pairs = operations
    .filter(({ method, path }) => method === "GET" && /\/:\w+$/.test(path))
    .flatMap((single) => {
      const collection = single.path.replace(/\/:\w+$/, "")
      const list = operations.find(({ method, path }) => method === "GET" && path === collection)
      return list === undefined ? [] : [[list.id, list, single] as const]
    })

  /** Members that a summary omits, and members that describe the omissions. */
  const summaries: Readonly<Record<string, ReadonlyArray<string>>> = {
    "messages.list": [],
    // Drafts are returned completely, so that a client can put them back. A message that the list truncates is returned completely by its
    // id.
    "sending.approvals": ["truncated"],
    "sending.drafts": ["cc", "bcc", "snippet", "attachments"],
  }

  it("are compared for every collection", () => {
    expect(pairs.length).toBeGreaterThanOrEqual(11)
  })

  it.each(pairs)("of %s have the same members in the same order, including nested ones", async (id, list, single) => {
    // A record of the audit log gets its seal a moment later.
    const { body } = await eventually(
      () => read(pathTo(single, own)),
      ({ body }) => single.id !== "audit.read" || body.sealed !== null,
    )
    const complete: Record<string, unknown> = single.id === "threads.read" ? body.thread : body
    for (const query of id === "messages.list" ? ["", "?query=word", "?direction=inbound"] : [""]) {
      const listed = (await read(`${pathTo(list, own)}${query}`)).body
      const entries = Object.values(listed).find((one): one is Array<Record<string, unknown>> => Array.isArray(one))
      const key = ["id", "handle", "platform"].find((one) => complete[one] !== undefined)!
      const entry = entries!.find((one) => one[key] === complete[key])!
      const derived = summaries[id]
      const isShown = (name: string) => derived === undefined || (name in entry && !derived.includes(name))
      const shown = Object.fromEntries(Object.entries(complete).filter(([name]) => isShown(name)))
      const members = Object.fromEntries(Object.entries(entry).filter(([name]) => derived?.includes(name) !== true))
      expect(JSON.stringify(members, null, 1), query).toBe(JSON.stringify(shown, null, 1))
    }
  })
})

const described = ({ path, method }: Operation) =>
  document["paths"][path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()]
const change = (operation: Operation, path: string, body: unknown, tag: string) =>
  call(service.base, operation.method, path, {
    token: own.session,
    headers: { "if-match": tag },
    ...(body === undefined ? {} : { body }),
  })
const changing = operations.filter(({ method, access }) => /PATCH|PUT|DELETE/.test(method) && access !== undefined)

describe("Change with If-Match", () => {
  it("of the account is made once if two have the same tag", async () => {
    const { headers } = await call(service.base, "GET", "/api/account", { token: own.session })
    const conditional = (language: string) =>
      call(service.base, "PATCH", "/api/account", {
        token: own.session,
        body: { language },
        headers: { "if-match": headers.get("etag")! },
      })
    const both = await Promise.all([conditional("fr"), conditional("en")])
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 412])
    const { body } = await call(service.base, "GET", "/api/account", { token: own.session })
    expect(body.language).toBe(both.find(({ status }) => status === 200)!.body.language)
  })

  it("is documented at every operation that changes or removes a resource", () => {
    const lacking = changing.filter(
      (operation) => !described(operation).parameters.some(({ name }: { name: string }) => name === "if-match"),
    )
    expect(lacking.map(({ id }) => id)).toEqual([])
  })

  it.each(changing.map((operation) => [operation.id, operation] as const))(
    "of an outdated version is rejected: %s",
    async (_, operation) => {
      for (const tag of ['"v999999"', 'W/"v1"', "garbage"]) {
        const { status, body } = await change(operation, pathTo(operation, own), operation.body, tag)
        expect([status, body.code], `${operation.id} ${tag}`).toEqual([412, "precondition_failed"])
      }
    },
  )

  it("of a resource that does not exist is rejected, also with `*`", async () => {
    const missing = changing.filter(({ path }) => /:(?:id|kid|name|address)\b/.test(path))
    expect(missing.length).toBeGreaterThan(15)
    for (const operation of missing) {
      const path = pathOf(operation, own.handle).replace(":kid", "none")
      const { status, body } = await change(operation, path, others[operation.id] ?? operation.body, "*")
      expect([status, body.code], operation.id).toEqual([412, "precondition_failed"])
    }
  })

  it("of an outdated version is rejected when a draft is sent", async () => {
    const path = `/api/identities/${own.handle}/drafts`
    const draft = { to: [own.address], text: "first" }
    const made = await call(service.base, "POST", path, { token: own.session, body: draft })
    const at = `${path}/${made.body.id}`
    const changed = await call(service.base, "PUT", at, { token: own.session, body: { ...draft, text: "second" } })
    const dispatch = (tag: string) =>
      call(service.base, "POST", `${at}/send`, { token: own.session, headers: { "if-match": tag } })
    const stale = await dispatch(made.headers.get("etag")!)
    expect([stale.status, stale.body.code]).toEqual([412, "precondition_failed"])
    expect((await dispatch(changed.headers.get("etag")!)).status).toBe(202)
    expect((await dispatch(changed.headers.get("etag")!)).status).toBe(412)
  })

  /** A change for each resource with an ETag that creates a new version. A deletion needs no body. */
  const others: Readonly<Record<string, unknown>> = {
    "account.update": { language: "de" },
    "proof.updateSettings": { sites: "any" },
    "cards.patch": { description: "Computes other things." },
    "messages.patch": { flagged: true },
    "sending.replaceDraft": { to: ["someone@example.org"], text: "other" },
    "mail_settings.setDisclosure": { text: "Written by a machine." },
    "mail_settings.switch": { tag_folders: true },
    "webhooks.patch": { description: "other" },
    "tunnels.patch": { proxy_protocol: true },
    "grants.update": { scopes: ["card:read"] },
    "vault.put": { value: "other" },
  }
  const readingOf = (operation: Operation) => {
    const path =
      operation.id === "vault.put" || operation.id === "vault.remove" ? `${operation.path}/value` : operation.path
    return operations.find((one) => one.method === "GET" && one.path === path)
  }
  const tagged = changing.filter((operation) => {
    const reading = readingOf(operation)
    return reading !== undefined && described(reading).responses["200"].headers?.etag !== undefined
  })
  const order = (operation: Operation) =>
    operation.id === "identities.remove" ? 2 : operation.method === "DELETE" ? 1 : 0

  it("of the current version is made once", async () => {
    for (const operation of tagged.toSorted((one, other) => order(one) - order(other))) {
      // These operations call the platform; `connectors/service` tests them with a fake platform.
      if (operation.id.startsWith("connectors.")) continue
      const body = operation.method === "DELETE" ? undefined : others[operation.id]
      expect(operation.method === "DELETE" || body !== undefined, `${operation.id} has no change here`).toBe(true)
      const path = pathTo(operation, own)
      const { headers } = await read(pathTo(readingOf(operation)!, own))
      const tag = headers.get("etag")!
      expect(tag, operation.id).toMatch(/^"/)
      // Both callers have seen the same version, and neither has seen the change of the other. A deletion may be repeated.
      const callers = operation.method === "DELETE" ? 1 : 2
      const both = await Promise.all(Array.from({ length: callers }, () => change(operation, path, body, tag)))
      const [first, second] = both.toSorted((one, other) => one.status - other.status)
      expect(first!.status, `${operation.id}: ${JSON.stringify(first!.body)}`).toBeLessThan(300)
      if (second !== undefined)
        expect([second.status, second.body.code], operation.id).toEqual([412, "precondition_failed"])
      const repeated = await change(operation, path, body, tag)
      expect([repeated.status, repeated.body.code], operation.id).toEqual([412, "precondition_failed"])
    }
  })
})
