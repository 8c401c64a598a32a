/**
 * The service's own keys, each made once, sealed by the master key, and shared by every process: the one that it signs with
 * as an OAuth client (ES256), and the one that proves records of the audit log.
 */
import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from "node:crypto"
import { Clock, Context, Effect, Layer } from "effect"
import type { Unavailable } from "@svc/domain/problems/Problem"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Sealing } from "./Sealing.ts"

const name = "connectors"
const ofRecordsName = "audit"
const ofRecordsBytes = 32

/**
 * Where there is a log already, processes of the former version may go on writing to it beside us, and prove nothing. Who
 * takes longer to replace them finds their records called unproven.
 */
const besideMillis = 24 * 60 * 60 * 1000

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const sealing = yield* Sealing

  /** The bytes of a name, as the first process made them. */
  const shared = Effect.fnUntraced(function* (name: string, fresh: Uint8Array) {
    const sealed = yield* sealing.sealForService(name, fresh)
    yield* sql`insert into service_key (name, sealed) values (${name}, ${sealed}) on conflict (name) do nothing`
    const [row] = yield* sql<{ sealed: Uint8Array }>`select sealed from service_key where name = ${name}`
    return Buffer.from(yield* Effect.orDie(sealing.openForService(name, row!.sealed)))
  }, orUnavailable)

  const load = Effect.gen(function* () {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const bytes = yield* shared(name, privateKey.export({ type: "pkcs8", format: "der" }))
    return createPrivateKey({ key: bytes, type: "pkcs8", format: "der" })
  })

  const loadOfRecords = Effect.gen(function* () {
    const [found] = yield* orUnavailable(sql<{ begun: boolean }>`select exists (select from audit) as begun`)
    const since = found?.begun === true ? (yield* Clock.currentTimeMillis) + besideMillis : 0
    const fresh = Buffer.alloc(ofRecordsBytes + 8, randomBytes(ofRecordsBytes))
    fresh.writeBigUInt64BE(BigInt(since), ofRecordsBytes)
    const bytes = yield* shared(ofRecordsName, fresh)
    return {
      key: createSecretKey(bytes.subarray(0, ofRecordsBytes)),
      since: Number(bytes.readBigUInt64BE(ofRecordsBytes)),
    }
  })

  const once = <A, E>(load: Effect.Effect<A, E>): Effect.Effect<A, E> => {
    let known: { readonly value: A } | undefined
    return Effect.suspend(() =>
      known === undefined
        ? Effect.tap(load, (value) => Effect.sync(() => (known = { value })))
        : Effect.succeed(known.value),
    )
  }
  const key: Effect.Effect<KeyObject, Unavailable> = once(load)

  return {
    key,
    /** For `audit/Proof`: the key, and the milliseconds from which a record without a proof is none of ours. */
    ofRecords: once(loadOfRecords),
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
