/**
 * The service's own keys, which all processes share, sealed with the master key: the signing key of the OAuth client
 * (ES256), the key that authenticates audit records, and the keys that authenticate the audit log's seals.
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
 * How long records without a proof are accepted if a log already exists, because processes of a former version may
 * still be running during an update. Later records without a proof are reported as unproven.
 */
const besideMillis = 24 * 60 * 60 * 1000

/**
 * How long chains of a version without MACs may be closed by a bridge. The deadline is stored in the same sealed value as
 * the key of records, so that someone with only the database cannot restart the period without losing that key.
 */
const bridgingMillis = 7 * 24 * 60 * 60 * 1000
/** Length of the stored key of records with the time of its first use, as former versions wrote it. */
const formerBytes = ofRecordsBytes + 8

/** Keys that authenticate seals of the audit log. Each is derived from a master key, and stored so that it outlives it. */
export interface SealKeys {
  /** The id of the key for new seals. */
  readonly current: string
  readonly byId: ReadonlyMap<string, KeyObject>
  /** Deadline (milliseconds since 1970) for closing a chain whose end has no MAC by a bridge. */
  readonly bridgingUntil: number
}

/** Derives the keys of seals from the master keys, the one for new seals first. */
export const sealKeysOf = (sealing: Sealing["Service"]): ReadonlyMap<string, KeyObject> =>
  new Map(
    Array.from(sealing.derived(ofSealsName), ([masterId, bytes]) => [
      // A later master key may have the id of a former one.
      `${masterId}.${createHash("sha256").update(bytes).digest("hex").slice(0, 8)}`,
      createSecretKey(bytes),
    ]),
  )

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const sealing = yield* Sealing

  /** Returns the stored key of a name. The first process stores it. */
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

  /** Returns the deadline for bridges. The first process stores it. */
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

  /** Returns the keys derived from this process's master keys, and the stored ones of former master keys. */
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
      // A damaged key is skipped: its seals then count as forged, and the service can still start.
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
    /** The key for `audit/Proof`, and the time from which a record without a proof counts as forged (milliseconds). */
    ofRecords: once(loadOfRecords),
    /** The keys of seals for `audit/Chain`. */
    ofSeals: once(loadOfSeals),
    /** The public part of the signing key, for client metadata (RFC 7517). */
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
