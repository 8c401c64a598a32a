/**
 * Every member of a request has its effect. The names come from the OpenAPI document, so that a new member needs a line here, or
 * the name of the test that has it.
 */
import { document } from "@svc/api/openapi/Document"
import { decodeJwt, decodeProtectedHeader } from "jose"
import { beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
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

const ask = async (method: string, path: string, body?: unknown, token: string | undefined = own.session) => {
  const answer = await call(service.base, method, path, {
    ...(token === undefined ? {} : { token }),
    ...(body === undefined ? {} : { body }),
  })
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300)
  return answer.body
}
const get = (path: string): Promise<Json> => ask("GET", path)

const resolved = (schema: Json): Json =>
  schema?.$ref === undefined ? schema : resolved(document["components"].schemas[schema.$ref.split("/").pop()])
const membersOf = (schema: Json): ReadonlyArray<string> => {
  const { properties = {}, allOf = [], anyOf = [], oneOf = [] } = resolved(schema) ?? {}
  return [...Object.keys(properties), ...[...allOf, ...anyOf, ...oneOf].flatMap(membersOf)]
}
const described = ({ path, method }: (typeof operations)[number]) =>
  document["paths"][path.replace(/:(\w+)/g, "{$1}")][method.toLowerCase()]

/** The network and the date of the keys below. */
const networks = ["203.0.113.0/24"]
const expires_at = "2099-01-02T03:04:05.000Z"
const day = 86_400_000

/** Returns the date that is this many seconds from now, rounded so that the duration of a test makes no difference. */
const about = (text: string) => Math.round((Date.parse(text) - Date.now()) / 60_000)

const message = () => ({
  to: [own.address],
  cc: ["alan@example.org"],
  bcc: ["secret@example.org"],
  subject: "Invoice 17",
  text: "Dear Grace",
  html: '<p>Dear <b>Grace</b> <img src="cid:logo@x"></p>',
  in_reply_to: "<16@example.org>",
  references: ["<15@example.org>", "<16@example.org>"],
  attachments: [{ filename: "i.png", content_type: "image/png", content_base64: "iVBORw0KGgo=", content_id: "logo@x" }],
  headers: { "List-Unsubscribe": "<https://example.org/unsubscribe>" },
})
const reply = () => ({ reply_to_message: own.ids["messages"], reply_all: true, text: "Yes." })

/** Sends a message that waits for approval and returns it. */
const waiting = (body: object) => ask("POST", `${at}/messages/send`, body, own.identityKey)

const keyRights = (path: string) => async () => {
  const scopes = ["mail:read", "card:read"]
  const one = (await ask("POST", path, { name: "Mary's", scopes, networks, expires_at })).api_key
  const other = (await ask("POST", path, { name: "x", scopes: ["mail:read"], expires_in_days: 3 })).api_key
  expect(await get(`/api/keys/${one.id}`)).toMatchObject({ name: "Mary's", scopes, networks, expires_at })
  expect(about((await get(`/api/keys/${other.id}`)).expires_at)).toBe((3 * day) / 60_000)
  return ["name", "scopes", "networks", "expires_at", "expires_in_days"]
}

const drafted = async (id: string, body: Record<string, unknown>) => {
  const { attachments, ...rest } = body
  const { attachments: kept, ...read } = await get(`${at}/drafts/${id}`)
  expect(read).toMatchObject(rest)
  if (attachments !== undefined) expect(kept).toEqual(attachments)
  return Object.keys(body)
}

