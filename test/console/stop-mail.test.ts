/** Stopping all mail and resuming it, without a browser: who is stopped, who is resumed, and what a failure says. */
import { act } from "preact/test-utils"
import { h } from "preact"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { browserAt, drawn, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { StopButton, StoppedBar, StopWatch, stopAllMail } = await source("shell/StopMail.tsx")
const { Toasts } = await source("ui/Toast.tsx")
const { client } = await source("client/Queries.ts")
const { identitiesInput } = await source("shell/Identities.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("requestIdleCallback", (run: () => void) => void run())
  vi.stubGlobal("cancelIdleCallback", () => {})
  await browserAt("/")
})
afterEach(leavePage)
const answered = (status: number, body?: object) => calls.answered(status, body)

const known = (handles: ReadonlyArray<string>) => {
  const identities = [...handles.map((handle) => ({ handle, status: "ready" })), { handle: "old", status: "deleting" }]
  client.setQueryData(["GET /api/identities", identitiesInput], { identities, next_cursor: null })
}
/** Draws what the frame of the console has, with these Identities, of which some are stopped. */
const opened = async (stopped: ReadonlyArray<string>, handles: ReadonlyArray<string> = ["ada", "bob", "cy"]) => {
  known(handles)
  client.setQueryData(["GET /api/account/mail", {}], { stopped })
  const shown = await drawn(() => [StopWatch, StoppedBar, StopButton, Toasts].map((one) => h(one, {})), {})
  const { top, fire } = shown
  const stopButton = () => top.all({ "data-kind": "danger" })[0]
  return {
    ...shown,
    stopButton,
    stop: () => fire(stopButton(), "click"),
    bar: () => top.all({ class: "shell-bar" })[0]?.all("span")[0]!.textContent,
    toast: () => top.all({ class: "toast" }).at(-1)?.textContent ?? "",
  }
}

it("All mail is stopped with one press and one call, also that of Identities that this tab does not know", async () => {
  const { stop, stopButton, toast, bar } = await opened([])
  expect(bar()).toBeUndefined()
  await stop()
  const request = await answered(200, {})
  expect([request.method, request.url, request.body]).toEqual(["PATCH", "/api/account/mail", { outgoing: "stopped" }])
  expect((await answered(200, { stopped: ["ada", "bob", "cy"] })).url).toBe("/api/account/mail")
  await eventually(() => expect(toast()).toBe("Outgoing mail stopped for all agents"))
  await eventually(() => expect(bar()).toBe("Outgoing mail is stopped."))
  expect(stopButton()).toBeUndefined()
})

it("A stop that failed names the agents that still send, and can be tried again", async () => {
  const { stop, stopButton, toast, bar } = await opened(["bob", "unknown"])
  expect(bar()).toBe("Outgoing mail is stopped for bob.")
  await stop()
  await answered(503, problem(503))
  await eventually(() => expect(toast()).toBe("Could not stop outgoing mail for ada and cy. Try again."))
  expect([bar(), stopButton() === undefined]).toEqual(["Outgoing mail is stopped for bob.", false])
  // The palette stops mail as well.
  const stopped = stopAllMail()
  await answered(503, problem(503))
  await act(() => stopped)
  expect(toast()).toBe("Could not stop outgoing mail for ada, bob, and cy. Try again.")
})

it("Mail is stopped also before it is known which agents exist, and pages of each agent show that", async () => {
  const page = ["GET /api/identities/:handle/mail", { params: { handle: "ada" } }]
  client.setQueryData(page, { outgoing: "active" })
  const { top, fire, leave } = await drawn(() => [StopButton, Toasts].map((one) => h(one, {})), {})
  await fire(top.all({ "data-kind": "danger" })[0], "click")
  expect((await answered(503, problem(503))).url).toBe("/api/account/mail")
  await eventually(() => expect(top.textContent).toContain("Could not stop outgoing mail for Identities"))
  await fire(top.all({ "data-kind": "danger" })[0], "click")
  await answered(200, {})
  await eventually(() => expect(client.getQueryState(page)?.isInvalidated).toBe(true))
  await leave()
})

it("The agents of one account are not stopped in the next one", async () => {
  const { leave } = await opened(["ada"])
  await leave()
  client.clear()
  const { top } = await drawn(() => [StoppedBar, StopButton].map((one) => h(one, {})), {})
  expect(top.all({ class: "shell-bar" })).toEqual([])
})

it("Stopping mail calls nothing if no agent can send mail", async () => {
  const { stop, toast } = await opened([], [])
  await stop()
  expect([calls.waiting(), toast()]).toEqual([0, "No agent can send mail yet"])
})

it("Sending is resumed after a confirmation, only for the agents that it named, and a failure of one is shown", async () => {
  const { press, bar, top, toast } = await opened(["ada", "cy"])
  await press("Resume sending")
  expect([calls.waiting(), top.all("dialog")[0]!.textContent]).toEqual([0, expect.stringContaining("ada and cy")])
  await press("Resume sending")
  const [first, second] = [await calls.next(), await calls.next()]
  expect([first, second].map(({ method, url, body }) => [method, url, body])).toEqual(
    ["ada", "cy"].map((handle) => ["PATCH", `/api/identities/${handle}/mail`, { outgoing: "active" }]),
  )
  await act(async () => {
    first.answer(200, {})
    second.answer(409, problem(409, { detail: "cy is blocked" }))
  })
  await answered(200, { stopped: ["cy"] })
  await eventually(() => expect(top.all("dialog")[0]!.textContent).toContain("cy is blocked"))
  await eventually(() => expect(bar()).toBe("Outgoing mail is stopped for cy."))
  await press("Resume sending")
  expect((await answered(200, {})).url).toBe("/api/identities/cy/mail")
  await answered(200, { stopped: [] })
  await eventually(() => expect([toast(), bar()]).toEqual(["Sending resumed", undefined]))
})
