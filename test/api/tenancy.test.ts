/**
 * Tenant isolation: every operation is called with names of resources, including sub-resources, of another Org or another Identity. The
 * response must be the same as for resources that do not exist.
 */
import { beforeAll, describe, expect, it } from "vitest"
import { type ApiResponse, call, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import {
  createAccount,
  type AccountResources,
  createResources,
  type Names,
  unknownNames,
  pathTo,
} from "./AccountResources.ts"
import { type Operation, operations } from "./Operations.ts"

let service: TestService
/** Two Identities of one account, and one of another account. */
let ada: AccountResources
let bob: AccountResources
let eve: AccountResources
let began = 0
beforeAll(async () => {
  began = Date.now() - 1_000
  service = await sharedService()
  const owner = await signUp(service.base)
  ada = await createResources(service, owner)
  bob = await createResources(service, owner)
  eve = await createAccount(service)
})

/** Returns true for public operations, and for operations whose names are not owned by an account. */
const isOfEverybody = ({ id, access }: Operation) =>
  access === undefined || id === "handles.check" || id.startsWith("device_confirmation.")

const inVault = ({ id }: Operation) => id.startsWith("vault.")

/** The request of an operation with the given names in its path, query and body. */
interface Asked {
  readonly path: string
  readonly body: unknown
}

const bodyOf = ({ id, body }: Operation, names: Names): unknown => {
  if (id === "exports.create") return { identity: names.handle }
  // The example in the document contains a date in the past.
  if (id === "grants.update") return { scopes: ["mail:read"] }
  if (id === "events.replay") return { webhook_id: names.ids["webhooks"] }
  return body
}

/** Returns the query that names the Identity, for operations that name it there. */
const queryOf = (operation: Operation, handle: string): string => {
  if (inVault(operation) || operation.id === "limits.list") return `?identity=${handle}`
  return operation.id === "events.list" ? `?handle=${handle}` : ""
}

const requestOf = (operation: Operation, names: Names): Asked => ({
  path: `${pathTo(operation, names)}${queryOf(operation, names.handle)}`,
  body: operation.method === "GET" ? undefined : bodyOf(operation, names),
})

const ask = (token: string, { method }: Operation, { path, body }: Asked): Promise<ApiResponse> =>
  call(service.base, method, path, { token, ...(body === undefined ? {} : { body }) })

/** Returns the response without the members that differ for every request. */
const comparable = ({ status, body }: ApiResponse) => [
  status,
  typeof body === "object" ? { ...body, instance: "" } : body,
]

const named = operations.filter(
  (operation) =>
    !isOfEverybody(operation) &&
    (operation.path.includes(":") || queryOf(operation, "x") !== "" || operation.id === "exports.create"),
)

/** Sends a request that names an existing foreign resource and one that names an unknown resource, and expects equal responses. */
const expectAlike = async (operation: Operation, token: string, foreign: Names, absent: Names) => {
  const [one, other] = [requestOf(operation, foreign), requestOf(operation, absent)]
  if (one.path === other.path && JSON.stringify(one.body) === JSON.stringify(other.body)) return
  const [seen, unseen] = [await ask(token, operation, one), await ask(token, operation, other)]
  expect(comparable(seen), operation.id).toEqual(comparable(unseen))
  expect([403, 404], `${operation.id}: ${JSON.stringify(seen.body)}`).toContain(seen.status)
}

/** Returns all resources of the account as it reads them, without members that reading changes. */
const stateOf = async (own: AccountResources): Promise<unknown> => {
  const reads = named.filter(
    ({ id, method }) =>
      method === "GET" &&
      !/stream|wait|archive|^limits|^exports|^audit|notifications|posts|dms|connectors.thread|webhooks.request/.test(
        id,
      ),
  )
  const state: Record<string, unknown> = {}
  for (const operation of reads) {
    const { status, body } = await ask(own.session, operation, requestOf(operation, own))
    expect(status, operation.id).toBe(200)
    state[operation.id] = JSON.parse(
      JSON.stringify(body, (key, value) =>
        /^last_used|^attempts$|^next_attempt|^status$|timestamp/.test(key) ? "" : value,
      ),
    )
  }
  return state
}

/** Times that are announced, and times of the service itself. */
const later = /^(?:expires|next_attempt|ends|lapses|resets|renews)_at$/

/** Returns all times in the value with the path of each. */
const timesIn = (value: unknown, path = ""): ReadonlyArray<readonly [path: string, name: string, at: number]> => {
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, one]) =>
    name.endsWith("_at") && typeof one === "string"
      ? [[`${path}/${name}`, name, Date.parse(one)] as const]
      : timesIn(one, `${path}/${name}`),
  )
}

describe("The times of a resource", () => {
  it("are those at which it was made, changed and used, and will expire", async () => {
    const now = Date.now()
    const other = /stream|wait|archive|export$|connectors|^usage|^overview|audit\.(?:usage|head)/
    const reads = operations.filter((one) => one.method === "GET" && !isOfEverybody(one) && !other.test(one.id))
    const seen: Array<string> = []
    for (const operation of reads) {
      const { status, body } = await ask(ada.session, operation, requestOf(operation, ada))
      if (status !== 200 || typeof body !== "object") continue
      for (const [path, name, at] of timesIn(body)) {
        const what = `${operation.id} ${path} ${new Date(at).toISOString()}`
        seen.push(name)
        if (later.test(name)) expect(at > began, what).toBe(true)
        else expect(at >= began && at <= now + 60_000, what).toBe(true)
      }
    }
    expect(new Set(seen).size).toBeGreaterThan(8)
  })
})

