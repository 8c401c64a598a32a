import { request } from "node:http"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { eventually, startService, type OwnService } from "../harness/Service.ts"
import { freePort } from "../harness/Ports.ts"
import { startRelay } from "../harness/Relay.ts"

let relay: Awaited<ReturnType<typeof startRelay>>
let service: OwnService

beforeAll(async () => {
  const port = await freePort()
  relay = await startRelay(port)
  service = await startService({
    env: {
      SVC_SMTP_RELAY_URL: `smtp://mailer:secret@127.0.0.1:${port}`,
      SVC_SYSTEM_FROM: "accounts@svc.example",
      SVC_SIGNUP: "invite",
      SVC_INVITE_CODES: "welcome",
      SVC_AUDIT_ADDRESSES: "network",
      SVC_BRAND: "zorblat",
      SVC_CONTACT_TO: "operator@svc.example",
      SVC_MTA_STS: "enforce",
      SVC_MX: "mx.svc.example",
      SVC_TOS_EFFECTIVE_AT: "2999-01-01T00:00:00Z",
      SVC_TOS_VERSION: "7",
    },
  })
})
afterAll(async () => {
  await service.stop()
  await relay.stop()
})

const accepted = { tos_accepted: true, invite_code: "welcome" }

/** The headers of a request by another site, to which Development shows no link. `fetch` sets these headers itself. */
const askFromElsewhere = (email: string) =>
  new Promise<{ readonly status: number | undefined; readonly body: any }>((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      host: "rebound.example",
      origin: "http://rebound.example",
    }
    const sent = request(`${service.base}/api/auth/magic-link`, { method: "POST", headers }, async (response) =>
      resolve({ status: response.statusCode, body: JSON.parse(await text(response)) }),
    )
    sent.on("error", reject).end(JSON.stringify({ email, ...accepted }))
  })

const ask = (email: string, more: object = {}, headers: Record<string, string> = {}) =>
  call(service.base, "POST", "/api/auth/magic-link", { body: { email, ...accepted, ...more }, headers })

