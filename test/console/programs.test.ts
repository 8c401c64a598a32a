/** The set-up of mail programs, without a browser. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { default: ProgramsPage } = await source("programs/ProgramsPage.tsx")
const { client } = await source("client/Queries.ts")

const server = (element: string, host: string, port: number, security: string) =>
  `<${element} type="x"><hostname>${host}</hostname><port>${port}</port><socketType>${security}</socketType></${element}>`
const outgoing = server("outgoingServer", "smtp.example", 465, "SSL")
const xmlOf = (security: string, smtp = outgoing) =>
  `<emailProvider>${server("incomingServer", "imap.example", 143, security)}${smtp}</emailProvider>`
const identity = { handle: "ada", email: "ada@mail.example", status: "ready" }

/** The responses for the public file, in order. */
let files: Array<Response | Error>
let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  const held = fetch
  files = []
  vi.stubGlobal("fetch", async (url: string, given: object) => {
    if (url !== "/mail/config-v1.1.xml") return await held(url, given)
    const file = files.shift()!
    if (file instanceof Error) throw file
    return file
  })
  await browserAt("/identities/ada/mail/programs")
})
afterEach(leavePage)

const opened = async (status = "ready") => {
  client.setQueryData(["GET /api/identities/:handle", { params: { handle: "ada" } }], { ...identity, status })
  return await drawn(ProgramsPage, { handle: "ada" })
}
const answered = (status: number, body?: object) => calls.answered(status, body)
type Shown = Awaited<ReturnType<typeof opened>>
/** Returns the text about each server. */
const serversOf = ({ top }: Shown) =>
  top
    .all({ class: "access" })[0]!
    .childNodes.map(({ textContent }) => textContent.replaceAll(/Copy(?!right)|Show/g, " ").replaceAll(/\s+/g, " "))

describe("The set-up of mail programs", () => {
  it("names the servers and the user of the public file when the password is no longer shown", async () => {
    files = [new Response(xmlOf("STARTTLS"))]
    const page = await opened()
    const request = await answered(200, {})
    expect([request.method, request.url]).toEqual(["GET", "/api/identities/ada/identity-key"])
    await eventually(() => expect(page.top.all({ class: "access" })).toHaveLength(1))
    const [imap, smtp] = serversOf(page)
    for (const word of ["imap.example", "143", "STARTTLS", "ada@mail.example", "Only shown once"])
      expect(imap).toContain(word)
    for (const word of ["smtp.example", "465", "SSL/TLS", "ada@mail.example", "Only shown once"])
      expect(smtp).toContain(word)
    expect(page.top.textContent).not.toContain("Available until")
  })

  it("names the servers, users and passwords that are waiting, without the public file", async () => {
    const page = await opened()
    const own = (host: string, username: string, password: string) => ({
      host,
      port: 1_000,
      security: "none",
      username,
      password,
    })
    await answered(200, {
      imap: own("own-imap.example", "imap-user", "imap-password"),
      smtp: own("own-smtp.example", "smtp-user", "smtp-password"),
      expires_at: "2026-11-23T12:00:00.000Z",
    })
    await eventually(() => expect(page.top.all({ class: "access" })).toHaveLength(1))
    const [imap, smtp] = serversOf(page)
    for (const word of ["own-imap.example", "1000", "No encryption", "imap-user"]) expect(imap).toContain(word)
    for (const word of ["own-smtp.example", "1000", "smtp-user"]) expect(smtp).toContain(word)
    // A password is shown after a click.
    expect(page.top.textContent).not.toContain("-password")
    expect(page.top.textContent).toContain("Available until Nov 23")
    expect(page.top.all({ href: "/console/identities/ada" }).length).toBeGreaterThan(0)
    expect(page.button("Rotate password")).toBeUndefined()
    for (const reveal of page.top
      .all("button")
      .filter(({ attributes }) => /^Show: .*Password$/.test(attributes["aria-label"]!)))
      await page.fire(reveal, "click")
    const [shown, sent] = serversOf(page)
    expect([shown!.includes("imap-password"), sent!.includes("smtp-password")]).toEqual([true, true])
  })

  it("says that the service takes no mail from mail programs", async () => {
    files = [new Response(xmlOf("SSL", ""))]
    const page = await opened()
    await answered(200, {})
    await eventually(() => expect(page.top.textContent).toContain("does not accept mail from mail programs"))
  })

  it.each([
    ["the file", () => new TypeError("fetch failed"), 200],
    ["the file of a proxy", () => new Response("<html>", { status: 200 }), 200],
    ["the file of a broken service", () => new Response(xmlOf("SSL"), { status: 503 }), 200],
    ["the password", () => new Response(xmlOf("SSL")), 404],
  ])("is shown after another attempt if %s could not be read", async (_, file, status) => {
    files = [file(), new Response(xmlOf("SSL"))]
    const page = await opened()
    await answered(status, status === 200 ? {} : problem(status))
    await eventually(() => expect(page.top.all({ role: "alert" })).toHaveLength(1))
    expect(page.top.all({ class: "access" })).toHaveLength(0)
    await page.press("Try again")
    await answered(200, {})
    await eventually(() => expect(page.top.all({ class: "access" })).toHaveLength(1))
    expect(page.top.all({ role: "alert" })).toHaveLength(0)
  })

  it("shows the new password after it was rotated, which a ready Identity can do", async () => {
    files = [new Response(xmlOf("SSL")), new Response(xmlOf("SSL"))]
    const page = await opened()
    await answered(200, {})
    await eventually(() => expect(page.button("Rotate password")).toBeDefined())
    await page.press("Rotate password")
    await page.press("Rotate password")
    const rotation = await answered(200, {})
    expect([rotation.method, rotation.url]).toEqual(["POST", "/api/identities/ada/identity-key/rotate"])
    expect(rotation.headers["idempotency-key"]).toBeDefined()
    const read = await calls.next()
    expect([read.method, read.url]).toEqual(["GET", "/api/identities/ada/identity-key"])
    await page.leave()
    files = [new Response(xmlOf("SSL"))]
    const other = await opened("deleting")
    await answered(200, {})
    await eventually(() => expect(other.button("Rotate password")).toBeDefined())
    expect(other.button("Rotate password")!.attributes["disabled"]).toBeDefined()
  })

  it("has steps for each program, and a configuration for mutt that fits the servers", async () => {
    for (const [security, lines] of [
      ["SSL", ["imaps://ada%40mail.example@imap.example:143/", "ssl_force_tls = yes"]],
      ["STARTTLS", ["imap://ada%40mail.example@imap.example:143/", "ssl_force_tls = yes"]],
      ["plain", ["imap://ada%40mail.example@imap.example:143/", "ssl_starttls = no", "ssl_force_tls = no"]],
    ] as const) {
      files = [new Response(xmlOf(security))]
      const page = await opened()
      await answered(200, {})
      await eventually(() => expect(page.top.all({ download: "config-v1.1.xml" })).toHaveLength(1))
      expect(page.top.all("ol")[0]!.textContent).toContain("ada@mail.example")
      await page.press("Apple Mail")
      expect(page.top.all({ href: "/mail/apple.mobileconfig?address=ada%40mail.example" })).toHaveLength(1)
      await page.press("mutt")
      const text = page.top.textContent
      for (const line of [...lines, 'from = "ada@mail.example"', "smtps://ada%40mail.example@smtp.example:465/"])
        expect(text).toContain(line)
      await page.leave()
      client.clear()
    }
  })
})