/** For each operation, a check that returns the members whose effect it has seen. */
const checks: Readonly<Record<string, () => Promise<ReadonlyArray<string>>>> = {
  "account.update": async () => {
    const patch = { language: "fr", api_version: "2026-11-25" }
    await ask("PATCH", "/api/account", patch)
    expect(await get("/api/account")).toMatchObject(patch)
    return Object.keys(patch)
  },
  "device_login.start": async () => {
    const body = { name: "desk", client: "a program", scopes: ["mail:read", "card:read"], expires_in_days: 12 }
    const { user_code } = await ask("POST", "/api/auth/device", body)
    expect(await get(`/api/auth/device/${user_code}`)).toMatchObject(body)
    return Object.keys(body)
  },
  "device_confirmation.approve": async () => {
    const wide = { name: "desk two", scopes: ["card:read", "mail:read"], expires_in_days: 12 }
    const { user_code } = await ask("POST", "/api/auth/device", wide)
    await ask("POST", `/api/auth/device/${user_code}/approve`, { scopes: ["card:read"], expires_in_days: 5 })
    const { api_keys } = await get("/api/keys")
    const made = api_keys.find(({ name }: Json) => name === "desk two")
    expect([made.scopes, about(made.expires_at)]).toEqual([["card:read"], (5 * day) / 60_000])
    return ["scopes", "expires_in_days"]
  },
  "exports.create": async () => {
    const { id } = await ask("POST", "/api/exports", { identity: own.handle })
    expect((await get(`/api/exports/${id}`)).identity).toBe(own.handle)
    return ["identity"]
  },
  "api_keys.create": keyRights("/api/keys"),
  "api_keys.createForIdentity": () => keyRights(`${at}/keys`)(),
  "api_keys.rotate": async () => {
    const { api_key } = await ask("POST", "/api/keys", { name: "turned" })
    await ask("POST", `/api/keys/${api_key.id}/rotate`, { overlap_seconds: 1_200 })
    expect(about((await get(`/api/keys/${api_key.id}`)).expires_at)).toBe(20)
    return ["overlap_seconds"]
  },
  "cards.patch": async () => {
    const { body } = operations.find(({ id }) => id === "cards.patch")!
    const patch = { ...body, name: "Ada L.", version: "2.0.0", default_output_modes: ["image/png"] }
    await ask("PATCH", `${at}/card`, patch)
    expect(await get(`${at}/card`)).toMatchObject(patch)
    return Object.keys(patch)
  },
  "proof.updateSettings": async () => {
    const patch = { audiences: ["https://one.example"], sites: ["app.example"] }
    await ask("PATCH", `${at}/proof`, patch)
    expect(await get(`${at}/proof`)).toEqual(patch)
    return Object.keys(patch)
  },
  "proof.createToken": async () => {
    await ask("PATCH", `${at}/proof`, { audiences: "any" })
    const body = { audience: "https://two.example", expires_in: 77, nonce: "n-1", algorithm: "RS256" }
    const { token } = await ask("POST", `${at}/tokens`, body)
    const { aud, nonce, exp, iat } = decodeJwt(token)
    expect([aud, nonce, exp! - iat!, decodeProtectedHeader(token).alg]).toEqual([body.audience, "n-1", 77, "RS256"])
    return Object.keys(body)
  },
  "messages.patch": async () => {
    const path = `${at}/messages/${own.ids["messages"]}`
    for (const patch of [
      { seen: true, flagged: true, labels: ["a", "b"] },
      { seen: false, flagged: false, labels: [] },
    ]) {
      await ask("PATCH", path, patch)
      expect(await get(path)).toMatchObject(patch)
    }
    return ["seen", "flagged", "labels"]
  },
  "messages.patchMany": async () => {
    const path = `${at}/messages/${own.ids["messages"]}`
    for (const chosen of [{ ids: [own.ids["messages"]] }, { threads: [own.ids["threads"]] }]) {
      await ask("PATCH", `${at}/messages`, { ...chosen, seen: true, flagged: true, add_labels: ["a", "b"] })
      expect(await get(path)).toMatchObject({ seen: true, flagged: true, labels: ["a", "b"] })
      await ask("PATCH", `${at}/messages`, { ...chosen, seen: false, flagged: false, remove_labels: ["a", "b"] })
      expect(await get(path)).toMatchObject({ seen: false, flagged: false, labels: [] })
    }
    return ["ids", "threads", "seen", "flagged", "add_labels", "remove_labels"]
  },
  "sending.send": async () => {
    const body = message()
    for (const address of [...body.cc, ...body.bcc, "grace@example.org"])
      await ask("POST", `${at}/allowed-recipients`, { address })
    const { id } = await waiting(body)
    const sent = await get(`${at}/messages/${id}`)
    expect(sent).toMatchObject({
      subject: body.subject,
      in_reply_to: body.in_reply_to,
      references: body.references,
      text: expect.stringContaining("Dear Grace"),
      html: expect.stringContaining("<b>Grace</b>"),
      attachments: [{ filename: "i.png", content_type: "image/png", size: 8 }],
    })
    for (const field of ["to", "cc", "bcc"] as const)
      expect(
        sent[field].map(({ address }: Json) => address),
        field,
      ).toEqual(body[field])
    const header = (name: string) => sent.headers.find((one: Json) => one.name === name)?.value
    expect(header("List-Unsubscribe")).toBe(body.headers["List-Unsubscribe"])
    const answered = await get(`${at}/messages/${(await waiting(reply())).id}`)
    expect(answered).toMatchObject({ thread_id: own.ids["threads"], to: [{ address: "grace@example.org" }] })
    return [...Object.keys(body), ...Object.keys(reply())]
  },
  "sending.draft": async () => {
    const seen = []
    for (const body of [message(), reply()]) {
      seen.push(...(await drafted((await ask("POST", `${at}/drafts`, body)).id, body)))
    }
    return seen
  },
  "sending.replaceDraft": async () => {
    const { id } = await ask("POST", `${at}/drafts`, { to: [own.address], text: "before" })
    const seen = []
    for (const body of [message(), reply()]) {
      await ask("PUT", `${at}/drafts/${id}`, body)
      seen.push(...(await drafted(id, body)))
    }
    return seen
  },
  "sending.approve": async () => {
    const { id } = await waiting({ to: [own.address], text: "once" })
    const { content_sha256 } = await get(`${at}/approvals/${id}`)
    const other = { content_sha256: content_sha256.replace(/^./, (digit: string) => (digit === "0" ? "1" : "0")) }
    const wrong = await call(service.base, "POST", `${at}/approvals/${id}/approve`, { token: own.session, body: other })
    expect([wrong.status, wrong.body.code]).toEqual([409, "content_changed"])
    await ask("POST", `${at}/approvals/${id}/approve`, { content_sha256 })
    return ["content_sha256"]
  },
  "sending.refuse": async () => {
    const { id } = await waiting({ to: [own.address], text: "twice" })
    const { content_sha256 } = await get(`${at}/approvals/${id}`)
    const refuse = (hash: string) =>
      call(service.base, "POST", `${at}/approvals/${id}/refuse`, {
        token: own.session,
        body: { reason: "Not today", content_sha256: hash },
      })
    expect((await refuse(content_sha256.replace(/^./, "x"))).status).toBeGreaterThanOrEqual(400)
    expect((await refuse(content_sha256)).status).toBe(200)
    expect(JSON.stringify(await get(`${at}/messages/${id}`))).toContain("Not today")
    const [event] = (await get(`${at}/events?type=email.approval_refused`)).events
    expect(event.data.reason).toBe("Not today")
    return ["reason", "content_sha256"]
  },
  "mail_settings.allow": async () => {
    await ask("POST", `${at}/allowed-recipients`, { address: "new@example.org" })
    expect(JSON.stringify(await get(`${at}/allowed-recipients`))).toContain("new@example.org")
    return ["address"]
  },
  "mail_settings.setDisclosure": async () => {
    await ask("PUT", `${at}/ai-disclosure`, { text: "A machine wrote this." })
    expect(JSON.stringify(await get(`${at}/ai-disclosure`))).toContain("A machine wrote this.")
    return ["text"]
  },
  "mail_settings.switch": async () => {
    const patch = { outgoing: "stopped", reason: "On holiday", approval: "none", tag_folders: true }
    await ask("PATCH", `${at}/mail`, patch)
    expect(await get(`${at}/mail`)).toMatchObject(patch)
    const back = { outgoing: "active", approval: "required", tag_folders: false }
    await ask("PATCH", `${at}/mail`, back)
    expect(await get(`${at}/mail`)).toMatchObject(back)
    return Object.keys(patch)
  },
  "org_mail.switch": async () => {
    await ask("PATCH", "/api/account/mail", { outgoing: "stopped", reason: "All stop" })
    expect(await get(`${at}/mail`)).toMatchObject({ outgoing: "stopped", reason: "All stop" })
    await ask("PATCH", "/api/account/mail", { outgoing: "active" })
    return ["outgoing", "reason"]
  },
  "webhooks.create": async () => {
    const body = { url: "http://127.0.0.1:9/x", event_types: ["email.received", "card.updated"], description: "Two" }
    const { id } = await ask("POST", `${at}/webhooks`, body)
    expect(await get(`${at}/webhooks/${id}`)).toMatchObject(body)
    return Object.keys(body)
  },
  "webhooks.patch": async () => {
    const path = `${at}/webhooks/${own.ids["webhooks"]}`
    const before = await get(path)
    const patch = { url: "http://127.0.0.1:9/y", event_types: ["email.received"], description: "Y", status: "disabled" }
    await ask("PATCH", path, patch)
    expect(await get(path)).toMatchObject(patch)
    const { url, event_types, status } = before
    await ask("PATCH", path, { url, event_types, status })
    return Object.keys(patch)
  },
  "tunnels.patch": async () => {
    const basic_auth = { username: "grace", password: "abcdefgh-ijkmnpqr-stuvwxyz-23456789" }
    const patch = { host_header: "rewrite", tls: "passthrough", allowed_networks: networks, proxy_protocol: true }
    await ask("PATCH", `${at}/tunnel`, { ...patch, basic_auth: null })
    expect((await get(`${at}/tunnel`)).settings).toMatchObject(patch)
    await ask("PATCH", `${at}/tunnel`, { tls: "terminate", basic_auth, callers: "signed" })
    const { settings } = await get(`${at}/tunnel`)
    expect(settings).toMatchObject({ basic_auth: { username: "grace" }, callers: "signed" })
    return [...Object.keys(patch), "basic_auth", "callers"]
  },
  "vault.put": async () => {
    await ask("PUT", "/api/vault/secrets/m", { value: "one", description: "First" })
    expect((await get("/api/vault/secrets/m/value")).value).toBe("one")
    const { secrets } = await get("/api/vault/secrets")
    expect(secrets.find(({ name }: Json) => name === "m").description).toBe("First")
    return ["value", "description"]
  },
  "vault.restore": async () => {
    for (const value of ["one", "two", "three"]) await ask("PUT", "/api/vault/secrets/r", { value })
    await ask("POST", "/api/vault/secrets/r/restore", { version: 2 })
    expect((await get("/api/vault/secrets/r/value")).value).toBe("two")
    return ["version"]
  },
  "grants.update": async () => {
    const soon = new Date(Date.now() + day / 2).toISOString()
    const patch = { scopes: ["mail:read"], handles: [own.handle], networks, expires_at: soon }
    await ask("PATCH", `/api/grants/${own.ids["grants"]}`, patch)
    expect(await get(`/api/grants/${own.ids["grants"]}`)).toMatchObject(patch)
    return Object.keys(patch)
  },
}

