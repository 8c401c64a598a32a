/** The proofs of an Identity, without a browser: which one is approved, ended or removed, and what others may rely on. */
import { act } from "preact/test-utils"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { browserAt, drawn, Entries, eventually, heldCalls, leavePage, problem, source } from "./Modules.ts"

const { SignIns } = await source("proof/SignIns.tsx")
const { Clouds } = await source("proof/Clouds.tsx")
const { Keys } = await source("proof/Keys.tsx")
const { Permissions } = await source("proof/Permissions.tsx")
const { Tokens } = await source("proof/Tokens.tsx")
const { default: ProofPage } = await source("proof/ProofPage.tsx")
const { Toasts } = await source("ui/Toast.tsx")
const { client } = await source("client/Queries.ts")

const at = "/api/identities/ada"
let calls: ReturnType<typeof heldCalls>
beforeEach(async () => {
  calls = heldCalls()
  vi.stubGlobal("localStorage", new Entries())
  await browserAt("/identities/ada/proof")
})
afterEach(leavePage)
const answered = (status: number, body?: object) => calls.answered(status, body)

describe("A sign-in", () => {
  const one = (id: string, status: string) => ({
    id,
    status,
    site: `${id}.example`,
    client_name: `Client ${id}`,
    scopes: ["openid", "email"],
    signed_in_at: null,
    created_at: "2026-11-20T08:00:00Z",
  })
  const states = ["approved", "refused", "expired", "started", "signed_in", "ended"]
  const list = {
    sign_ins: [
      one("first", "awaiting_approval"),
      one("second", "awaiting_approval"),
      ...states.map((state) => one(state, state)),
    ],
    next_cursor: null,
  }
  const opened = async () => {
    const shown = await drawn(SignIns, { handle: "ada" })
    await answered(200, list)
    await eventually(() => expect(shown.top.all("tr").length).toBe(states.length + 1))
    return shown
  }

  it("that waits shows its site, what the site calls itself and what it gets", async () => {
    const { top } = await opened()
    const waiting = top
      .all("ul")[0]!
      .all("li")
      .map(({ textContent }) => textContent)
    expect(waiting.length).toBe(2)
    expect(waiting[1]).toMatch(/second\.example.*Calls itself “Client second”.*openid email/)
  })

  it.each([
    [0, "approve"],
    [1, "refuse"],
  ])("that waits is decided for its own site (%d: %s)", async (index, action) => {
    const { top, fire } = await opened()
    const [, second] = top.all("ul")[0]!.all("li")
    const buttons = second!.all("button")
    await fire(buttons[index], "click")
    const request = await answered(409, problem(409, { detail: "too late" }))
    expect([request.method, request.url]).toEqual(["POST", `${at}/sign-ins/second/${action}`])
    await eventually(() => expect(second!.textContent).toContain("too late"))
    expect(top.all("ul")[0]!.all("li")[0]!.textContent).not.toContain("too late")
    // The problem of one decision does not hide that of the other one.
    await fire(buttons[1 - index], "click")
    await answered(409, problem(409, { detail: "not now" }))
    await eventually(() => expect(second!.textContent).toContain("not now"))
    await fire(buttons[index], "click")
    await answered(200, {})
    expect((await calls.next()).url).toMatch(/sign-ins\?/)
  })

  it("has its state and time in the list, which has further pages", async () => {
    const shown = await drawn(SignIns, { handle: "ada" })
    const sign_ins = [one("started", "started"), { ...one("in", "signed_in"), signed_in_at: "2020-01-01T00:00:00Z" }]
    const more = [one("refused", "refused"), one("waits", "awaiting_approval")]
    await answered(200, { sign_ins: [...sign_ins, ...more], next_cursor: "c" })
    await eventually(() => expect(shown.top.all("tr").length).toBe(4))
    const rows = shown.top.all("tr").slice(1)
    expect(rows.map((row) => row.all({ class: "status" })[0]!.attributes["data-tone"])).toEqual(["busy", "ok", "bad"])
    expect(rows[1]!.all("time")[0]!.textContent).toContain("yr")
    await shown.press("Show more")
    expect((await calls.next()).url).toContain("cursor=c")
  })

  it("can be ended while the site may use it, after a confirmation that names the site", async () => {
    const { top, fire } = await opened()
    const rows = top.all("tr").slice(1)
    expect(states.filter((_, index) => rows[index]!.all("button").length > 0)).toEqual([
      "approved",
      "started",
      "signed_in",
    ])
    const row = rows[states.indexOf("signed_in")]!
    await fire(row.all("button")[0], "click")
    expect([calls.waiting(), top.all("dialog")[0]!.all("h2")[0]!.textContent]).toEqual([
      0,
      expect.stringContaining("signed_in.example"),
    ])
    await fire(top.all("dialog")[0]!.all("button").at(-1), "click")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `${at}/sign-ins/signed_in`])
    expect((await calls.next()).url).toMatch(/sign-ins\?/)
  })
})