describe("Resources of another account", () => {
  it("appear not to exist in every operation, for a session and for a key", async () => {
    const before = await stateOf(ada)
    for (const operation of named) {
      for (const token of [eve.session, eve.adminKey]) {
        if (operation.access === "session" && token !== eve.session) continue
        await expectAlike(operation, token, ada, unknownNames)
      }
    }
    expect(await stateOf(ada)).toEqual(before)
  })

  it("appear not to exist under the caller's own Handle", async () => {
    const before = await stateOf(ada)
    const ofAda: Names = { ...ada, handle: eve.handle }
    const ofNobody: Names = { ...unknownNames, handle: eve.handle }
    const below = named.filter(({ path }) => /:(?!handle|platform|index)/.test(path))
    expect(below.length).toBeGreaterThan(35)
    for (const operation of below) {
      // A PUT would create a secret or an address with that name.
      if (operation.id === "vault.put") continue
      for (const token of [eve.session, eve.identityKey]) {
        if (token === eve.identityKey && operation.access !== "any") continue
        await expectAlike(operation, token, ofAda, ofNobody)
      }
    }
    expect(await stateOf(ada)).toEqual(before)
  })

  it("cannot be the start of a list or a stream", async () => {
    const foreign = (query: string) =>
      call(service.base, "GET", `/api/identities/${eve.handle}/messages?${query}`, { token: eve.session })
    expect((await foreign(`thread_id=${ada.ids["threads"]}`)).body.messages).toEqual([])
    const answered = await call(service.base, "POST", `/api/identities/${eve.handle}/messages/send`, {
      token: eve.session,
      body: { to: [], text: "x", reply_to_message: ada.ids["messages"] },
    })
    const unanswered = await call(service.base, "POST", `/api/identities/${eve.handle}/messages/send`, {
      token: eve.session,
      body: { to: [], text: "x", reply_to_message: unknownNames.ids["messages"] },
    })
    expect(comparable(answered)).toEqual(comparable(unanswered))
    const replayed = await call(service.base, "POST", `/api/events/${eve.ids["events"]}/replay`, {
      token: eve.session,
      body: { webhook_id: ada.ids["webhooks"] },
    })
    expect([replayed.status, replayed.body.code]).toEqual([404, "not_found"])
  })
})

describe("Resources of another Identity of the account", () => {
  it("appear not to exist for its key", async () => {
    const before = await stateOf(ada)
    for (const operation of named) await expectAlike(operation, bob.identityKey, ada, unknownNames)
    expect(await stateOf(ada)).toEqual(before)
  })

  it("are not found below the caller's own Handle by any credential", async () => {
    const before = await stateOf(ada)
    const ofAda: Names = { ...ada, handle: bob.handle }
    const ofNobody: Names = { ...unknownNames, handle: bob.handle }
    const below = named.filter(({ path, id }) => /:handle.*:(?!platform|index)|:name/.test(path) && id !== "vault.put")
    for (const operation of below) {
      for (const token of [bob.session, bob.identityKey]) {
        if (token === bob.identityKey && operation.access !== "any") continue
        // The caller's account may own a different secret with the same name.
        await expectAlike(operation, token, ofAda, ofNobody)
      }
    }
    expect(await stateOf(ada)).toEqual(before)
  })
})

describe("An Identity that is not ready", () => {
  /** Operations that check something else first: an account at a platform, which this test does not have, or the request's content. */
  const elsewhere = /^(?:connectors\.|proof\.registerKey$|agent_sign_ins\.create$)/
  const refusing = operations.filter(
    ({ id, problems }) => problems.includes("identity_not_ready") && !elsewhere.test(id),
  )

  it("is rejected with identity_not_ready by every operation that declares this code", async () => {
    const read = (path: string) =>
      call(service.base, "GET", `/api/identities/${eve.handle}${path}`, { token: eve.session })
    const { content_sha256 } = (await read(`/approvals/${eve.ids["sending.approval"]}`)).body
    const bodies: Readonly<Record<string, unknown>> = {
      "sending.send": { to: [eve.address], text: "x" },
      "sending.approve": { content_sha256 },
      "sending.refuse": { content_sha256 },
      "proof.createToken": { audience: "https://shop.example" },
      "proof.createSignature": { method: "GET", url: "https://shop.example/" },
    }
    // Another process took the actor over while the Identity failed.
    await service.query(
      (sql) => sql`
      with failed as (update identity set status = 'failed' where handle = ${eve.handle} returning canonical)
      update actor set epoch = epoch + 1 where kind = 'Identity' and id = (select canonical from failed)`,
    )
    const seen: Array<unknown> = []
    for (const operation of refusing) {
      const asked = requestOf(operation, eve)
      const { status, body } = await ask(eve.session, operation, { ...asked, body: bodies[operation.id] ?? asked.body })
      seen.push([operation.id, status, body.code === "identity_not_ready" ? body.code : body, body.agent_hint])
    }
    expect(seen).toEqual(refusing.map(({ id }) => [id, 409, "identity_not_ready", "stop"]))
  })
})
