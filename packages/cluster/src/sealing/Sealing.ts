/**
 * Envelope encryption with AES-256-GCM. The master key seals one data key per Org, and the data key seals the Org's
 * secrets, so that deleting it destroys them all. The place of a value (table, column, row, Org) is its associated data, so
 * that a sealed value cannot be moved. A place also includes names if the row alone does not define the meaning of the
 * value.
 *
 * Format of a sealed value: the form (1 byte; 1: the place has no names, 2: it has names), the length of the key id and
 * the key id (empty for a data key), the nonce (12 bytes), the ciphertext and the tag (16 bytes).
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto"
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Context, Effect, Layer, Redacted, Schema } from "effect"

/** The value was altered, belongs to another place, or its key is missing. */
export class CannotOpen extends Schema.TaggedError<CannotOpen>()("CannotOpen", { message: Schema.String }) {}

/** The place of a sealed value in the store. */
export interface Place {
  readonly table: string
  readonly column: string
  readonly row: string
  readonly org: string
  /** Further names that the value is bound to. Values of the first form, which has none, can still be opened. */
  readonly names?: ReadonlyArray<string>
}

/** An Org's data key in plaintext. Its printed form is redacted. */
export type DataKey = Redacted.Redacted<KeyObject>

/** The master keys (`SVC_MASTER_KEY`). The first one seals; all of them open, so that a key can be replaced. */
export type MasterKeys = ReadonlyArray<{ readonly id: string; readonly key: KeyObject }>

/** Parses one base64 key of 32 bytes (its id is `0`), or `id:key,id:key`. */
export const parseMasterKeys = (text: string): Effect.Effect<MasterKeys, CannotOpen> => {
  const refuse = (message: string) => Effect.fail(new CannotOpen({ message }))
  return Effect.forEach(text.split(","), (entry) => {
    const separator = entry.indexOf(":")
    const id = separator < 0 ? "0" : entry.slice(0, separator).trim()
    const key = entry.slice(separator + 1).trim()
    if (!/^[\w-]{1,64}$/.test(id)) {
      return refuse("The id of a master key may contain letters, digits, hyphens and underscores.")
    }
    // Node would skip invalid characters and use the rest as another key.
    if (!/^[\w+/-]{43}=?$/.test(key)) return refuse("A master key must be 32 bytes in base64.")
    return Effect.succeed({ id, key: createSecretKey(Buffer.from(key, "base64")) })
  }).pipe(
    // Values that a second key with the same id sealed could never be opened.
    Effect.filterOrElse(
      (keys) => new Set(keys.map(({ id }) => id)).size === keys.length,
      () => refuse("Two master keys have the same id."),
    ),
  )
}

/** The form of a value that names only table, column, row and Org. */
export const firstForm = 1
const namedForm = 2

const formAt = (place: Place) => (place.names === undefined ? firstForm : namedForm)
const associated = ({ table, column, row, org, names }: Place, form: number) =>
  Buffer.from(JSON.stringify([table, column, row, org, ...(form === firstForm ? [] : (names ?? []))]))

const sealWith = (key: KeyObject, keyId: string, place: Place, plaintext: Uint8Array): Uint8Array => {
  const nonce = randomBytes(12)
  const form = formAt(place)
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(associated(place, form))
  const body = cipher.update(plaintext)
  cipher.final()
  const id = Buffer.from(keyId)
  return new Uint8Array(Buffer.concat([Uint8Array.of(form, id.length), id, nonce, body, cipher.getAuthTag()]))
}

const openWith = (keyOf: (id: string) => KeyObject | undefined, place: Place, sealed: Uint8Array): Uint8Array => {
  const form = sealed[0]
  if ((form !== firstForm && form !== formAt(place)) || sealed.length < 2 + sealed[1]! + 28) {
    throw new Error("The value is not sealed.")
  }
  const at = 2 + sealed[1]!
  const key = keyOf(Buffer.from(sealed.subarray(2, at)).toString())
  if (key === undefined) throw new Error("The key is missing.")
  const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(at, at + 12))
    .setAAD(associated(place, form))
    .setAuthTag(sealed.subarray(-16))
  const plaintext = decipher.update(sealed.subarray(at + 12, -16))
  decipher.final()
  return new Uint8Array(plaintext)
}

const opening = <A = Uint8Array>(place: Place, open: () => A): Effect.Effect<A, CannotOpen> =>
  Effect.try({
    try: open,
    catch: () => new CannotOpen({ message: `A sealed value of ${place.table}.${place.column} cannot be opened.` }),
  })

const macLength = 16
const mac = (key: KeyObject, purpose: string, text: string): Buffer =>
  createHmac("sha256", key)
    .update(JSON.stringify(["stamp", purpose, text]))
    .digest()
    .subarray(0, macLength)

/** Limits of the cache of stamps: a list that is read repeatedly ends in the same cursor. */
const cachedStamps = 1000
const cachedStampLength = 300

const dataKeyPlace = (org: string): Place => ({ table: "org", column: "data_key", row: org, org })
const servicePlace = (name: string): Place => ({ table: "service_key", column: "sealed", row: name, org: "" })
/**
 * Opened data keys are cached for one to two minutes, since opening a key costs as much as sealing a value. The cache key
 * includes the sealed bytes, so that a key that was sealed again or deleted is no longer used.
 */
const openedMillis = 60_000
const openedAtMost = 1000

