/**
 * The keys of Identities: an Ed25519 pair whose private key is sealed under the Org's data key, created by its first use,
 * and public keys that agents registered. One pair signs at a time; a rotated key loses its private part in the
 * statement of the rotation, and stays published for copies of what it signed.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto"
import type { PublicJwk, SigningKey } from "@svc/domain/proof/SigningKey"
import { BoundedMap } from "@svc/domain/BoundedMap"
import { isStorable } from "@svc/domain/Text"
import { Clock, Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import { type DataKey, type Place, Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads, type Sql, Writes } from "../store/Database.ts"
import { jose } from "./Libraries.ts"

export const place = (org: string, identity: string, kid: string): Place => ({
  table: "signing_key",
  column: "sealed",
  row: `${identity}/${kid}`,
  org,
})

interface KeyOwner {
  readonly id: string
  readonly orgId: string
}

/** A private key that signs. */
export interface PrivateKey {
  readonly kid: string
  readonly key: KeyObject
}

/** Maximum number of private keys that stay open in memory: those that were opened last. */
const openAtMost = 1_000

/** A new pair, ready to store. */
interface NewPair extends PrivateKey {
  readonly jwk: PublicJwk
  readonly sealed: Uint8Array
}

/** Generates a pair and seals its private key. */
export const generate = Effect.fnUntraced(function* (sealing: Sealing["Service"], owner: KeyOwner, dataKey: DataKey) {
  const { calculateJwkThumbprint, exportJWK } = yield* Effect.promise(jose)
  const { privateKey, publicKey } = generateKeyPairSync("ed25519")
  const { kty, crv, x } = yield* Effect.promise(() => exportJWK(publicKey))
  const kid = yield* Effect.promise(() => calculateJwkThumbprint({ kty: kty!, crv: crv!, x: x! }))
  const der = privateKey.export({ type: "pkcs8", format: "der" })
  const sealed = yield* sealing.seal(dataKey, place(owner.orgId, owner.id, kid), der)
  const pair: NewPair = {
    kid,
    key: privateKey,
    jwk: { kty: kty!, crv: crv!, x: x!, kid, alg: "EdDSA", use: "sig" },
    sealed,
  }
  return pair
})

/** Returns the INSERT of a pair for each row of `gate`, which has at most one. */
export const insertPair = (
  sql: Sql,
  identity: string,
  { kid, jwk, sealed }: NewPair,
  at: Date,
  gate: Statement.Fragment,
): Statement.Fragment => sql`
  insert into signing_key (identity_id, kid, origin, jwk, sealed, created_at)
  select ${identity}::uuid, ${kid}::text, 'service', ${JSON.stringify(jwk)}::jsonb, ${sealed}::bytea, ${at}::timestamptz
  from ${gate}
  on conflict do nothing`

/** Opens a stored private key. */
export const opened = (
  sealing: Sealing["Service"],
  owner: KeyOwner,
  dataKey: DataKey,
  kid: string,
  sealed: Uint8Array,
) =>
  Effect.map(Effect.orDie(sealing.open(dataKey, place(owner.orgId, owner.id, kid), sealed)), (der): PrivateKey => {
    return { kid, key: createPrivateKey({ key: Buffer.from(der), type: "pkcs8", format: "der" }) }
  })

/**
 * Returns the SQL condition that a key `k` is published: not rotated too long ago, and the API key that registered it is
 * still valid.
 */
export const published = (sql: Sql, now: Date): Statement.Fragment => sql`
  (k.published_until is null or k.published_until > ${now}::timestamptz)
  and (k.registered_by is null or exists (
    select from api_key a where a.id = k.registered_by and a.revoked_at is null
      and (a.expires_at is null or a.expires_at > ${now}::timestamptz)))`