/** Operations whose members another test has. */
const elsewhere: Readonly<Record<string, string>> = {
  "sign_in.requestMagicLink": "account/sign-in",
  "sign_in.consumeMagicLink": "account/sign-in",
  "account.acceptTerms": "api/account",
  "account.remove": "account/deletion",
  "device_login.poll": "account/devices",
  "identities.create": "api/identities",
  "proof.registerKey": "proof/keys",
  "proof.createSignature": "proof/signatures",
  "agent_sign_ins.create": "proof/sign-ins",
  "proof.verify": "proof/verify",
  "messages.removeMany": "mail/bulk",
  "webhooks.recover": "webhooks/recover",
  "events.replay": "webhooks/webhooks",
  "connectors.pauseAll": "connectors/service",
  "connectors.pause": "connectors/service",
  "connectors.connect": "connectors/service",
  "connectors.authorize": "connectors/service",
  "connectors.callback": "connectors/service",
  "connectors.post": "connectors/service",
  "connectors.dm": "connectors/service",
  "public.hit": "pages/pages",
  "public.contact": "pages/forms",
}

describe("Every member of the body", () => {
  const withBody = operations.flatMap((operation) => {
    const schema = described(operation).requestBody?.content?.["application/json"]?.schema
    return schema === undefined ? [] : [[operation.id, [...new Set(membersOf(schema))].sort()] as const]
  })

  it("is tested for each operation", () => {
    const known = new Set([...Object.keys(checks), ...Object.keys(elsewhere)])
    expect(withBody.map(([id]) => id).filter((id) => !known.has(id))).toEqual([])
  })

  it.each(withBody.filter(([id]) => checks[id] !== undefined))("of %s has its effect", async (id, members) => {
    const seen = await checks[id]!()
    expect([...new Set(seen)].sort()).toEqual(members)
  })
})