const makeDataKeyCache = () => {
  let young = new Map<string, DataKey>()
  let old = young
  let since = 0
  return (org: string, sealed: Uint8Array, open: () => DataKey): DataKey => {
    const now = performance.now()
    if (now - since > openedMillis || young.size >= openedAtMost) {
      old = now - since > 2 * openedMillis ? new Map() : young
      young = new Map()
      since = now
    }
    const name = `${org} ${Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength).toString("latin1")}`
    const known = young.get(name) ?? old.get(name) ?? open()
    young.set(name, known)
    return known
  }
}

const canaryPlace: Place = { table: "sealing_canary", column: "sealed", row: "1", org: "" }
const canaryText = new TextEncoder().encode("the master key fits this database")

export class Sealing extends Context.Service<
  Sealing,
  {
    /** Creates a data key for an Org. Returns it with its sealed form to store. */
    readonly makeDataKey: (org: string) => Effect.Effect<{ readonly dataKey: DataKey; readonly sealed: Uint8Array }>
    readonly openDataKey: (org: string, sealed: Uint8Array) => Effect.Effect<DataKey, CannotOpen>
    readonly seal: (key: DataKey, place: Place, plaintext: Uint8Array) => Effect.Effect<Uint8Array>
    readonly open: (key: DataKey, place: Place, sealed: Uint8Array) => Effect.Effect<Uint8Array, CannotOpen>
    /** Ids of the master keys. The first one seals. */
    readonly masterKeyIds: ReadonlyArray<string>
    /** Returns an Org's data key, sealed with the first master key. */
    readonly resealDataKey: (org: string, sealed: Uint8Array) => Effect.Effect<Uint8Array, CannotOpen>
    /** Seals a constant. A master key that cannot open the stored constant belongs to another database. */
    readonly sealCanary: Effect.Effect<Uint8Array>
    readonly openCanary: (sealed: Uint8Array) => Effect.Effect<void, CannotOpen>
    /** Seals a value of the service itself with the master key. */
    readonly sealForService: (name: string, plaintext: Uint8Array) => Effect.Effect<Uint8Array>
    readonly openForService: (name: string, sealed: Uint8Array) => Effect.Effect<Uint8Array, CannotOpen>
    /** Derives a key for one purpose from each master key. Returns them by the ids of the master keys. */
    readonly derived: (purpose: string) => ReadonlyMap<string, Uint8Array>
    /** Authenticates a text that callers return later, such as a cursor. The text is not encrypted. */
    readonly stamp: (purpose: string, text: string) => string
    /** Returns the text of a stamp for this purpose, or undefined if the stamp is invalid. */
    readonly unstamp: (purpose: string, stamped: string) => string | undefined
  }
>()("@svc/cluster/sealing/Sealing") {
  static readonly layer = (masterKeys: MasterKeys): Layer.Layer<Sealing> => {
    const master = masterKeys[0]!
    const masterKey = (id: string) => masterKeys.find((key) => key.id === id)?.key
    const opened = makeDataKeyCache()
    const stamps = new BoundedMap<string, string>(cachedStamps)
    return Layer.succeed(Sealing, {
      makeDataKey: (org) =>
        Effect.sync(() => {
          const bytes = randomBytes(32)
          return {
            dataKey: Redacted.make(createSecretKey(bytes)),
            sealed: sealWith(master.key, master.id, dataKeyPlace(org), bytes),
          }
        }),
      openDataKey: (org, sealed) => {
        const place = dataKeyPlace(org)
        return opening(place, () =>
          opened(org, sealed, () => Redacted.make(createSecretKey(openWith(masterKey, place, sealed)))),
        )
      },
      masterKeyIds: masterKeys.map(({ id }) => id),
      resealDataKey: (org, sealed) => {
        const place = dataKeyPlace(org)
        return Effect.map(
          opening(place, () => openWith(masterKey, place, sealed)),
          (bytes) => sealWith(master.key, master.id, place, bytes),
        )
      },
      seal: (key, place, plaintext) => Effect.sync(() => sealWith(Redacted.value(key), "", place, plaintext)),
      open: (key, place, sealed) => opening(place, () => openWith(() => Redacted.value(key), place, sealed)),
      sealCanary: Effect.sync(() => sealWith(master.key, master.id, canaryPlace, canaryText)),
      openCanary: (sealed) => Effect.asVoid(opening(canaryPlace, () => openWith(masterKey, canaryPlace, sealed))),
      sealForService: (name, plaintext) =>
        Effect.sync(() => sealWith(master.key, master.id, servicePlace(name), plaintext)),
      openForService: (name, sealed) => {
        const place = servicePlace(name)
        return opening(place, () => openWith(masterKey, place, sealed))
      },
      derived: (purpose) =>
        new Map(
          masterKeys.map(({ id, key }) => [
            id,
            new Uint8Array(
              createHmac("sha256", key)
                .update(JSON.stringify(["derived", purpose]))
                .digest(),
            ),
          ]),
        ),
      stamp: (purpose, text) => {
        const name = `${purpose.length} ${purpose} ${text}`
        const known = stamps.get(name)
        if (known !== undefined) return known
        const stamped = Buffer.concat([mac(master.key, purpose, text), Buffer.from(text)]).toString("base64url")
        if (name.length <= cachedStampLength) stamps.set(name, stamped)
        return stamped
      },
      unstamp: (purpose, stamped) => {
        const bytes = Buffer.from(stamped, "base64url")
        if (bytes.length <= macLength || bytes.toString("base64url") !== stamped) return undefined
        const text = bytes.subarray(macLength).toString()
        return masterKeys.some(({ key }) => timingSafeEqual(mac(key, purpose, text), bytes.subarray(0, macLength)))
          ? text
          : undefined
      },
    })
  }
}
