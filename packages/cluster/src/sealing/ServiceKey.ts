/**
 * The service's own keys, sealed by the master key and shared by every process: the one that it signs with as an OAuth client
 * (ES256), the one that proves records of the audit log, and those that authenticate the log's seals.
 */
import {
  createHash,
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
const ofSealsName = "audit-seal"

/**
 * Where there is a log already, processes of the former version may go on writing to it beside us, and prove nothing. Who
 * takes longer to replace them finds their records called unproven.
 */
const besideMillis = 24 * 60 * 60 * 1000

/**
 * How long chains of a version without MACs may still be closed by a bridge. The time is written once, into the same value as
 * the key of records: whoever has only the database cannot begin it anew without losing that key.
 */
const bridgingMillis = 7 * 24 * 60 * 60 * 1000
/** Bytes of the key of records with the time of its first use, as former versions wrote it. */
const formerBytes = ofRecordsBytes + 8

/** Keys that authenticate seals of the audit log. Each is derived from a master key and outlives it, sealed by its successor. */
export interface SealKeys {
  /** The id of the key for new seals. */
  readonly current: string
  readonly byId: ReadonlyMap<string, KeyObject>
  /** Milliseconds. Until then, a chain whose end has no MAC may be closed by a bridge. */
  readonly bridgingUntil: number
}

/** The keys of seals that the master keys at hand give, the one for new seals first. */
export const sealKeysOf = (sealing: Sealing["Service"]): ReadonlyMap<string, KeyObject> =>
  new Map(
    Array.from(sealing.derived(ofSealsName), ([masterId, bytes]) => [
      // A later master key may have the same id as one that is gone.
      `${masterId}.${createHash("sha256").update(bytes).digest("hex").slice(0, 8)}`,
      createSecretKey(bytes),
    ]),
  )

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
    const fresh = Buffer.alloc(formerBytes, randomBytes(ofRecordsBytes))
    fresh.writeBigUInt64BE(BigInt(since), ofRecordsBytes)
    const bytes = yield* shared(ofRecordsName, fresh)
    return {
      key: createSecretKey(bytes.subarray(0, ofRecordsBytes)),
      since: Number(bytes.readBigUInt64BE(ofRecordsBytes)),
    }
  })

  /** Returns until when chains may be bridged. The first process that asks decides it, for all. */
  const bridgingUntil = Effect.gen(function* () {
    yield* loadOfRecords
    while (true) {
      const [row] = yield* sql<{ sealed: Uint8Array }>`select sealed from service_key where name = ${ofRecordsName}`
      const bytes = Buffer.from(yield* Effect.orDie(sealing.openForService(ofRecordsName, row!.sealed)))
      if (bytes.length > formerBytes) return Number(bytes.readBigUInt64BE(formerBytes))
      const [found] = yield* sql<{ begun: boolean }>`select exists (select from audit_seal) as begun`
      const until = found?.begun === true ? (yield* Clock.currentTimeMillis) + bridgingMillis : 0
      const longer = Buffer.concat([bytes, Buffer.alloc(8)])
      longer.writeBigUInt64BE(BigInt(until), formerBytes)
      yield* sql`update service_key set sealed = ${yield* sealing.sealForService(ofRecordsName, longer)}
        where name = ${ofRecordsName} and sealed = ${row!.sealed}`
    }
  })

  /** The keys of the master keys that this process has, and those that former master keys left behind. */
  const loadOfSeals = Effect.gen(function* () {
    const byId = new Map(sealKeysOf(sealing))
    for (const [id, key] of byId) {
      const sealed = yield* sealing.sealForService(`${ofSealsName}/${id}`, key.export())
      yield* sql`insert into service_key (name, sealed) values (${`${ofSealsName}/${id}`}, ${sealed})
        on conflict (name) do nothing`
    }
    const [current] = byId.keys()
    const rows = yield* sql<{ name: string; sealed: Uint8Array }>`
      select name, sealed from service_key where starts_with(name, ${`${ofSealsName}/`})`
    for (const { name, sealed } of rows) {
      const id = name.slice(ofSealsName.length + 1)
      if (byId.has(id)) continue
      // Without its key a seal counts as forged, so a key that somebody damaged is no reason to stop.
      yield* Effect.ignore(
        Effect.map(sealing.openForService(name, sealed), (bytes) => byId.set(id, createSecretKey(bytes))),
      )
    }
    const keys: SealKeys = { current: current!, byId, bridgingUntil: yield* bridgingUntil }
    return keys
  }).pipe(orUnavailable)

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
    /** For `audit/Chain`: the keys of seals. */
    ofSeals: once(loadOfSeals),
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