describe("A signing key", () => {
  const one = (kid: string, more: object = {}) => ({
    kid,
    origin: "service",
    name: null,
    jwk: { crv: "Ed25519" },
    retired_at: null,
    published_until: null,
    created_at: "2026-11-20T08:00:00Z",
    ...more,
  })
  const retired = { retired_at: "2026-11-21T08:00:00Z", published_until: "2026-12-21T08:00:00Z" }
  const keys = [
    one("signing-key-1"),
    one("retired-key-2", retired),
    one("agents-key-03", { origin: "agent", name: "HSM" }),
    one("agents-key-04", { origin: "agent", retired_at: retired.retired_at }),
  ]
  const opened = async () => {
    client.setQueryData(["GET /api/identities/:handle/signing-keys", { params: { handle: "ada" } }], { keys })
    return drawn(Keys, { handle: "ada" })
  }

  it("of the service can be removed only after it was replaced, one of the agent always", async () => {
    const { top, fire } = await opened()
    const rows = top.all("tr").slice(1)
    expect(rows.map((row) => row.all("button").length)).toEqual([0, 1, 1, 1])
    expect(rows[2]!.textContent).toContain("HSM")
    const until = rows.map((row) => row.all("td")[3]!.all("time")[0]?.attributes["dateTime"])
    expect(until).toEqual([undefined, retired.published_until, undefined, undefined])
    expect(rows.map((row) => row.all("td")[1]!.textContent)).toEqual(["Service", "Service", "Agent", "Agent"])
    expect(rows.map((row) => row.all({ class: "status" })[0]!.textContent)).toEqual([
      "Active",
      "Rotated",
      "Active",
      "Rotated",
    ])
    await fire(rows[1]!.all("button")[0], "click")
    expect([calls.waiting(), top.all("dialog")[0]!.all("h2")[0]!.textContent]).toEqual([
      0,
      expect.stringContaining("retired-key-"),
    ])
    await fire(top.all("dialog")[0]!.all("button").at(-1), "click")
    const request = await answered(204)
    expect([request.method, request.url]).toEqual(["DELETE", `${at}/signing-keys/retired-key-2`])
  })

  it("of the service is rotated after a confirmation", async () => {
    const { top, fire } = await opened()
    await fire(top.all("button")[0], "click")
    expect(calls.waiting()).toBe(0)
    await fire(top.all("dialog")[0]!.all("button").at(-1), "click")
    const request = await answered(200, {})
    expect([request.method, request.url]).toEqual(["POST", `${at}/signing-key/rotate`])
    expect((await answered(200, { keys })).url).toBe(`${at}/signing-keys`)
    const toasts = await drawn(Toasts, {})
    await eventually(() => expect(toasts.top.textContent).toContain("Signing key rotated"))
  })
})

