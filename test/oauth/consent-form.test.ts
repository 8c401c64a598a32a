/** The form on which an account holder decides about an app: what it preselects and says, and what a submission means. */
import { body, choiceOf, type Decision } from "@svc/api/oauth/ConsentForm"
import { readAndAct, readOnly } from "@svc/api/oauth/OfferedScopes"
import { describe, expect, it } from "vitest"

const identities = ["ada", "bob"].map((handle) => ({ id: `id_${handle}`, handle }))
const wanted = {
  client: { id: "oc_1", name: "App", redirects: [], idTokenAlgorithm: null, describedBy: null },
  redirect: "https://app.example/callback",
  scopes: [...new Set([...readOnly, ...readAndAct])],
}
const shown = (more: object = {}, asked: object = {}) =>
  body({
    wanted: { ...wanted, ...asked },
    org: { email: "ada@example.org", language: "en" },
    identities,
    present: undefined,
    request: "r1",
    seal: "s1",
    ...more,
  } as never)
/** The controls that are checked: `name value`. */
const checked = (html: string) =>
  [...html.matchAll(/name="([a-z]+)" value="([^"]*)" checked/g)].map(([, name, value]) => `${name} ${value}`)

describe("The consent form", () => {
  it("preselects reading as the first Identity for 90 days", () => {
    expect(checked(shown())).toEqual(["agents one", "rights read", "days 90"])
    expect(shown()).toContain('name="one" value="id_ada"')
  })

  it.each([
    [{ identities: ["id_ada"], scopes: readOnly }, ["agents one", "rights read"]],
    [{ identities: ["id_bob"], scopes: readOnly }, ["agents these", "identity id_bob", "rights read"]],
    [
      { identities: ["id_ada", "id_bob"], scopes: readAndAct },
      ["agents these", "identity id_ada", "identity id_bob", "rights act"],
    ],
    [{ identities: null, scopes: readAndAct }, ["agents one", "rights act"]],
    // Values of the Vault and administration are never preselected.
    [{ identities: ["id_ada"], scopes: [...readOnly, "vault:secret"] }, ["agents one", "rights read"]],
    [{ identities: ["id_ada"], scopes: [...readAndAct, "mail:admin"] }, ["agents one", "rights act"]],
    [{ identities: ["id_ada"], scopes: ["mail:read"] }, ["agents one", "rights choose", "scope mail:read"]],
  ])("preselects the access that the app has: %j", (present, expected) => {
    expect(checked(shown({ present })).filter((one) => one !== "days 90")).toEqual(expected)
  })

  it("preselects no preset that is not offered", () => {
    const present = { identities: ["id_ada"], scopes: ["vault:secret"] }
    expect(checked(shown({ present }, { scopes: ["vault:secret"] }))).toContain("rights choose")
  })

  it("offers acting only if the app asks for more than reading", () => {
    const html = shown({}, { scopes: ["mail:read"] })
    expect(html).toContain('name="rights" value="read"')
    expect(html).not.toContain('name="rights" value="act"')
  })

  it("offers no choice of Identities if there is one, or none", () => {
    expect(shown({ identities: identities.slice(0, 1) })).not.toContain('value="these"')
    const none = shown({ identities: [] })
    expect(none).not.toMatch(/value="(?:these|one)"/)
    expect(none).toContain('name="agents" value="all"')
  })

  it.each([
    // Below a private suffix such as github.io, each name belongs to somebody else.
    ["https://one.github.io/callback", "two.github.io", true],
    ["https://one.github.io/callback", "one.github.io", false],
    ["https://app.example/callback", "docs.app.example", false],
    ["https://app.example/callback", "other.example", true],
    ["http://127.0.0.1:1/callback", "other.example", false],
  ])("warns if %s is described by another site: %s", (redirect, describedBy, warns) => {
    const html = shown({}, { redirect, client: { ...wanted.client, describedBy } })
    expect(html.includes('class="warning"')).toBe(warns)
    expect(html).toContain(describedBy)
  })

  it.each([
    ["http://127.0.0.1:4711/callback", "A program on this computer will receive access (port 4711)."],
    ["com.example.app:/callback", "An app that opens com.example.app: links will receive access."],
    ["https://app.example/callback", "will receive access."],
  ])("names what receives the access at %s", (redirect, text) => {
    expect(shown({}, { redirect })).toContain(`>${text}`)
  })

  it.each([
    [null, "Whole account, including future agents; <code>mail:read</code>"],
    [["id_bob"], "@bob; <code>mail:read</code>"],
  ])("shows the present access to %j", (ids, text) => {
    expect(shown({ present: { identities: ids, scopes: ["mail:read"] } })).toContain(text)
  })

  it("offers values of the Vault once, apart from the other scopes", () => {
    expect(shown()).toContain('name="vault" value="yes">')
    expect(shown()).not.toContain('value="vault:secret"')
    // No preset contains a scope of the account.
    expect([...readOnly, ...readAndAct].filter((name) => name.startsWith("account:"))).toEqual([])
  })

  it("escapes what the app says of itself", () => {
    const html = shown({}, { client: { ...wanted.client, name: '<b>"App' }, scopes: ['<i>"'] })
    expect(html).not.toMatch(/<b>|<i>/)
  })
})

describe("A decision", () => {
  const given = (more: object) =>
    choiceOf({ request: "r", seal: "s", decision: "allow", ...more } as Decision, wanted as never)
  it.each<[object, object | undefined]>([
    [
      { agents: "one", one: "id_ada" },
      { identities: ["id_ada"], scopes: readOnly, days: 90 },
    ],
    [
      { agents: "these", identity: ["id_ada", "id_bob"], rights: "act", days: "30" },
      { identities: ["id_ada", "id_bob"], scopes: readAndAct, days: 30 },
    ],
    [
      { agents: "these", identity: "id_bob" },
      { identities: ["id_bob"], scopes: readOnly, days: 90 },
    ],
    [
      { agents: "all", days: "365" },
      { identities: null, scopes: readOnly, days: 365 },
    ],
    [
      { agents: "one", one: "id_ada", rights: "choose", scope: ["mail:read", "mail:read", "no:such", "vault:secret"] },
      { identities: ["id_ada"], scopes: ["mail:read"], days: 90 },
    ],
    [
      { agents: "one", one: "id_ada", rights: "choose", vault: "yes" },
      { identities: ["id_ada"], scopes: ["vault:secret"], days: 90 },
    ],
    // Nothing is allowed without an Identity or a scope.
    [{ agents: "one" }, undefined],
    [{ agents: "these" }, undefined],
    [{ agents: "one", one: "id_ada", rights: "choose" }, undefined],
    [{ agents: "one", one: "id_ada", rights: "choose", scope: "vault:secret" }, undefined],
  ])("%j allows %j", (decision, choice) => {
    const found = given(decision)
    const sorted = found && { ...found, scopes: found.scopes.toSorted() }
    const wantedChoice = choice && {
      ...choice,
      scopes: (choice as { scopes: ReadonlyArray<string> }).scopes.toSorted(),
    }
    expect(sorted).toEqual(wantedChoice)
  })
})
