/**
 * The keys that sign identity tokens: one RSA key (RS256) and one P-256 key (ES256), created by their first use. They
 * rotate in generations (`sealing/KeyGenerations.ts`): a key is published a day before it signs, and stays published
 * until its last token has expired.
 */
import { generateKeyPair, type KeyObject } from "node:crypto"
import { promisify } from "node:util"
import { Addresses } from "@svc/domain/Addresses"
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import * as KeyGenerations from "../sealing/KeyGenerations.ts"
import { Timing } from "../Timing.ts"
import { jose } from "./Libraries.ts"

export type IssuerAlgorithm = "RS256" | "ES256"
export type IssuerKey = KeyGenerations.GenerationKey<IssuerAlgorithm>

/** A key of a published set (RFC 7517). */
export type Jwk = Readonly<Record<string, unknown>>

const algorithm = (
  alg: IssuerAlgorithm,
  generate: () => Promise<{ readonly privateKey: KeyObject; readonly publicKey: KeyObject }>,
) => ({
  generate,
  publish: async (publicKey: KeyObject) => {
    const { calculateJwkThumbprint, exportJWK } = await jose()
    const jwk = await exportJWK(publicKey)
    const kid = await calculateJwkThumbprint(jwk)
    return { selector: kid, key: JSON.stringify({ ...jwk, kid, alg, use: "sig" }) }
  },
})

const make = Effect.fnUntraced(function* (baseUrl: string) {
  const keys = yield* KeyGenerations.make<IssuerAlgorithm>({
    table: "issuer_key",
    sealedAs: "issuer",
    algorithms: {
      RS256: algorithm("RS256", () => promisify(generateKeyPair)("rsa", { modulusLength: 2048 })),
      ES256: algorithm("ES256", () => promisify(generateKeyPair)("ec", { namedCurve: "P-256" })),
    },
    waitMillis: Timing.issuerWaitMillis,
    overlapMillis: Timing.issuerOverlapMillis,
    reloadMillis: Timing.issuerReloadMillis,
  })
  // Requests of strangers create the first keys; an RSA key costs up to a second of CPU.
  const creating = yield* Semaphore.make(1)
  const ensured = creating.withPermits(1)(keys.ensure(baseUrl))
  let shown: { readonly keys: ReadonlyArray<Jwk>; readonly until: number } | undefined

  /** Returns the keys, and creates the first ones. */
  const list = Effect.gen(function* () {
    const found = yield* keys.list(baseUrl)
    if (found.length > 0) return found
    yield* ensured
    return yield* keys.list(baseUrl)
  })

  return {
    list,

    /** Creates the next generation, unless one is waiting, and returns all keys. */
    rotate: Effect.suspend(() => keys.rotate(baseUrl)),

    /** Returns the published keys. A generation that is new to this process signs a day later at the earliest. */
    published: Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (shown !== undefined && shown.until > now) return shown.keys
      const found = yield* list
      const jwks = found.filter(({ state }) => state !== "past").map(({ public_key }) => JSON.parse(public_key) as Jwk)
      shown = { keys: jwks, until: now + Timing.issuerReloadMillis }
      return jwks
    }),

    /** Returns the key that signs with this algorithm now, and its id. */
    signing: Effect.fnUntraced(function* (alg: IssuerAlgorithm) {
      let found = yield* keys.signing(baseUrl)
      if (found.length === 0) {
        yield* ensured
        found = yield* keys.signing(baseUrl)
      }
      const { selector, key } = found.find(({ algorithm }) => algorithm === alg)!
      return { kid: selector, key }
    }),
  }
})

export class IssuerKeys extends Context.Service<IssuerKeys, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/proof/IssuerKeys",
) {
  /** The keys of the service with this base address. */
  static readonly layerOf = (baseUrl: string) => Layer.effect(IssuerKeys, make(baseUrl))
  static readonly layer = Layer.unwrap(Effect.map(Addresses, ({ baseUrl }) => IssuerKeys.layerOf(baseUrl)))
}
