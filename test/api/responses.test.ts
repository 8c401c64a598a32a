/**
 * Compares the whole responses of the API with `responses.txt`, for an account that owns one of every resource, and the Events
 * and audit records that the calls create. Programs depend on each member. After an intended change,
 * `npm test -- test/api/responses --update=all` writes the file anew.
 */
import { beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { createAccount, pathTo, type AccountResources } from "./AccountResources.ts"
import { operations } from "./Operations.ts"

let service: TestService
let own: AccountResources
beforeAll(async () => {
  service = await sharedService()
  own = await createAccount(service)
  const read = async (path: string) => (await call(service.base, "GET", path, { token: own.session })).body
  // The service writes the following values shortly after its responses.
  await eventually(
    () => read(`/api/identities/${own.handle}/webhooks/${own.ids["webhooks"]}`),
    ({ failing_since }) => failing_since !== null,
  )
  await eventually(
    () => read(`/api/exports/${own.ids["exports"]}`),
    ({ status }) => status === "ready",
  )
  for (const token of [own.adminKey, own.identityKey]) await call(service.base, "GET", "/api/auth/whoami", { token })
  await eventually(
    () => read("/api/keys"),
    ({ api_keys }) => api_keys.every(({ last_used_at }: { last_used_at: string | null }) => last_used_at !== null),
  )
})

interface Call {
  readonly body?: unknown
  readonly query?: string
  readonly as?: "identityKey" | "adminKey"
}

const letter = {
  subject: "Invoice 17",
  text: "Dear Grace,\n\nhere it is.",
  html: "<p>Dear Grace,</p><p>here it is.</p>",
}
const network = "203.0.113.0/24"
const strangers = [1, 2, 3, 4, 5, 6].map((n) => `stranger${n}@example.org`)

/** The operations in the order of their calls: reads first, and then changes, so that each finds its resource. */
const calls = (): ReadonlyArray<readonly [id: string, given?: Call]> => [
  ["session.read"],
  ["session.list"],
  ["session.whoami"],
  ["session.whoami", { as: "adminKey" }],
  ["session.whoami", { as: "identityKey" }],
  ["account.read"],
  ["exports.list"],
  ["exports.read"],
  ["api_keys.list"],
  ["api_keys.read"],
  ["handles.check"],
  ["identities.list"],
  ["identities.read"],
  ["identities.secrets"],
  ["cards.read"],
  ["proof.listKeys"],
  ["proof.settings"],
  ["agent_sign_ins.list"],
  ["agent_sign_ins.read"],
  ["messages.list"],
  ["messages.list", { query: "?query=nothing" }],
  ["messages.read"],
  ["messages.attachment"],
  ["messages.attachmentText"],
  ["threads.list"],
  ["threads.read"],
  ["sending.drafts"],
  ["sending.readDraft"],
  ["sending.approvals"],
  ["sending.approval"],
  ["mail_settings.recipients"],
  ["mail_settings.disclosure"],
  ["mail_settings.status"],
  ["org_mail.stopped"],
  ["webhooks.list"],
  ["webhooks.read"],
  ["events.read"],
  ["tunnels.read"],
  ["connectors.list"],
  ["connectors.read"],
  ["vault.list"],
  ["vault.list", { query: `?identity=${own.handle}` }],
  ["vault.value"],
  ["vault.versions"],
  ["limits.list"],
  ["grants.list"],
  ["grants.read"],

  ["account.update", { body: { language: "de" } }],
  ["account.acceptTerms", { body: { version: "1999-01-01" } }],
  ["exports.create", { body: {} }],
  ["api_keys.create", { body: { name: "ci", scopes: ["mail:read"], expires_in_days: 90, networks: [network] } }],
  ["api_keys.createForIdentity", { body: { name: "worker", scopes: ["mail:read"], expires_in_days: 1 } }],
  ["api_keys.rotate", { body: { overlap_seconds: 60 } }],
  ["identities.create", { body: { handle: own.handle } }],
  ["identities.retry"],
  ["identities.acknowledge"],
  ["identities.secrets"],
  [
    "cards.patch",
    { body: { description: "Computes on request.", skills: [{ id: "sum", name: "Sum", description: "Adds" }] } },
  ],
  ["proof.updateSettings", { body: { audiences: ["sts.amazonaws.com"], sites: "any" } }],
  ["proof.createToken", { body: { audience: "sts.amazonaws.com" }, as: "identityKey" }],
  ["proof.createToken", { body: { audience: "https://other.example" }, as: "identityKey" }],
  ["proof.createSignature", { body: { method: "GET", url: "https://example.org/hook" }, as: "identityKey" }],
  ["proof.verify", { body: { token: "e30.e30.x", audience: "https://other.example" } }],
  ["agent_sign_ins.refuse"],
  ["agent_sign_ins.end"],
  ["messages.patch", { body: { seen: true, flagged: true, labels: ["billing"] } }],
  ["messages.patchMany", { body: { ids: [own.ids["messages"]], add_labels: ["paid"], remove_labels: ["billing"] } }],
  ["mail_settings.allow", { body: { address: "grace@example.org" } }],
  ["mail_settings.setDisclosure", { body: { text: "An agent wrote this." } }],
  ["sending.send", { body: { to: ["grace@example.org"], ...letter } }],
  ["sending.send", { body: { to: [...strangers, "grace@example.org"], ...letter } }],
  ["sending.draft", { body: { to: ["grace@example.org"], ...letter } }],
  ["sending.replaceDraft", { body: { to: ["grace@example.org"], cc: [own.address], ...letter } }],
  ["sending.sendDraft"],
  ["sending.refuse", { body: { reason: "Not now" } }],
  ["sending.approve", { body: {} }],
  ["mail_settings.switch", { body: { outgoing: "stopped", reason: "On holiday" } }],
  ["sending.send", { body: { to: ["grace@example.org"], ...letter } }],
  ["mail_settings.disallow"],
  ["mail_settings.lift"],
  ["mail_settings.resetDisclosure"],
  ["org_mail.switch", { body: { outgoing: "stopped", reason: "Pause" } }],
  [
    "webhooks.create",
    { body: { url: "https://example.org/hook", event_types: ["email.received"], description: "Ledger" } },
  ],
  ["webhooks.test"],
  ["events.replay", { body: { webhook_id: own.ids["webhooks"] } }],
  ["webhooks.patch", { body: { event_types: ["email.received"], description: "Invoices", status: "disabled" } }],
  ["webhooks.rotate"],
  ["tunnels.patch", { body: { host_header: "preserve", allowed_networks: [network], callers: "signed" } }],
  ["vault.put", { body: { value: "new", description: "Second" } }],
  ["vault.restore", { body: { version: 1 } }],
  ["vault.value"],
  ["grants.update", { body: { scopes: ["mail:read"], networks: [network] } }],

  ["proof.removeKey"],
  ["messages.removeMany", { body: { ids: [own.ids["messages"]] } }],

  ["webhooks.remove"],
  ["vault.remove"],
  ["grants.revoke"],
  ["api_keys.revoke"],
]

const byId = new Map(operations.map((operation) => [operation.id, operation]))
const told = ["location", "etag", "cache-control", "content-disposition", "link"]
const hidden = "key|identity_key|password|signing_secret|token_prefix|token|signature|protected|x|kid|content_sha256"

/** Returns a time relative to now, in hours or days. */
const relative = (time: string): string => {
  const hours = Math.round((Date.parse(time) - Date.now()) / 3_600_000)
  return hours === 0 ? "<now>" : Math.abs(hours) < 48 ? `<now ${hours} h>` : `<now ${Math.round(hours / 24)} d>`
}

/** Replaces what differs from run to run. Equal ids have equal names. */
const stable = (text: string): string => {
  const names = new Map<string, string>()
  const name = (id: string) => names.get(id) ?? names.set(id, `<id ${names.size + 1}>`).get(id)!
  return text
    .replaceAll(own.handle, "ada")
    .replaceAll(own.email, "owner@example.org")
    .replaceAll(service.base, "<base>")
    .replaceAll(encodeURIComponent(new URL(service.base).host), "<host>")
    .replaceAll(`: ${service.imapPort},`, ": <imap>,")
    .replaceAll(`: ${service.submissionPort},`, ": <submission>,")
    .replaceAll(`:${service.edgePort}`, ":<edge>")
    .replace(/("port": )\d+/g, "$1<port>")
    .replace(new RegExp(`("(?:${hidden})": ")[^"]+`, "g"), "$1…")
    .replace(/("(?:used|attempts|seconds)": )[\d.]+|("size": )\d\d+/g, "$1$2…")
    .replace(/("resets_at": )"[^"]+"/g, "$1…")
    .replace(/(created=|expires=|keyid=\\"|nonce=\\"|sig1=:|signing-keys\/|boundary=\\")[\w/+=-]+/g, "$1…")
    .replace(/oc_[\w-]{43}/g, "oc_…")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, relative)
    .replace(/\w{3}, \d\d? \w{3} \d{4} [\d:]+ \+0000/g, "<now>")
    .replace(/\b(?:[a-z]{2,4}_)?[0-9a-hjkmnp-tv-z]{26}\b/g, name)
    .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, name)
}

describe("The responses of the API", () => {
  it("have exactly these members, and the calls leave exactly these Events and audit records", async () => {
    const shown = async (id: string, { body, query = "", as }: Call = {}) => {
      const operation = byId.get(id)!
      const path = pathTo(operation, own) + query
      const request = { token: as === undefined ? own.session : own[as], ...(body === undefined ? {} : { body }) }
      const response = await call(service.base, operation.method, path, request)
      const headers = told.flatMap((name) => {
        const value = response.headers.get(name)
        return value === null ? [] : [`${name}: ${name === "etag" ? "…" : value}`]
      })
      const text = typeof response.body === "string" ? response.body : JSON.stringify(response.body, null, 1)
      const by = as === undefined ? "" : ` (${as})`
      return [
        `${operation.method} ${path}${by}`,
        `${response.status}`,
        ...headers,
        ...(text === "" ? [] : [text]),
      ].join("\n")
    }
    const all: Array<string> = []
    for (const [id, given] of calls()) all.push(await shown(id, given))
    const read = async (path: string) => (await call(service.base, "GET", path, { token: own.session })).body
    const { events } = await read("/api/events?limit=100")
    for (const { type, handle, data } of events.toReversed())
      all.push(`Event ${type} ${handle} ${JSON.stringify(data, null, 1)}`)
    const { records } = await eventually(
      () => read("/api/audit?limit=200"),
      ({ records }) => records.some(({ action }: { action: string }) => action === "api_keys.revoke"),
    )
    for (const record of records.toReversed()) {
      // How many records the reading of the log makes depends on the time.
      if (record.action === "audit.list") continue
      const same = Object.entries(record).filter(([name]) => !/^(?:id|at|seal|sealed|request_id)$/.test(name))
      all.push(`Audit ${JSON.stringify(Object.fromEntries(same))}`)
    }
    await expect(stable(all.join("\n\n"))).toMatchFileSnapshot("responses.txt")
  })
})
