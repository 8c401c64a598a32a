/** Signed requests: the reader of the usual form agrees with the library, whatever is sent. */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto"
import { NotVerified, verifyAnyForm, verifyRequest } from "@svc/cluster/proof/AgentRequests"
import { targetOf } from "@svc/cluster/proof/RequestSignatures"
import * as PlainSignature from "@svc/cluster/proof/PlainSignature"
import { Effect, Exit } from "effect"
import fc from "fast-check"
import { component, createSignatureSync } from "http-message-sig"
import { describe, expect, it } from "vitest"

const { privateKey, publicKey } = generateKeyPairSync("ed25519")
const now = 1_770_000_000
const origin = "https://ada.tunnel.example"
const url = "https://shop.example/search?q=1"

interface Part {
  readonly components?: ReadonlyArray<string>
  readonly parameters?: Readonly<Record<string, string | number>>
  readonly label?: string
  readonly fields?: Readonly<Record<string, string>>
}

const signed = ({ components = [], parameters = {}, label = "sig1", fields = {} }: Part = {}) => {
  const sent = { "signature-agent": `${label}="${origin}"`, ...fields }
  const { signature, signatureInput } = createSignatureSync(
    {
      kind: "request",
      method: "GET",
      targetUri: url,
      fields: Object.entries(sent).map(([name, value]) => ({ name, value })),
    },
    {
      label,
      components: ["@authority", component("signature-agent", { key: label }), ...components],
      parameters: {
        created: now,
        expires: now + 60,
        keyid: "key",
        alg: "ed25519",
        nonce: randomBytes(64).toString("base64"),
        tag: "web-bot-auth",
        ...parameters,
      },
      signer: { algorithm: "ed25519", sign: (data) => new Uint8Array(sign(null, data, privateKey)) },
    },
  )
  const headers = new Map(Object.entries({ ...sent, signature, "signature-input": signatureInput }))
  return { method: "GET", url, headers }
}

const options = {
  now,
  schemes: ["https:"],
  keyOf: (of: string, kid: string) => (of === origin && kid === "key" ? publicKey : undefined),
}
const outcomeOf = (verifying: Promise<unknown>) =>
  verifying.catch((error: unknown) => (error instanceof NotVerified ? error.reason : `threw ${String(error)}`))
/** Returns the outcome, which both readers share. */
const outcome = async (request: PlainSignature.SignedRequest) => {
  const found = await outcomeOf(verifyRequest(request, options))
  expect(found).toEqual(await outcomeOf(verifyAnyForm(request, options)))
  return found
}

const parts: Readonly<Record<string, Part>> = {
  "host and agent only": {},
  "method, path and query": { components: ["@method", "@path", "@query"] },
  "a digest of the body": {
    components: ["content-digest"],
    fields: { "content-digest": "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:" },
  },
  "another label": { label: "agent-1" },
}

describe("The usual form of a signature", () => {
  it.each(Object.entries(parts))("is read without the library: %s", async (_, part) => {
    const request = signed(part)
    expect(PlainSignature.read(request)).toBeDefined()
    expect(await outcome(request)).toMatchObject({ origin, kid: "key", created: now })
    expect(await outcome({ ...request, url: url.replace("shop", "other") })).toBe("altered")
  })

  it("is refused like any other: late, early, by another key, with another tag", async () => {
    const reasons = (all: ReadonlyArray<Part>) => Promise.all(all.map((part) => outcome(signed(part))))
    expect(
      await reasons([
        { parameters: { created: now - 71 } },
        { parameters: { expires: now - 11 } },
        { parameters: { created: now + 11 } },
        { parameters: { keyid: "other" } },
        { parameters: { tag: "other" } },
        { parameters: { nonce: "n".repeat(201) } },
        { parameters: { keyid: "k".repeat(201) } },
      ]),
    ).toEqual(["expired", "expired", "malformed", "unknown_key", "malformed", "malformed", "malformed"])
  })
})

describe("A signature with an empty text", () => {
  it.each(["keyid", "nonce"])("is left to the library if it is the %s", async (name) => {
    const request = signed({ parameters: { [name]: "" } })
    expect(PlainSignature.read(request)).toBeUndefined()
    const found = name === "keyid" ? "unknown_key" : { origin, kid: "key", nonce: "", created: now }
    expect(await outcome(request)).toEqual(found)
  })
})

