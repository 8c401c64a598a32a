/** The pages that show Identities, without a browser: their states, the steps of their creation, and the first steps of a new one. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { default: IdentityPage, SagaSteps } = await source("identity/IdentityPage.tsx")
const { client } = await source("client/Queries.ts")
const { default: IdentitiesPage } = await source("identity/IdentitiesPage.tsx")

let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  vi.stubGlobal("localStorage", new Entries())
  calls = heldCalls()
  await browserAt("/identities")
})
afterEach(leavePage)

const callOf = async (text: string) => {
  const find = () => calls.all.find(({ method, url }) => `${method} ${url}`.includes(text))
  await eventually(() => expect(find(), text).toBeDefined())
  return find()!
}
const identity = (handle: string, more: object = {}) => ({
  handle,
  status: "ready",
  email: `${handle}@mail.example`,
  profile_url: `https://svc.example/@${handle}`,
  card_url: `https://svc.example/@${handle}/card`,
  tunnel: { url: `https://${handle}.agents.example`, connected: false, port: null },
  created_at: "2026-11-20T08:00:00.000Z",
  ...more,
})

describe("The overview of an Identity", () => {
  const opened = async (of: object, answers: { readonly mail?: object; readonly webhooks?: object } = {}) => {
    const page = await drawn(IdentityPage, { handle: "ada" })
    ;(await callOf("GET /api/identities/ada")).answer(200, identity("ada", of))
    const answer = async (text: string, body: object | undefined) => {
      const call = await callOf(text)
      if (body === undefined) call.answer(404, problem(404))
      else call.answer(200, { next_cursor: null, ...body })
    }
    await answer("/ada/identity-key", {})
    await answer("/ada/messages?limit=5", answers.mail)
    await answer("/ada/webhooks?limit=1", answers.webhooks)
    await eventually(() => expect(page.top.textContent).toContain("ada@mail.example"))
    /** Where the first steps lead. */
    const steps = () =>
      page.top
        .all({ class: "box rows next" })
        .flatMap((list) => list.all("a").map(({ attributes }) => attributes["href"]))
    return { ...page, steps }
  }
  const connected = { tunnel: { url: "https://ada.agents.example", connected: true, port: 40_001 } }
  const message = {
    id: "msg_1",
    thread_id: "thr_1",
    direction: "inbound",
    from: { address: "grace@example.org", name: null },
    to: [],
    subject: "About plans",
    snippet: "",
    seen: false,
    flagged: false,
    labels: [],
    tags: [],
    attachments: [],
    origin: { verdict: "verified" },
    received_at: "2026-11-20T08:00:00.000Z",
  }
  const at = "/console/identities/ada"

  it.each([
    [
      "of a new one: all",
      {},
      { mail: { messages: [] }, webhooks: { webhooks: [] } },
      ["/mail", "/webhooks/new", "/tunnel"],
    ],
    ["with mail", {}, { mail: { messages: [message] }, webhooks: { webhooks: [] } }, ["/webhooks/new", "/tunnel"]],
    ["with a Webhook", connected, { mail: { messages: [] }, webhooks: { webhooks: [{}] } }, ["/mail"]],
    ["with everything", connected, { mail: { messages: [message] }, webhooks: { webhooks: [{}] } }, []],
    ["whose mail and Webhooks cannot be read", {}, {}, ["/tunnel"]],
  ])("names the first steps that are not taken %s", async (_, of, answers, expected) => {
    const { steps } = await opened(of, answers)
    expect(steps()).toEqual(expected.map((to) => at + to))
  })

  it("shows the latest mail, the Tunnel and its port, and reads its own Events", async () => {
    const { facts, top } = await opened(connected, { mail: { messages: [message] }, webhooks: { webhooks: [{}] } })
    expect(top.textContent).toContain("About plans")
    expect(Object.entries(facts())).toContainEqual(["TCP port", "40001"])
    expect(facts()["Tunnel"]).toContain("Connected")
    expect(Object.keys(facts())).toEqual(["Email", "Profile", "A2A card", "Tunnel", "TCP port", "Created"])
    const links = top.all("a").map(({ attributes }) => attributes["href"])
    expect(links).toEqual(
      expect.arrayContaining([`${at}/mail/programs`, "https://svc.example/@ada", "https://svc.example/@ada/card"]),
    )
    expect((await callOf("/api/events")).url).toContain("handle=ada")
  })

  it("shows its steps while it is being set up, and reads no secrets", async () => {
    const { top } = await drawn(IdentityPage, { handle: "ada" })
    const saga = { kind: "provisioning", status: "running", steps: [] }
    ;(await callOf("GET /api/identities/ada")).answer(200, identity("ada", { status: "provisioning", saga }))
    await eventually(() => expect(top.all("h2").map(({ textContent }) => textContent)).toContain("Setting up"))
    expect(calls.all.some(({ url }) => url.includes("identity-key"))).toBe(false)
  })
})