describe("The permissions of an Identity", () => {
  const opened = async (sites: unknown, audiences: unknown) => {
    client.setQueryData(["GET /api/identities/:handle/proof", { params: { handle: "ada" } }], { sites, audiences })
    const { top, ...shown } = await drawn(Permissions, { handle: "ada" })
    const lists = () => top.all("textarea").map(({ attributes }) => attributes["value"])
    const boxes = () => top.all({ type: "checkbox" }).map(({ attributes }) => attributes["checked"] === "true")
    return { ...shown, top, lists, boxes }
  }

  it("begin with the stored ones, and are sent as they were entered", async () => {
    const { lists, boxes, submit, fire, top } = await opened(["a.example", "b.example"], "any")
    expect([boxes(), lists()]).toEqual([[false, true], ["a.example\nb.example"]])
    await submit()
    const same = await answered(409, problem(409))
    expect([same.method, same.url, same.body]).toEqual([
      "PATCH",
      `${at}/proof`,
      { sites: ["a.example", "b.example"], audiences: "any" },
    ])
    const [site, audience] = top.all({ type: "checkbox" })
    await fire(site, "change", { currentTarget: { checked: true } })
    await fire(audience, "change", { currentTarget: { checked: false } })
    expect(lists()).toEqual([""])
    await fire(top.all("textarea")[0], "input", { currentTarget: { value: " one\n two " } })
    await eventually(() => expect(top.all({ "aria-busy": "true" })).toEqual([]))
    await submit()
    const changed = await answered(200, {})
    expect(changed.body).toEqual({ sites: "any", audiences: ["one", "two"] })
    expect((await calls.next()).url).toBe(`${at}/proof`)
  })

  it("show an error at the list that has it", async () => {
    const { submit, top } = await opened([], [])
    await submit()
    const errors = ["sites", "audiences"].map((name) => ({ path: `/${name}/0`, message: `wrong ${name}` }))
    await answered(422, problem(422, { errors }))
    await eventually(() =>
      expect(top.all({ class: "wrong" }).map(({ textContent }) => textContent)).toEqual([
        "wrong sites",
        "wrong audiences",
      ]),
    )
  })
})

it("Tokens of the Identity are listed with who got them, or why nobody did", async () => {
  const record = (id: string, more: object) => ({
    id,
    at: "2026-11-20T08:00:00Z",
    code: null,
    count: 1,
    outcome: "allowed",
    target: { type: "token", name: `${id}.example` },
    actor: { kind: "identity_key", client: null, name: null },
    ...more,
  })
  const { top, press } = await drawn(Tokens, { handle: "ada" })
  const denied = { outcome: "refused", code: "audience_not_allowed", target: null }
  const records = [
    record("one", {}),
    record("two", { ...denied, count: 2, actor: { kind: "grant", client: "App", name: "x" } }),
    record("three", { ...denied, outcome: "failed", actor: { kind: "admin_key", client: null, name: "laptop" } }),
  ]
  const { url } = await answered(200, { records, next_cursor: "c" })
  expect(Object.fromEntries(new URL(url, "http://localhost").searchParams)).toEqual({
    action: "proof.createToken",
    identity: "ada",
    limit: "10",
  })
  await eventually(() => expect(top.all("tr").length).toBe(4))
  const cells = top.all("tr").map((row) => row.all("td").map(({ textContent }) => textContent))
  expect(cells.slice(1).map((row) => row.slice(0, 3))).toEqual([
    ["one.example", "Issued", "Agent"],
    ["–", "Deniedaudience_not_allowed × 2", "App"],
    ["–", "Deniedaudience_not_allowed", "laptop"],
  ])
  const tones = top.all({ class: "status" }).map(({ attributes }) => attributes["data-tone"])
  expect(tones).toEqual(["ok", "warn", "warn"])
  expect(top.all("a")[0]!.attributes["href"]).toBe("/console/activity/audit?identity=ada")
  await press("Show more")
  expect((await calls.next()).url).toContain("cursor=c")
})

