/** The service's own signing key as an OAuth client (ES256): made once, sealed by the master key, shared by every process. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Sealing } from "./Sealing.ts"

const name = "connectors"

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const sealing = yield* Sealing

  const load = Effect.gen(function* () {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const fresh = yield* sealing.sealForService(name, privateKey.export({ type: "pkcs8", format: "der" }))
    yield* sql`insert into service_key (name, sealed) values (${name}, ${fresh}) on conflict (name) do nothing`
    const [row] = yield* sql<{ sealed: Uint8Array }>`select sealed from service_key where name = ${name}`
    const bytes = yield* Effect.orDie(sealing.openForService(name, row!.sealed))
    return createPrivateKey({ key: Buffer.from(bytes), type: "pkcs8", format: "der" })
  }).pipe(orUnavailable)

  let known: KeyObject | undefined
  const key = Effect.suspend(() =>
    known === undefined ? Effect.tap(load, (loaded) => Effect.sync(() => (known = loaded))) : Effect.succeed(known),
  )

  return {
    key,
    /** The public part, as client metadata shows it (RFC 7517). */
    publicJwk: Effect.map(key, (privateKey) => ({
      ...createPublicKey(privateKey).export({ format: "jwk" }),
      kid: name,
      use: "sig",
      alg: "ES256",
    })),
  }
})

export class ServiceKey extends Context.Service<ServiceKey, Effect.Success<typeof make>>()(
  "@svc/cluster/sealing/ServiceKey",
) {
  static readonly layer = Layer.effect(ServiceKey, make)
}