describe("The steps of a saga", () => {
  const steps = [
    { name: "mailbox", status: "done", error: "was busy" },
    { name: "identity_key", status: "retrying", error: "is busy" },
    { name: "card", status: "pending", error: null },
  ]
  const shown = async (status: string) =>
    drawn(SagaSteps, { identity: { handle: "ada", saga: { kind: "provisioning", status, steps } } })

  it("show the error of a step until it is done", async () => {
    const { button, top } = await shown("running")
    const lines = top
      .all("li")
      .map((line) => [line.attributes["data-status"], /(?:was|is) busy/.exec(line.textContent)?.[0]])
    expect(lines).toEqual([
      ["done", undefined],
      ["retrying", "is busy"],
      ["pending", undefined],
    ])
    expect(button("Retry")).toBeUndefined()
  })

  it("are retried by a button if the saga has failed", async () => {
    const { press, top } = await shown("failed")
    await press("Retry")
    const call = await callOf("POST /api/identities/ada/retry")
    expect(call.headers["idempotency-key"]).toBeDefined()
    call.answer(400, problem(400, { detail: "It runs already." }))
    await eventually(() => expect(top.textContent).toContain("It runs already."))
    client.setQueryData(["GET /api/identities", {}], { identities: [] })
    await press("Retry")
    await eventually(() => expect(calls.all.filter(({ method }) => method === "POST")).toHaveLength(2))
    await act(async () => calls.all.at(-1)!.answer(200, {}))
    await eventually(() => expect(client.getQueryState(["GET /api/identities", {}])?.isInvalidated).toBe(true))
  })
})

describe("The list of Identities", () => {
  it("shows each with its own state, Tunnel and activity", async () => {
    const { top } = await drawn(IdentitiesPage, {})
    const tunnel = { url: "", connected: true, port: null }
    const identities = [identity("ada"), identity("bob", { status: "failed", tunnel })]
    ;(await callOf("/api/identities?")).answer(200, { identities, next_cursor: null })
    ;(await callOf("/api/usage?")).answer(200, {
      ends_at: "2026-11-21T00:00:00.000Z",
      series: [
        { metric: "api_calls", points: [{ at: "2026-11-20T00:00:00.000Z", value: 90 }] },
        {
          metric: "activity",
          identity: "bob",
          points: [
            { at: "2026-11-19T00:00:00.000Z", value: 4 },
            { at: "2026-11-20T00:00:00.000Z", value: 3 },
          ],
        },
      ],
    })
    const rows = () =>
      top
        .all({ "data-link": "true" })
        .map((row) => [
          row.all("a")[0]!.attributes["href"],
          ...row.all({ class: "status" }).map((one) => one.attributes["data-tone"]),
          row.all({ class: "hidden-text" })[0]?.textContent,
        ])
    await eventually(() =>
      expect(rows()).toEqual([
        ["/console/identities/ada", "ok", "off", "0 activities in 30 days"],
        ["/console/identities/bob", "bad", "ok", "7 activities in 30 days"],
      ]),
    )
  })

  it("leads an account without Identities to the form for the first one", async () => {
    const { top } = await drawn(IdentitiesPage, {})
    ;(await callOf("/api/identities?")).answer(200, { identities: [], next_cursor: null })
    await eventually(() => expect(top.all({ class: "box" })).toHaveLength(1))
    const [box] = top.all({ class: "box" })
    expect(box!.all("a").map(({ attributes }) => attributes["href"])).toEqual(["/console/identities/new"])
  })
})