describe("A request for an http address", () => {
  it.each(["production", "development"] as const)("is signed only in development: %s", async (environment) => {
    const signing = targetOf({ environment } as never, { method: "GET", url: "http://shop.example/" })
    expect(Exit.isSuccess(await Effect.runPromiseExit(signing))).toBe(environment === "development")
  })
})

describe("A signature at the edge of its limits", () => {
  it.each<Part>([
    { parameters: { created: now - 70 } },
    { parameters: { expires: now - 10 } },
    { parameters: { created: now + 10 } },
    { parameters: { nonce: "n".repeat(200) } },
  ])("is accepted: %j", async (part) => expect(await outcome(signed(part))).toMatchObject({ origin, kid: "key" }))

  it.each([
    "https://ada.tunnel.example/path",
    "http://ada.tunnel.example",
    "ada.tunnel.example",
    "https://u@ada.tunnel.example",
  ])("does not name an agent by %s", async (agent) =>
    expect(await outcome(signed({ fields: { "signature-agent": `sig1="${agent}"` } }))).toBe("malformed"),
  )

  it.each(["signature", "signature-input", "signature-agent"])("is none without %s", async (field) => {
    const { headers, ...request } = signed()
    const others = new Map([...headers].filter(([name]) => name !== field))
    expect(await outcome({ ...request, headers: others })).toBe("unsigned")
  })
})

describe("Any other form", () => {
  it.each([
    [
      "a parameter twice",
      (input: string) => input.replace(';alg="ed25519"', "").replace(";expires", ";created=1;expires"),
    ],
    ["a signature without the host", (input: string) => input.replace('"@authority" ', "")],
    ["a component twice", (input: string) => input.replace('"@authority"', '"@authority" "@authority"')],
  ])("is left to the library: %s", async (_, change) => {
    const request = signed({ components: ["@method"] })
    const headers = new Map(request.headers).set("signature-input", change(request.headers.get("signature-input")!))
    expect(PlainSignature.read({ ...request, headers })).toBeUndefined()
    expect(await outcome({ ...request, headers })).toBe("malformed")
  })

  const pieces = [
    " ",
    ";",
    ",",
    '"',
    "=",
    "(",
    ")",
    ":",
    "0",
    "\t",
    "a=1",
    'sig1="x"',
    ";req",
    "\\",
    "@path",
    "é",
    ";tag",
  ]
  const edit = fc.record({
    field: fc.constantFrom("signature", "signature-input", "signature-agent", "content-digest", "url", "method"),
    at: fc.nat(400),
    remove: fc.nat(3),
    insert: fc.constantFrom("", ...pieces),
  })

  it("has the outcome that the library gives it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.values(parts)),
        fc.array(edit, { minLength: 1, maxLength: 3 }),
        async (part, edits) => {
          const request = signed(part)
          const headers = new Map(request.headers)
          let { url, method } = request
          for (const { field, at, remove, insert } of edits) {
            const change = (text: string) => {
              const place = at % (text.length + 1)
              return text.slice(0, place) + insert + text.slice(place + remove)
            }
            if (field === "url") url = change(url)
            else if (field === "method") method = change(method)
            else if (headers.has(field)) headers.set(field, change(headers.get(field)!))
          }
          await outcome({ method, url, headers })
        },
      ),
      { numRuns: 1_500 },
    )
  })

  it("with a list of signatures that is too long is refused", async () => {
    const request = signed()
    const more = Array.from({ length: 100 }, (_, n) => `, s${n}=("@authority");created=${now};keyid="key"`).join("")
    const signatures = Array.from({ length: 100 }, (_, n) => `, s${n}=:AAAA:`).join("")
    const headers = new Map(request.headers)
      .set("signature-input", request.headers.get("signature-input")! + more)
      .set("signature", request.headers.get("signature")! + signatures)
    expect(await outcome({ ...request, headers })).toBe("malformed")
  })

  it("with long white space in a covered field is refused, for which the library takes quadratic time", async () => {
    const request = signed({ components: ["x-long"], fields: { "x-long": "a" } })
    const headers = new Map(request.headers).set("x-long", `a${" ".repeat(15_000)}b`)
    expect(await outcomeOf(verifyAnyForm({ ...request, headers }, options))).toBe("malformed")
    expect(await outcomeOf(verifyRequest({ ...request, headers }, options))).toBe("altered")
  })
})
