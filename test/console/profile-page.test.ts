/** The form of an agent's profile, without a browser: what it sends, and what others see of it. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { drawn, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { default: ProfilePage } = await source("card/ProfilePage.tsx")
const { client } = await source("client/Queries.ts")

let calls: ReturnType<typeof heldCalls>
beforeEach(() => {
  calls = heldCalls()
})
afterEach(leavePage)

describe("The profile of an agent", () => {
  const card = {
    name: "Ada",
    description: "Counts",
    version: "1",
    documentation_url: "https://docs.example/",
    icon_url: "https://icon.example/",
    provider: { organization: "Org", url: "https://org.example/" },
    skills: [{ id: "s", name: "Sum", description: "Sums", tags: ["a", "b"], examples: ["1+1"] }],
    card: { protocolVersion: "1.0" },
    updated_at: "2026-11-20T08:00:00.000Z",
  }
  const opened = async (more: object = {}) => {
    const params = { params: { handle: "ada" } }
    vi.stubGlobal("location", { pathname: "/console/identities/ada/profile", search: "" })
    const identity = { handle: "ada", status: "ready", profile_url: "https://ada.example/" }
    client.setQueryData(["GET /api/identities/:handle", params], identity)
    client.setQueryData(["GET /api/identities/:handle/card", params], { ...card, ...more })
    const { top, enter, press, submit, leave } = await drawn(ProfilePage, { handle: "ada" })
    const saved = async () => {
      await submit()
      return calls.next()
    }
    return { top, enter, press, saved, leave }
  }

  it("is saved with the members that the form does not show", async () => {
    const { saved, leave } = await opened()
    const { card: _, updated_at: __, ...own } = card
    const { method, url, body } = await saved()
    expect([method, url, body]).toEqual(["PATCH", "/api/identities/ada/card", own])
    await leave()
  })

  it.each([
    ["Documentation URL", { documentation_url: null }],
    ["Icon URL", { icon_url: null }],
    ["Operator", { provider: { organization: "", url: card.provider.url } }],
    ["Operator website", { provider: { organization: "Org", url: "" } }],
    ["Operator + Operator website", { provider: null }],
    ["Tags, separated by commas", { skills: [{ ...card.skills[0]!, tags: [] }] }],
  ])("has nothing where the form is empty: %s", async (labels, change) => {
    const { enter, saved, leave } = await opened()
    for (const label of labels.split(" + ")) await enter(label, "  ")
    const { card: _, updated_at: __, ...own } = card
    expect((await saved()).body).toEqual({ ...own, ...change })
    await leave()
  })

  it("shows each error of the service at its field", async () => {
    const { top, saved, leave } = await opened()
    const pointers = ["/name", "/description", "/version", "/documentation_url", "/icon_url"]
    const others = ["/provider/organization", "/provider/url", "/skills/0/id", "/skills/0/name", "/skills/0/tags"]
    const errors = [...pointers, ...others].map((path) => ({ path, message: `wrong ${path}` }))
    const request = await saved()
    await act(async () => request.answer(422, problem(422, { errors })))
    await eventually(() => expect(top.all({ class: "wrong" }).length).toBe(errors.length))
    const wrong = top.all({ class: "wrong" }).map((one) => {
      const label = one.parentNode!.all("label")[0]!.textContent.replace(/ \(.*/, "")
      return `${label}: ${one.textContent}`
    })
    expect(wrong).toMatchInlineSnapshot(`
      [
        "Name: wrong /name",
        "Description: wrong /description",
        "Version: wrong /version",
        "Documentation URL: wrong /documentation_url",
        "Icon URL: wrong /icon_url",
        "Operator: wrong /provider/organization",
        "Operator website: wrong /provider/url",
        "ID: wrong /skills/0/id",
        "Name: wrong /skills/0/name",
        "Tags, separated by commas: wrong /skills/0/tags",
      ]
    `)
    await leave()
  })

  it("gains and loses skills, each changed on its own, and shows them as others see them", async () => {
    const [first] = card.skills
    const second = { id: "t", name: "Twice", description: "Doubles", examples: ["2*1"] }
    const { top, enter, press, saved, leave } = await opened({ skills: [first, second] })
    await enter("Name", " Doubles ")
    await press("Add skill")
    const rows = top.all("fieldset")
    expect(rows.length).toBe(3)
    expect(rows[2]!.all("input").map(({ attributes }) => attributes["value"] ?? "")).toEqual(["skill-3", "", ""])
    await enter("Name", "Third")
    await press("Remove skill")
    await press("Add skill")
    await enter("Name", "Last")
    const preview = top.all({ class: "box padded preview" })[0]!
    expect(preview.all("li").map(({ textContent }) => textContent)).toEqual(["SumSums", " Doubles Doubles", "Last"])
    expect((await saved()).body.skills).toEqual([
      first,
      { ...second, name: "Doubles", tags: [] },
      { id: "skill-3", name: "Last", description: "", tags: [] },
    ])
    await leave()
  })

  it("leads to the public page, shows the JSON of the card, and is read again after it was saved", async () => {
    const { top, saved, leave } = await opened()
    expect(top.all({ href: "https://ada.example/" }).length).toBe(1)
    expect(JSON.parse(top.all("pre")[0]!.textContent)).toEqual(card.card)
    const request = await saved()
    await act(async () => request.answer(200, card))
    expect((await calls.next()).url).toBe("/api/identities/ada/card")
    await leave()
  })
})
