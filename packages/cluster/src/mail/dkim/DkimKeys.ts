/**
 * DKIM keys of a domain (RFC 6376): one RSA-2048 and one Ed25519 key, created at the first start. They rotate in
 * generations (`sealing/KeyGenerations.ts`): a generation starts to sign when its records were seen in DNS, or after a
 * waiting time, and stays published until all mail signed with it has been delivered or has expired.
 */
import { generateKeyPair, type KeyObject } from "node:crypto"
import { promisify } from "node:util"
import { Context, Effect, Layer } from "effect"
import * as KeyGenerations from "../../sealing/KeyGenerations.ts"
import { Timing } from "../../Timing.ts"

type Algorithm = "rsa-sha256" | "ed25519-sha256"

interface SigningKey {
  readonly domain: string
  readonly selector: string
  readonly algorithm: Algorithm
  readonly key: KeyObject
}

export interface ListedKey extends Pick<
  KeyGenerations.GenerationKey<Algorithm>,
  "selector" | "generation" | "algorithm" | "state" | "at"
> {
  /** Name and content of the TXT record that publishes the key (section 3.6.1). */
  readonly name: string
  readonly record: string
}

const kinds = { "rsa-sha256": "rsa", "ed25519-sha256": "ed25519" } as const

const algorithm = (
  kind: "rsa" | "ed25519",
  generate: () => Promise<{ privateKey: KeyObject; publicKey: KeyObject }>,
) => ({
  generate,
  publish: (publicKey: KeyObject, generation: number) => {
    const spki = publicKey.export({ type: "spki", format: "der" })
    // RFC 8463 section 4.2: only the 32 key bytes of an Ed25519 key are published.
    const published = kind === "rsa" ? spki : spki.subarray(-32)
    return Promise.resolve({ selector: `svc${generation}-${kind}`, key: published.toString("base64") })
  },
})

const make = Effect.gen(function* () {
  const keys = yield* KeyGenerations.make<Algorithm>({
    table: "dkim_key",
    sealedAs: "dkim",
    algorithms: {
      "rsa-sha256": algorithm("rsa", () => promisify(generateKeyPair)("rsa", { modulusLength: 2048 })),
      "ed25519-sha256": algorithm("ed25519", () => promisify(generateKeyPair)("ed25519")),
    },
    waitMillis: Timing.dkimWaitMillis,
    overlapMillis: Timing.dkimOverlapMillis,
    reloadMillis: Timing.dkimReloadMillis,
  })

  const listed =
    (domain: string) =>
    (found: ReadonlyArray<KeyGenerations.GenerationKey<Algorithm>>): ReadonlyArray<ListedKey> =>
      found.map(({ selector, generation, algorithm, public_key, state, at }) => ({
        selector,
        generation,
        algorithm,
        name: `${selector}._domainkey.${domain}`,
        record: `v=DKIM1; k=${kinds[algorithm]}; p=${public_key}`,
        state,
        at,
      }))

  return {
    ...keys,
    /** Returns all keys of the domain, oldest first. */
    list: (domain: string) => Effect.map(keys.list(domain), listed(domain)),
    /** Creates the next generation, unless one is waiting, and returns all keys. */
    rotate: (domain: string) => Effect.map(keys.rotate(domain), listed(domain)),
    /** Returns the keys that sign now, one per algorithm. */
    signing: (domain: string) =>
      Effect.map(keys.signing(domain), (found) => found.map((key): SigningKey => ({ domain, ...key }))),
  }
})

export class DkimKeys extends Context.Service<DkimKeys, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/dkim/DkimKeys",
) {
  static readonly layer = Layer.effect(DkimKeys, make)
}
