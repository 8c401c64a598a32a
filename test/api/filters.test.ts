/**
 * Every filter of a list selects. The names come from the OpenAPI document, so that a new filter needs a line here, or the name
 * of the test that has it.
 */
import { document } from "@svc/api/openapi/Document"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { type AccountResources, createAccount } from "./AccountResources.ts"
import { operations } from "./Operations.ts"

let service: TestService
let own: AccountResources
let at: string
beforeAll(async () => {
  service = await sharedService()
  own = await createAccount(service)
  at = `/api/identities/${own.handle}`
})

type Json = any

const get = async (path: string): Promise<Json> => {
  const { status, body } = await call(service.base, "GET", path, { token: own.session })
  expect(status, `${path}: ${JSON.stringify(body)}`).toBe(200)
  return body
}
const described = ({ path, method }: (typeof operations)[number]) =>
  document["paths"][path.replace(/:(\w+)/g, "{$1}")][method.toLowerCase()]

/** Parameters that select no entries by what they are: pages, waits and forms of the response. */
const others = new Set([
  "limit",
  "cursor",
  "offset",
  "wait",
  "after",
  "seconds",
  "version",
  "changes",
  "by",
  "step",
  "apps",
  "uri",
])

/** Lists whose filters another test has. */
const elsewhereFiltered: Readonly<Record<string, string>> = {
  "audit.usage": "audit/service",
  "audit.export": "audit/service",
  "messages.wait": "mail/waiting",
  "usage.read": "api/usage",
  "limits.list": "api/limit-uses",
}

/** A list, an id of one of its entries, and for each filter a value that selects the entry and one that does not. */
type Filters = readonly [list: string, id: string, filters: Readonly<Record<string, readonly [string, string]>>]

const from = "2020-01-01T00:00:00Z"
const later = "2099-01-01T00:00:00Z"
const filters: Readonly<Record<string, () => Promise<Filters>>> = {
  "audit.list": async () => {
    const records = await eventually(
      async () => (await get("/api/audit?action=webhooks.create")).records,
      ({ length }) => length > 0,
    )
    return [
      "/api/audit",
      records[0].id,
      {
        since: [from, later],
        until: [later, from],
        class: [records[0].class, "auth"],
        action: ["webhooks.create", "account.remove"],
        actor: [records[0].actor.id, "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"],
        identity: [own.handle, "nobody-here"],
        outcome: ["allowed", "failed"],
        address: ["127.0.0.1", "203.0.113.9"],
      },
    ]
  },
  "messages.list": async () => {
    await send(service.smtpPort, {
      from: "alan@example.org",
      to: `${own.handle}+billing@mail.localhost`,
      subject: "An invoice",
      text: "The total is 17.",
    })
    const [{ id, thread_id }] = await eventually(
      async () => (await get(`${at}/messages`)).messages.filter(({ tag }: Json) => tag === "billing"),
      ({ length }) => length === 1,
    )
    const body = { seen: true, flagged: true, labels: ["blue"] }
    await call(service.base, "PATCH", `${at}/messages/${id}`, { token: own.session, body })
    return [
      `${at}/messages`,
      id,
      {
        query: ["invoice", "secret"],
        tag: ["billing", "other"],
        thread_id: [thread_id, own.ids["threads"]!],
        from: ["alan@example.org", "grace@example.org"],
        direction: ["inbound", "outbound"],
        seen: ["true", "false"],
        flagged: ["true", "false"],
        label: ["blue", "red"],
      },
    ]
  },
  "threads.list": async () => [`${at}/threads`, own.ids["threads"]!, { archived: ["false", "true"] }],
  "mail_settings.recipients": async () => [
    `${at}/allowed-recipients`,
    own.address,
    { address: [own.address, "nobody@example.org"] },
  ],
  "webhooks.deliveries": async () => {
    const list = `${at}/webhooks/${own.ids["webhooks"]}/deliveries`
    const [entry] = (await get(list)).deliveries
    return [list, entry.id, { status: [entry.status, "delivered"], event_id: [entry.event_id, own.ids["events"]!] }]
  },
  "events.list": async () => {
    const other = await makeIdentity(service.base, own.session)
    const values = { type: ["email.received", "card.updated"], handle: [own.handle, other.handle] } as const
    return ["/api/events", own.ids["events"]!, values]
  },
  "events.listOfIdentity": async () => [
    `${at}/events`,
    own.ids["events"]!,
    { type: ["email.received", "card.updated"] },
  ],
}

describe("Every filter", () => {
  const withFilters = operations
    .filter(({ method, access }) => method === "GET" && access !== undefined)
    .flatMap((operation) => {
      const { parameters = [] } = described(operation)
      const names = parameters.flatMap((one: Json) => (one.in === "query" && !others.has(one.name) ? [one.name] : []))
      return names.length === 0 || operation.id.startsWith("vault.") ? [] : [[operation.id, names.sort()] as const]
    })

  it("is tested for each list", () => {
    const known = new Set([...Object.keys(filters), ...Object.keys(elsewhereFiltered)])
    expect(withFilters.map(([id]) => id).filter((id) => !known.has(id))).toEqual([])
  })

  it.each(withFilters.filter(([id]) => filters[id] !== undefined))("of %s selects", async (id, names) => {
    const [list, entry, values] = await filters[id]!()
    expect(Object.keys(values).sort()).toEqual(names)
    for (const [name, [selecting, other]] of Object.entries(values)) {
      const has = async (value: string) =>
        JSON.stringify(await get(`${list}?${name}=${encodeURIComponent(value)}`)).includes(`"${entry}"`)
      expect([await has(selecting), await has(other)], name).toEqual([true, false])
    }
  })
})