describe("The sign-in email", () => {
  it.each([
    ["en", "Your sign-in link", "Sign in"],
    ["de", "Dein Anmeldelink", "Anmelden"],
    ["fr", "Votre lien de connexion", "Se connecter"],
  ])("is sent through the relay in %s, and its link signs in", async (language, subject, button) => {
    const email = `letter-${language}@example.org`
    expect((await ask(email, { language })).status).toBe(202)
    const letter = await eventually(
      async () => relay.taken.find(({ to }) => to[0] === email),
      (found) => found !== undefined,
    )
    expect(letter).toMatchObject({ user: "mailer", from: "accounts@svc.example", to: [email] })
    const raw = letter!.raw.replace(/=\r\n/g, "").replaceAll("=3D", "=")
    expect(raw).toContain(`Subject: ${subject}`)
    expect(raw).toContain(button)
    expect(raw).toContain("Auto-Submitted: auto-generated")
    const token = /token=([\w-]+)/.exec(raw)![1]
    const consumed = await call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })
    expect(consumed.body.org).toMatchObject({ email, language })
  })

  it("uses the language of Accept-Language if none is given", async () => {
    await ask("spoken@example.org", {}, { "accept-language": "it, fr;q=0.8, de;q=0.5" })
    const letter = await eventually(
      async () => relay.taken.find(({ to }) => to[0] === "spoken@example.org"),
      (found) => found !== undefined,
    )
    expect(letter!.raw).toContain("Votre lien de connexion")
  })

  it("is sent to exactly one address, whatever the address contains", async () => {
    const before = relay.taken.length
    for (const email of [
      "a@b@c.example",
      "a@example.org,b@example.org",
      "<a@example.org>",
      "a@example.org\r\nBcc: b@example.org",
    ]) {
      expect((await ask(email)).status, email).toBe(400)
    }
    expect(relay.taken.length).toBe(before)
  })

  it("that the relay rejects is shown in Development, and is an error to retry elsewhere", async () => {
    relay.refuses(true)
    const shown = await ask("refused@example.org")
    const hidden = await askFromElsewhere("refused@example.org")
    relay.refuses(false)
    expect([shown.status, typeof shown.body.dev_magic_link]).toEqual([202, "string"])
    expect(hidden.status).toBe(503)
    expect(hidden.body).toMatchObject({ code: "mail_relay_unavailable", agent_hint: "wait", retry_after_seconds: 30 })
    expect((await askFromElsewhere("refused@example.org")).body.dev_magic_link).toBeNull()
  })

  it("asks for the invitation code on the page only when the address is new", async () => {
    const submit = async (fields: Record<string, string>) => {
      const response = await fetch(`${service.base}/auth/sign-in`, {
        method: "POST",
        headers: { "sec-fetch-site": "same-origin" },
        body: new URLSearchParams({ terms: "yes", ...fields }),
      })
      return [response.status, await response.text()] as const
    }
    const email = "page@example.org"
    const field = /<input name="invite_code"[^>]*value="([^"]*)"/
    expect(await (await fetch(`${service.base}/auth/sign-in`)).text()).not.toMatch(field)
    const [status, page] = await submit({ email })
    expect([status, field.exec(page)?.[1]]).toEqual([403, ""])
    expect(page).toContain("New accounts need a valid invitation code.")
    const [refused, repeated] = await submit({ email, invite_code: 'wel"come' })
    expect([refused, field.exec(repeated)?.[1]]).toEqual([403, "wel&quot;come"])
    expect((await submit({ email, invite_code: " welcome " }))[0]).toBe(200)
    expect((await submit({ email }))[0]).toBe(200)
  })

  it("is sent to a new address only with an invitation, and to an account without one", async () => {
    const email = "invited@example.org"
    for (const [invite_code, detail] of [
      ["", "The `invite_code` is not a valid invitation."],
      ["Welcome", "The `invite_code` is not a valid invitation."],
      [undefined, "A new account needs an `invite_code`."],
    ]) {
      const { status, body } = await ask(email, { invite_code })
      expect([status, body.code, body.detail]).toEqual([403, "invite_required", detail])
    }
    expect((await call(service.base, "GET", "/api/auth/registration")).body).toEqual({ state: "invite" })
    expect((await ask(email)).status).toBe(202)
    expect((await ask(email, { invite_code: undefined })).status).toBe(202)
    await eventually(
      async () => relay.taken.filter(({ to }) => to[0] === email).length,
      (count) => count === 2,
    )
  })
})

it("The service applies the settings of the operator", async () => {
  const email = "settings@example.org"
  const link = await ask(email)
  // Neither the link nor the token is kept for a repeat of the request, or by a cache.
  expect(link.headers.get("cache-control")).toBe("no-store")
  const token = new URL(link.body.dev_magic_link).searchParams.get("token")
  const opened = await call(service.base, "POST", "/api/auth/magic-link/consume", { body: { token } })
  expect(opened.headers.get("cache-control")).toBe("no-store")
  const read = async (path: string) =>
    (await call(service.base, "GET", path, { token: opened.body.session_token as string })).body
  expect((await read("/api/auth/session")).tos).toMatchObject({
    current_version: "7",
    effective_at: "2999-01-01T00:00:00.000Z",
  })
  expect(await read("/api/handles/my-zorblat-bot")).toMatchObject({ code: "handle_reserved" })
  const { records } = await read("/api/audit?action=sign_in.consumeMagicLink")
  expect(records).toMatchObject([{ source: { address: "127.0.0.0/24" } }])
  expect(await (await fetch(`${service.base}/.well-known/mta-sts.txt`)).text()).toContain(
    "mode: enforce\r\nmx: mx.svc.example\r\n",
  )
  const message = { name: "Ada", email, message: "hello" }
  expect((await call(service.base, "POST", "/api/contact", { body: message })).status).toBe(202)
  expect(relay.taken.at(-1)).toMatchObject({ to: ["operator@svc.example"] })
})