it("The page of proofs appears as a whole, also if a part failed, and names where others verify the Identity", async () => {
  const identity = {
    id: "id_ada",
    handle: "ada",
    status: "ready",
    card_url: "https://ada.example/card.json",
    profile_url: "https://ada.example/",
    tunnel: { url: "https://ada.tunnel.example" },
  }
  client.setQueryData(["GET /api/identities/:handle", { params: { handle: "ada" } }], identity)
  const { top, facts, fire } = await drawn(ProofPage, { handle: "ada" })
  const did = { did: "did:web:ada", did_url: "https://ada.example/did.json", jwks_url: "https://ada.example/jwks.json" }
  const bodies: Readonly<Record<string, object>> = {
    "sign-ins": { sign_ins: [], next_cursor: null },
    "signing-keys": { keys: [], ...did },
    audit: { records: [], next_cursor: null },
  }
  expect(top.all({ class: "skeleton" }).length).toBe(1)
  for (const _ of [1, 2, 3, 4]) {
    expect(top.all("section").length).toBe(0)
    const { url, answer } = await calls.next()
    const body = bodies[new URL(url, "http://localhost").pathname.split("/").at(-1)!]
    await act(async () => (body === undefined ? answer(403, problem(403, { detail: "not yours" })) : answer(200, body)))
  }
  await eventually(() => expect(top.all("section").length).toBe(6))
  // The part that failed is read again when it appears.
  expect((await answered(403, problem(403, { detail: "not yours" }))).url).toBe(`${at}/proof`)
  await eventually(() => expect(top.textContent).toContain("not yours"))
  expect(top.all("section").length).toBe(6)
  const links = top.all({ class: "address" }).flatMap((one) => one.all("a").map(({ attributes }) => attributes["href"]))
  expect(links).toEqual([
    did.did_url,
    did.jwks_url,
    identity.card_url,
    "https://ada.tunnel.example/.well-known/http-message-signatures-directory",
    "http://localhost/.well-known/openid-configuration",
  ])
  expect(Object.values(facts())[0]).toBe("did:web:ada")
  const writeText = vi.fn(async () => undefined)
  vi.stubGlobal("navigator", { clipboard: { writeText } })
  for (const one of top.all({ class: "address" })) await fire(one.all("button")[0], "click")
  expect(writeText.mock.calls.flat()).toEqual([did.did, ...links])
})

it.each([
  [
    "AWS",
    "sts.amazonaws.com",
    "aws --role-arn",
    [
      "oidc-provider/id.example",
      '"id.example:aud": "sts.amazonaws.com"',
      '"id.example:sub": "agent:idn_1"',
      "sts:AssumeRoleWithWebIdentity",
    ],
  ],
  [
    "Google Cloud",
    "//iam.googleapis.com/projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER",
    "gcp --provider projects/",
    ["--issuer-uri=https://id.example ", "google.subject=assertion.sub", "/POOL/subject/agent:idn_1'"],
  ],
  [
    "Azure",
    "api://AzureADTokenExchange",
    "azure --client-id",
    ['"name": "ada"', '"issuer": "https://id.example"', '"subject": "agent:idn_1"', '"api://AzureADTokenExchange"'],
  ],
  [
    "Kubernetes",
    "kubernetes",
    "kubernetes",
    [
      "--oidc-issuer-url=https://id.example --oidc-client-id=kubernetes --oidc-username-claim=sub",
      "clusterrolebinding ada --clusterrole=view --user='https://id.example#agent:idn_1'",
    ],
  ],
])(
  "The settings for %s trust only the shown Identity and the audience of its token",
  async (name, audience, tool, trust) => {
    vi.stubGlobal("location", { ...location, origin: "https://id.example" })
    const { top, press } = await drawn(Clouds, { identity: { id: "idn_1", handle: "ada" } })
    await press(name)
    const text = top.textContent
    for (const part of trust) expect(text).toContain(part)
    expect(text).toContain(`token --audience ${audience} --write svc-token --every 4m`)
    expect(text).toContain(`svc -- credentials ${tool}`)
  },
)
