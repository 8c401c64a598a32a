/** Content of strangers is never served as a page of the service: raw messages, links, and the contact form. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let session: string
let handle: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})

const received = async (html: string) => {
  const before = await call(service.base, "GET", `/api/identities/${handle}/messages`, { token: session })
  await send(service.smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject: "s", html })
  const { body } = await eventually(
    () => call(service.base, "GET", `/api/identities/${handle}/messages`, { token: session }),
    ({ body }) => body.messages.length > before.body.messages.length,
  )
  return body.messages[0].id as string
}

describe("A raw message", () => {
  it("is served as a sandboxed download, like attachments", async () => {
    const id = await received("<script>alert(1)</script>")
    const raw = await call(service.base, "GET", `/api/identities/${handle}/messages/${id}/raw`, { token: session })
    expect(raw.status).toBe(200)
    expect(Object.fromEntries(raw.headers)).toMatchObject({
      "content-type": "message/rfc822",
      "content-disposition": `attachment; filename="${id}.eml"`,
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
    })
  })
})

describe("A link of a message", () => {
  it.each([
    ["mailto:%ff", "%ff"],
    ["mailto:gr%C3%BCn%2Bx@example.org", "grün+x@example.org"],
    ["https://example.org/%ff", "example.org"],
  ])("to %s leads to a page that names %s", async (to, shown) => {
    const id = await received(`<a href="${to}">here</a>`)
    const frame = await call(service.base, "GET", `/console/mail/${handle}/${id}/body`, {
      token: session,
      headers: { "sec-fetch-dest": "iframe" },
    })
    const [link] = /\/console\/leave\?to=[\w%-]+/.exec(frame.body)!
    const page = await call(service.base, "GET", link)
    expect(page.status).toBe(200)
    expect(page.body).toContain(`<pre><bdi>${shown}</bdi></pre>`)
  })
})

describe("The contact form in Development", () => {
  it("delivers to the postmaster if no other address is configured", async () => {
    const message = { name: "Grace", email: "grace@example.org", subject: "Grüße", message: "Is anybody there?" }
    expect((await call(service.base, "POST", "/api/contact", { body: message })).status).toBe(202)
    const stored = await service.query<{ raw: Uint8Array }>(
      (sql) => sql`select raw from system_mail where subject = 'Contact: Grüße'`,
    )
    expect(stored).toHaveLength(1)
    const raw = Buffer.from(stored[0]!.raw).toString()
    expect(raw).toContain("To: postmaster@mail.localhost")
    expect(raw).toContain("Reply-To: grace@example.org")
    expect(raw).toContain("Is anybody there?")
  })
})