/** The published keys of an Identity, as its public documents contain them. */
export interface PublishedKeys {
  readonly handle: string
  readonly keys: ReadonlyArray<SigningKey>
}

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const sealing = yield* Sealing

  const columns = reads`k.kid, k.origin, k.name, k.jwk, k.created_at, k.retired_at, k.published_until`
  const list = Effect.fnUntraced(function* (id: string) {
    const now = new Date(yield* Clock.currentTimeMillis)
    return yield* reads<SigningKey>`
      select ${columns} from signing_key k where k.identity_id = ${id} and ${published(reads, now)}
      order by k.created_at, k.kid`
  }, orUnavailable)

  /** Creates the pair of a ready Identity that has none. */
  const create = Effect.fnUntraced(function* (owner: KeyOwner) {
    const [org] = yield* writes<{ data_key: Uint8Array }>`select data_key from org where id = ${owner.orgId}`
    if (org === undefined) return
    const dataKey = yield* Effect.orDie(sealing.openDataKey(owner.orgId, org.data_key))
    const pair = yield* generate(sealing, owner, dataKey)
    const at = new Date(yield* Clock.currentTimeMillis)
    yield* writes`
      with owner as (
        select i.id from identity i join org o on o.id = i.org_id
        where i.id = ${owner.id} and i.status = 'ready' and o.status = 'active' for share of i, o
      )
      ${insertPair(writes, owner.id, pair, at, writes`owner`)}`
  }, orUnavailable)

  const hasPair = (keys: ReadonlyArray<SigningKey>) =>
    keys.some(({ origin, retired_at }) => origin === "service" && retired_at === null)

  /** Returns the published keys, and creates the pair if there is none. */
  const ensured = Effect.fnUntraced(function* (owner: KeyOwner) {
    const keys = yield* list(owner.id)
    if (hasPair(keys)) return keys
    yield* create(owner)
    return yield* list(owner.id)
  })

  const open = new BoundedMap<string, PrivateKey>(openAtMost)
  const signing = Effect.fn("SigningKeys.signing")(function* (owner: KeyOwner) {
    const read = reads<{ kid: string; sealed: Uint8Array; data_key: Uint8Array }>`
        select k.kid, k.sealed, o.data_key from signing_key k join identity i on i.id = k.identity_id
        join org o on o.id = i.org_id
        where k.identity_id = ${owner.id} and i.org_id = ${owner.orgId} and i.status = 'ready'
          and k.origin = 'service' and k.retired_at is null`
    let [row] = yield* read
    if (row === undefined) {
      yield* create(owner)
      ;[row] = yield* read
    }
    open.delete(owner.id)
    if (row === undefined) return undefined
    const dataKey = yield* Effect.orDie(sealing.openDataKey(owner.orgId, row.data_key))
    const key = yield* opened(sealing, owner, dataKey, row.kid, row.sealed)
    open.set(owner.id, key)
    return key
  }, orUnavailable)

  return {
    /** Returns the published keys of an Identity, oldest first. */
    list,

    /** Returns the published keys of an Identity, oldest first, and creates its pair if it has none. */
    ensured,

    /** Returns the published keys of an Identity that is ready, or undefined. */
    published: Effect.fn("SigningKeys.published")(function* (canonical: string) {
      if (!isStorable(canonical)) return undefined
      const [row] = yield* orUnavailable(reads<{ id: string; handle: string; org_id: string }>`
        select id, handle, org_id from identity where canonical = ${canonical} and status = 'ready'`)
      if (row === undefined) return undefined
      const found: PublishedKeys = { handle: row.handle, keys: yield* ensured({ id: row.id, orgId: row.org_id }) }
      return found
    }),

    /** Returns the key that signs for an Identity now; undefined if the Identity is not ready. */
    signing,

    /**
     * Returns the key that this process opened last for the Identity, if it is still in memory: reading and opening a key costs
     * three times its signature. The key may have been rotated, and the Identity may have ended.
     */
    lastOpened: (owner: KeyOwner) =>
      Effect.suspend(() => {
        const kept = open.get(owner.id)
        return kept === undefined ? signing(owner) : Effect.succeed(kept)
      }),
  }
})

export class SigningKeys extends Context.Service<SigningKeys, Effect.Success<typeof make>>()(
  "@svc/cluster/proof/SigningKeys",
) {
  static readonly layer = Layer.effect(SigningKeys, make)
}
