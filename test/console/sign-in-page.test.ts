/** The page that sends a sign-in link, without a browser. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, leavePage, problem, source } from "./Modules.ts"

const { default: SignInPage } = await source("account/SignInPage.tsx")
const { takeReturn } = await source("client/Session.ts")
const { language } = await source("texts/Texts.ts")
const { client } = await source("client/Queries.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  vi.stubGlobal("isSecureContext", true)
  await browserAt("/identities/ada?view=mail")
})
afterEach(leavePage)
const opened = async (state: string) => {
  client.setQueryData(["GET /api/auth/registration", {}], { state })
  return await drawn(SignInPage, {})
}
/** Requests the link and answers the request. */
const sent = async ({ submit }: Awaited<ReturnType<typeof opened>>, status = 200, answer: object = {}) => {
  await submit()
  const request = await calls.next()
  expect([request.method, request.url]).toEqual(["POST", "/api/auth/magic-link"])
  await act(async () => request.answer(status, answer))
  return request
}

describe("The page that sends a sign-in link", () => {
  it("sends the address in the language of the page, and the acceptance of the Terms only if it was given", async () => {
    const page = await opened("open")
    expect(page.top.textContent).not.toContain("Invitation code")
    await page.enter("Your email address", " ada@example.org ")
    const { body, headers } = await sent(page, 200, { dev_magic_link: null })
    expect(body).toEqual({ email: "ada@example.org", language: "en", tos_accepted: false })
    expect(headers["idempotency-key"]).toBeDefined()
    await eventually(() => expect(page.top.textContent).toContain("Check your email"))
    expect(page.top.textContent).toContain("ada@example.org")
    expect(page.top.all({ href: "http://localhost/auth/magic?x" })).toHaveLength(0)
    await page.press("Use a different address")
    await page.press("Deutsch")
    expect(page.field("Deine E-Mail-Adresse")!.attributes["value"] ?? "").toContain("ada@example.org")
    await page.fire(page.top.all({ name: "terms" })[0], "change", { currentTarget: { checked: true } })
    expect((await sent(page)).body).toEqual({ email: "ada@example.org", language: "de", tos_accepted: true })
    language.value = "en"
  })

  it("keeps the page to return to, except Home", async () => {
    const page = await opened("open")
    await page.enter("Your email address", "ada@example.org")
    await sent(page)
    expect(takeReturn()).toBe("/identities/ada?view=mail")
    await leaveAll()
    await browserAt("/")
    const home = await opened("open")
    await home.enter("Your email address", "ada@example.org")
    await sent(home)
    expect(takeReturn()).toBeUndefined()
  })

  it.each([
    ["invite", " code ", { invite_code: "code" }],
    ["invite", "  ", {}],
  ])("asks for an invitation code if accounts need one (%s, %j)", async (state, code, more) => {
    const page = await opened(state)
    await page.enter("Your email address", "ada@example.org")
    await page.enter("Invitation code", code)
    expect((await sent(page)).body).toEqual({
      email: "ada@example.org",
      language: "en",
      tos_accepted: false,
      ...more,
    })
  })

  it("says that no accounts are created, and that the connection is not encrypted", async () => {
    const { say } = await source("account/texts.ts")
    const open = await opened("open")
    for (const note of ["closed", "insecure"]) expect(open.top.textContent).not.toContain(say(note))
    await leaveAll()
    client.clear()
    vi.stubGlobal("isSecureContext", false)
    const closed = await opened("closed")
    for (const note of ["closed", "insecure"]) expect(closed.top.textContent).toContain(say(note))
  })

  it("opens the link itself in Development, and shows what was refused", async () => {
    const page = await opened("open")
    await page.enter("Your email address", "ada@example.org")
    await sent(page, 400, problem(400, { errors: [{ path: "/email", message: "unknown domain" }] }))
    await eventually(() => expect(page.top.textContent).toContain("unknown domain"))
    await sent(page, 200, { dev_magic_link: "http://localhost/auth/magic?x" })
    await eventually(() => expect(page.top.all({ href: "http://localhost/auth/magic?x" })).toHaveLength(1))
  })
})
