/** The mail settings of an Identity, without a browser: what each control changes, and what a failure leaves. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leaveAll, leavePage, problem, source } from "./Modules.ts"

const { default: MailSettingsPage } = await source("mail/MailSettingsPage.tsx")
const { Recipients } = await source("mail/Recipients.tsx")
const { Toasts } = await source("ui/Toast.tsx")
const { client } = await source("client/Queries.ts")

const at = "/api/identities/ada"
let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/identities/ada/mail/settings")
})
afterEach(leavePage)
const answered = (status: number, body?: object) => calls.answered(status, body)

const recipient = (address: string, more: object = {}) => ({
  address,
  reason: "manual",
  expires_at: null,
  expired: false,
  suppressed: null,
  ...more,
})

describe("The mail settings", () => {
  const mail = { outgoing: "active", approval: "none", stopped_at: null, reason: null }
  const opened = async (more: object = {}, disclosed: object = { text: "By an AI", overridden: false }) => {
    const set = (route: string, value: object) =>
      client.setQueryData([`GET /api/identities/:handle${route}`, { params: { handle: "ada" } }], value)
    set("", { handle: "ada", status: "ready" })
    set("/mail", { ...mail, ...more })
    set("/ai-disclosure", disclosed)
    const shown = await drawn(MailSettingsPage, { handle: "ada" })
    await answered(200, { allowed_recipients: [], next_cursor: null })
    const rule = () => shown.top.all({ "aria-pressed": "true" }).map(({ textContent }) => textContent)
    return { ...shown, rule }
  }

  it("stop outgoing mail with one press, and resume it after a confirmation", async () => {
    const stopped = await opened()
    await stopped.press("Stop sending")
    const stop = await answered(200, {})
    expect([stop.method, stop.url, stop.body]).toEqual(["PATCH", `${at}/mail`, { outgoing: "stopped" }])
    await leaveAll()
    client.clear()
    const resumed = await opened({ outgoing: "stopped", stopped_at: "2026-11-20T08:00:00Z", reason: "<b>Spam</b>" })
    expect(resumed.top.all("time")[0]!.attributes["dateTime"]).toBe("2026-11-20T08:00:00Z")
    expect(resumed.top.textContent).toContain("<b>Spam</b>")
    await resumed.press("Resume sending")
    expect(calls.waiting()).toBe(0)
    await resumed.press("Resume sending")
    expect((await calls.next()).body).toEqual({ outgoing: "active" })
  })

  it("show that mail is stopped before the service responds, and that it is not if the change failed", async () => {
    const { press, button, top } = await opened()
    await press("Stop sending")
    expect(button("Resume sending")).toBeDefined()
    const { url } = await answered(409, problem(409, { detail: "not now" }))
    expect(url).toBe(`${at}/mail`)
    await answered(200, mail)
    await eventually(() => expect(button("Stop sending")).toBeDefined())
    await eventually(() => expect(top.all({ role: "alert" })[0]?.textContent).toContain("not now"))
  })

  it("require approval, and show the former rule if the change failed", async () => {
    const { press, rule, top } = await opened()
    const [before] = rule()
    const other = top.all({ "aria-pressed": "false" })[0]!.textContent
    await press(other)
    expect(rule()).toEqual([other])
    const request = await answered(409, problem(409))
    expect([request.method, request.url, request.body]).toEqual(["PATCH", `${at}/mail`, { approval: "required" }])
    await answered(200, mail)
    await eventually(() => expect(rule()).toEqual([before]))
    await eventually(() => expect(top.all({ role: "alert" }).length).toBe(1))
  })

  it("store a text that discloses the AI only if it was changed, and can return to the default", async () => {
    const { enter, submit, button, press, top } = await opened({}, { text: "Own", overridden: true })
    const label = top.all("label").at(-1)!.textContent
    expect(button("Save")!.attributes["disabled"]).toBe("true")
    await enter(label, "Another")
    await submit()
    const request = await answered(200, {})
    expect([request.method, request.url, request.body]).toEqual(["PUT", `${at}/ai-disclosure`, { text: "Another" }])
    await answered(200, { text: "Another", overridden: true })
    await eventually(() => expect(button("Save")!.attributes["disabled"]).toBe("true"))
    const reset = top.all("form").at(-1)!.all("button").at(-1)!.textContent
    await enter(label, "Half a sen")
    expect(top.all("textarea")[0]!.attributes["value"]).toBe("Half a sen")
    await press(reset)
    await answered(409, problem(409, { detail: "not now" }))
    await eventually(() => expect(top.textContent).toContain("not now"))
    await press(reset)
    expect((await answered(204)).method).toBe("DELETE")
    await answered(200, { text: "By an AI", overridden: false })
    await eventually(() => expect(top.all("textarea")[0]!.attributes["value"]).toBe("By an AI"))
  })
})

describe("The Allowed Recipients", () => {
  const all = [
    recipient("ada+x@example.org", { reason: "account_owner" }),
    recipient("bob@example.org", { reason: "inbound", expires_at: "2020-01-01T00:00:00Z", expired: true }),
    recipient("cy@example.org", { suppressed: { since: "2026-11-20T08:00:00Z", reason: "550 no such user" } }),
    recipient("eve@example.org", { suppressed: { since: "2026-11-20T08:00:00Z", reason: "" } }),
    recipient("dee@example.org"),
  ]
  const opened = async () => {
    const shown = await drawn(Recipients, { handle: "ada" })
    await answered(200, { allowed_recipients: all, next_cursor: null })
    await eventually(() => expect(shown.top.all("tr").length).toBe(all.length + 1))
    return shown
  }

  it("offer to write, to lift a suppression and to remove, each for its own address", async () => {
    const { top, press } = await opened()
    const rows = top.all("tr").slice(1)
    const texts = rows.map((row) => row.all("td")[2]!.textContent)
    expect([texts[1], texts[4]]).toEqual(["Expired", top.all("tr")[1]!.all("td")[2]!.textContent])
    expect(texts[2]).toContain("550 no such user")
    expect(texts[3]).toContain("Mail to this address bounced")
    expect(rows.map((row) => row.all("td")[1]!.textContent)).toEqual([
      "Your own address",
      "Wrote to the agent",
      ...Array(3).fill("Added by you"),
    ])
    const acts = rows.map((row) => [
      ...row.all("a").map(({ attributes }) => attributes["href"]!.replace(/.*to=/, "to ")),
      ...row.all("button").map(({ attributes }) => attributes["aria-label"]!),
    ])
    const [, bob, cy] = acts
    expect(acts[0]).toEqual(["to ada%2Bx%40example.org"])
    expect([bob!.length, cy!.length]).toEqual([2, 2])
    await press(cy![0]!)
    await answered(409, problem(409, { detail: "not cy" }))
    await press(cy![1]!)
    await answered(409, problem(409, { detail: "not removed" }))
    for (const reason of ["not cy", "not removed"])
      await eventually(() => expect(rows[2]!.textContent).toContain(reason))
    await press(cy![0]!)
    const lift = await answered(204)
    expect([lift.method, lift.url]).toEqual(["DELETE", `${at}/allowed-recipients/cy%40example.org/suppression`])
    await answered(200, { allowed_recipients: all, next_cursor: null })
    await press(bob![1]!)
    const drop = await answered(409, problem(409, { detail: "not bob" }))
    expect([drop.method, drop.url]).toEqual(["DELETE", `${at}/allowed-recipients/bob%40example.org`])
    await eventually(() => expect(top.all("tr")[2]!.textContent).toContain("not bob"))
  })

  it("gain one address, and the field is empty only after the service has it", async () => {
    const { enter, submit, field } = await opened()
    const label = "Address"
    await enter(label, " new@example.org ")
    await submit()
    const failed = await answered(422, problem(422, { errors: [{ path: "/address", message: "no address" }] }))
    expect([failed.method, failed.url, failed.body]).toEqual([
      "POST",
      `${at}/allowed-recipients`,
      { address: "new@example.org" },
    ])
    await eventually(() => expect(field(label)!.attributes["aria-invalid"]).toBe("true"))
    expect(field(label)!.attributes["value"]).toBe(" new@example.org ")
    await submit()
    await answered(201, {})
    await eventually(() => expect(field(label)!.attributes["value"]).toBe(""))
    expect((await calls.next()).method).toBe("GET")
    expect((await drawn(Toasts, {})).top.textContent).toContain("new@example.org added")
  })

  it("are read again after one was removed", async () => {
    const { press } = await opened()
    await press("Remove bob@example.org")
    expect((await answered(204)).method).toBe("DELETE")
    expect((await calls.next()).url).toBe(`${at}/allowed-recipients`)
  })

  it("are found by the beginning of an address", async () => {
    const { top, fire } = await opened()
    await fire(top.all({ type: "search" })[0], "input", { currentTarget: { value: " bo " } })
    expect((await answered(200, { allowed_recipients: [], next_cursor: null })).url).toBe(
      `${at}/allowed-recipients?address=bo`,
    )
    await eventually(() => expect(top.textContent).toContain("No matching addresses"))
    expect(top.all("tr")).toEqual([])
  })
})
