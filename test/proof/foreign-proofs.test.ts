/** The reasons to reject a token, a card or a request of an agent of another service. */
import { expect, it } from "@effect/vitest"
import { canonicalize } from "@svc/cluster/proof/Libraries"
import { Verifications } from "@svc/cluster/proof/Verifications"
import { Context, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { FlattenedSign, SignJWT, type JWTHeaderParameters } from "jose"
import { describe } from "vitest"
import { eventually } from "../harness/Eventually.ts"
import { agentKey, foreignSites, ok } from "./ForeignSites.ts"

const [agent, other] = [await agentKey(), await agentKey()]
const now = Date.parse("2026-11-20T12:00:00Z")

const setUp = Effect.gen(function* () {
  yield* TestClock.setTime(now)
  const sites = foreignSites()
  const context = yield* Layer.build(Verifications.layer.pipe(Layer.provide(sites.layer)))
  const { verify } = Context.get(context, Verifications)
  return { sites, verify: (proof: Parameters<typeof verify>[0], reader = "reader") => verify(proof, reader) }
})

describe("A token of another issuer", () => {
  const issuer = "https://issuer.example"
  const discovery = `${issuer}/.well-known/openid-configuration`
  const keys = `${issuer}/keys`
  interface Part {
    readonly claims?: Readonly<Record<string, unknown>>
    readonly header?: Partial<JWTHeaderParameters>
    readonly document?: unknown
    readonly set?: unknown
  }
  const verified = ({ claims = {}, header = {}, document, set }: Part, audience?: string) =>
    Effect.gen(function* () {
      const { sites, verify } = yield* setUp
      const seconds = now / 1000
      const payload = { iss: issuer, sub: "agent", aud: "api.example", exp: seconds + 60, ...claims }
      const token = yield* Effect.promise(() =>
        new SignJWT(payload).setProtectedHeader({ alg: "EdDSA", ...header }).sign(agent.privateKey),
      )
      sites.answer(discovery)(() => ok(document ?? { issuer, jwks_uri: keys }))
      sites.answer(keys)(() => ok(set ?? { keys: [agent.jwk] }))
      return yield* verify({ token, ...(audience === undefined ? {} : { audience }) })
    })

  it.effect("waits for four others of its account at most, and not for those of other accounts", () =>
    Effect.gen(function* () {
      const { sites, verify } = yield* setUp
      sites.otherwise(() => "silence")
      const begin = Effect.fnUntraced(function* (iss: string, reader: string) {
        const sign = new SignJWT({ iss, sub: "agent" }).setProtectedHeader({ alg: "EdDSA" }).sign(agent.privateKey)
        const token = yield* Effect.promise(() => sign)
        return yield* Effect.forkChild(verify({ token }, reader), { startImmediately: true })
      })
      const hostile = yield* Effect.forEach([0, 1, 2, 3, 4, 5], (n) => begin(`https://slow${n}.example`, "hostile"))
      yield* begin("https://other.example", "honest")
      // The library is loaded asynchronously.
      yield* Effect.promise(() =>
        eventually(
          () => Promise.resolve(sites.asked.length),
          (many) => many >= 5,
        ),
      )
      // A call that ends while it waits makes no room.
      yield* Fiber.interrupt(hostile[5]!)
      yield* begin("https://slow6.example", "hostile")
      yield* TestClock.adjust(0)
      const { asked } = sites
      expect(asked.filter((address) => address.includes("slow"))).toHaveLength(4)
      expect(asked.some((address) => address.includes("other"))).toBe(true)
    }),
  )

  it.effect("proves its subject with the key that its header names, until it expires", () =>
    Effect.gen(function* () {
      for (const kid of [agent.kid, undefined]) {
        const set = { keys: [{ ...agent.jwk, kid: agent.kid }] }
        expect(yield* verified({ header: kid === undefined ? {} : { kid }, set }, "api.example")).toEqual({
          valid: true,
          agent: { issuer, subject: "agent", handle: null },
          kid: kid ?? null,
          reason: null,
          detail: null,
          expires_at: new Date(now + 60_000),
        })
      }
      const slash = `${issuer}/`
      const named = { claims: { iss: slash }, document: { issuer: slash, jwks_uri: keys } }
      expect(yield* verified(named)).toMatchObject({ valid: true, agent: { issuer: slash } })
      // Only this service names Handles.
      expect((yield* verified({ claims: { handle: "ada" } })).agent).toEqual({ issuer, subject: "agent", handle: null })
    }),
  )

  it.effect.each<readonly [string, Part, string, string]>([
    ["has expired", { claims: { exp: now / 1000 } }, "expired", '"exp" claim timestamp check failed.'],
    ["never expires", { claims: { exp: undefined } }, "malformed", 'missing required "exp" claim.'],
    ["has no subject", { claims: { sub: undefined } }, "malformed", 'missing required "sub" claim.'],
    ["is not valid yet", { claims: { nbf: now / 1000 + 60 } }, "malformed", '"nbf" claim timestamp check failed.'],
    ["has another key", { set: { keys: [other.jwk] } }, "altered", "signature verification failed."],
    [
      "names an unknown key",
      { header: { kid: "k" }, set: { keys: [{ ...agent.jwk, kid: "x" }] } },
      "unknown_key",
      "no applicable key found in the JSON Web Key Set.",
    ],
    ["has no set of keys", { set: { keys: "none" } }, "malformed", "JSON Web Key Set malformed."],
    [
      "has an unusable key",
      { set: { keys: [{ ...agent.jwk, x: 5 }] } },
      "malformed",
      "The keys or the signature cannot be read.",
    ],
    ["names no issuer", { claims: { iss: undefined } }, "malformed", "The issuer (`iss`) is not an https address."],
    [
      "names an issuer without TLS",
      { claims: { iss: "http://issuer.example" } },
      "malformed",
      "The issuer (`iss`) is not an https address.",
    ],
    [
      "has the document of another issuer",
      { document: { issuer: `${issuer}/`, jwks_uri: keys } },
      "other_address",
      `${discovery} describes another issuer.`,
    ],
    ["has keys without an address", { document: { issuer } }, "malformed", "`jwks_uri` is not an https address."],
    [
      "has keys without TLS",
      { document: { issuer, jwks_uri: "http://issuer.example/keys" } },
      "malformed",
      "`jwks_uri` is not an https address.",
    ],
    ["has no document", { document: [] }, "unreadable_keys", `${discovery} has no JSON document (status 200).`],
    ["has a list of keys", { set: [agent.jwk] }, "unreadable_keys", `${keys} has no JSON document (status 200).`],
  ])("is rejected if it %s", ([, part, reason, detail]) =>
    Effect.gen(function* () {
      const none = { valid: false, agent: null, kid: null, expires_at: null }
      expect(yield* verified(part)).toEqual({ ...none, reason, detail })
    }),
  )

  it.effect("is for one audience, if the caller names its own", () =>
    Effect.gen(function* () {
      expect(yield* verified({}, "other.example")).toMatchObject({ valid: false, reason: "other_audience" })
      expect(yield* verified({})).toMatchObject({ valid: true })
    }),
  )
})

describe("A card of another service", () => {
  const jku = "https://cards.example/ada/jwks.json"
  const document = {
    name: "Ada",
    supportedInterfaces: [null, { url: 5 }, { url: "not an address" }, { url: "https://ada.example/a2a" }],
  }
  const sign = (header: object = {}, payload: object = document, { privateKey } = agent) =>
    Effect.promise(async () => {
      const bytes = new TextEncoder().encode((await canonicalize())(payload))
      const { protected: head, signature } = await new FlattenedSign(bytes)
        .setProtectedHeader({ alg: "EdDSA", jku, ...header })
        .sign(privateKey)
      return { protected: head, signature }
    })
  const verified = (signatures: unknown, card_url?: string, part: object = {}) =>
    Effect.gen(function* () {
      const { sites, verify } = yield* setUp
      sites.answer(jku)(() => ok({ keys: [{ ...agent.jwk, kid: "k1" }] }))
      const found = yield* verify({
        card: { ...document, ...part, signatures },
        ...(card_url === undefined ? {} : { card_url }),
      })
      return { ...found, asked: sites.asked }
    })

  it.effect("proves its keys by any of its first five signatures", () =>
    Effect.gen(function* () {
      const good = yield* sign({ kid: "k1" })
      const wrong = yield* sign({}, { name: "Eve" })
      const proved = {
        valid: true,
        agent: { issuer: jku, subject: null, handle: null },
        reason: null,
        detail: null,
        expires_at: null,
        asked: [jku],
      }
      expect(yield* verified([good])).toEqual({ ...proved, kid: "k1" })
      expect(yield* verified([yield* sign()])).toEqual({ ...proved, kid: null })
      const unreadable = { protected: "!", signature: "x" }
      expect(yield* verified([wrong, unreadable, wrong, wrong, good])).toMatchObject({ ...proved, kid: "k1" })
      const sixth = yield* verified([wrong, unreadable, wrong, wrong, wrong, good])
      expect(sixth).toMatchObject({ valid: false, reason: "altered" })
    }),
  )

  it.effect("is rejected without a readable signature, and its keys are read over TLS only", () =>
    Effect.gen(function* () {
      const outcome = (signatures: unknown) =>
        Effect.map(verified(signatures), ({ reason, detail, asked }) => [reason, detail, asked.length])
      const none = ["unsigned", "The card has no `signatures`.", 0]
      for (const signatures of [undefined, [], {}, ["text"], [[]]]) expect(yield* outcome(signatures)).toEqual(none)
      const unreadable = ["malformed", "The card has no readable signature.", 0]
      expect(yield* outcome([{ protected: "!", signature: "x" }])).toEqual(unreadable)
      const good = yield* sign()
      expect(yield* outcome([{ protected: "!" }, "text", null, good])).toMatchObject([null, null, 1])
      for (const wrong of [undefined, 5, "http://cards.example/jwks.json", "cards.example"]) {
        expect(yield* outcome([yield* sign({ jku: wrong })])).toEqual([
          "malformed",
          "`jku` of the signature is not an https address.",
          0,
        ])
      }
      expect(yield* outcome([yield* sign({}, document, other)])).toMatchObject(["altered", expect.any(String), 1])
    }),
  )

  it.effect("is rejected unless its address is in the folder of its keys or the well-known one of its interface", () =>
    Effect.gen(function* () {
      const signatures = [yield* sign()]
      const at = (card_url: string) => Effect.map(verified(signatures, card_url), ({ reason }) => reason)
      expect(yield* at("https://cards.example/ada/agent-card.json")).toBeNull()
      expect(yield* at("https://ada.example/.well-known/agent-card.json")).toBeNull()
      for (const elsewhere of [
        "https://cards.example/eve/agent-card.json",
        "https://cards.example/.well-known/agent-card.json",
        "https://ada.example/agent-card.json",
        "https://ada.example/x/.well-known/agent-card.json",
        "https://ada.example:8443/.well-known/agent-card.json",
        "https://eve.example/.well-known/agent-card.json",
      ]) {
        expect([elsewhere, yield* at(elsewhere)]).toEqual([elsewhere, "other_address"])
      }
      expect(yield* at("http://cards.example/ada/agent-card.json")).toBe("malformed")
      const without = { supportedInterfaces: "none" }
      const card = { ...document, ...without }
      const alone = yield* verified([yield* sign({}, card)], "https://ada.example/.well-known/agent-card.json", without)
      expect(alone.reason).toBe("other_address")
    }),
  )

  it.effect("of this service is valid while its Identity exists, also at its Tunnel's address", () =>
    Effect.gen(function* () {
      const { sites, verify } = yield* setUp
      const own = "https://svc.example/@ada/jwks.json"
      const card = { ...document, signatures: [yield* sign({ jku: own })] }
      const at = (card_url: string) => verify({ card, card_url })
      const wellKnown = "https://ada.tunnel.example/.well-known/agent-card.json"
      expect(yield* at(wellKnown)).toMatchObject({ valid: false, reason: "identity_ended" })
      sites.store.identities.set("ada", { handle: "ada", keys: [{ ...agent, origin: "service", retired_at: null }] })
      expect(yield* at(wellKnown)).toMatchObject({ valid: true, agent: { issuer: own, handle: "ada" } })
      expect(yield* at("https://eve.tunnel.example/.well-known/agent-card.json")).toMatchObject({
        reason: "other_address",
      })
      sites.store.isDown = true
      expect(yield* at(wellKnown)).toMatchObject({
        reason: "unreadable_keys",
        detail: "The keys could not be read. Try again.",
      })
      expect(sites.asked).toEqual([])
    }),
  )
})
