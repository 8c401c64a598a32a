/**
 * Envelope encryption. Each Org has a data key, sealed by the master key; every secret of the Org is sealed under its
 * data key, so deleting the key destroys them all. AES-256-GCM; the place of a value (table, column, row, Org) is its
 * associated data, so a sealed value that is moved elsewhere does not open. Where the row alone does not say what the
 * value means, the place names the rest too.
 *
 * A sealed value is: form (1 byte; 1: its place is table, column, row and Org; 2: and the names beside them), length of the key id and the key id (empty under a data key), nonce (12),
 * ciphertext and tag (16).
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
import { Context, Effect, Layer, Redacted, Schema } from "effect"

/** The value was altered, belongs elsewhere, or its key is not among ours. */
export class CannotOpen extends Schema.TaggedError<CannotOpen>()("CannotOpen", { message: Schema.String }) {}

/** Where a sealed value lives. */
export interface Place {
  readonly table: string
  readonly column: string
  readonly row: string
  readonly org: string
  /** What else gives the value its meaning. Values of the first form did not name it, and go on opening. */
  readonly names?: ReadonlyArray<string>
}

/** An Org's data key, open. It prints as nothing. */
export type DataKey = Redacted.Redacted<KeyObject>

/** The first key seals, every key opens, so that a master key can be replaced (`SVC_MASTER_KEY`). */
export type MasterKeys = ReadonlyArray<{ readonly id: string; readonly key: KeyObject }>

/** One base64 key of 32 bytes (its id is `0`), or `id:key,id:key`. */
export const parseMasterKeys = (text: string): Effect.Effect<MasterKeys, CannotOpen> => {
  const refuse = (message: string) => Effect.fail(new CannotOpen({ message }))
  return Effect.forEach(text.split(","), (entry) => {
    const separator = entry.indexOf(":")
    const id = separator < 0 ? "0" : entry.slice(0, separator).trim()
    const key = entry.slice(separator + 1).trim()
    if (!/^[\w-]{1,64}$/.test(id)) return refuse("A master key's id is letters, digits, hyphens and underscores.")
    // Node would skip what is not base64 and take what is left for another key.
    if (!/^[\w+/-]{43}=?$/.test(key)) return refuse("A master key is 32 bytes in base64.")
    return Effect.succeed({ id, key: createSecretKey(Buffer.from(key, "base64")) })
  }).pipe(
    // What the second key of one id has sealed would never open.
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
    throw new Error("not a sealed value")
  }
  const at = 2 + sealed[1]!
  const key = keyOf(Buffer.from(sealed.subarray(2, at)).toString())
  if (key === undefined) throw new Error("its key is not among ours")
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
    catch: () => new CannotOpen({ message: `A sealed value of ${place.table}.${place.column} does not open.` }),
  })

const macLength = 16
const mac = (key: KeyObject, purpose: string, text: string): Buffer =>
  createHmac("sha256", key)
    .update(JSON.stringify(["stamp", purpose, text]))
    .digest()
    .subarray(0, macLength)

/** Stamps that were made last: a list that is looked at again and again ends in the same cursor. */
const madeAtMost = 1000
const madeOfAtMost = 300

const dataKeyPlace = (org: string): Place => ({ table: "org", column: "data_key", row: org, org })
const servicePlace = (name: string): Place => ({ table: "service_key", column: "sealed", row: name, org: "" })
/**
 * Open data keys are kept for a minute or two, and go when one is opened after that; by what they were opened from: to
 * open one costs as much as to seal a value under it. One that was sealed anew, or whose Org is gone, is asked for by no
 * such bytes again.
 */
const openedMillis = 60_000
const openedAtMost = 1000

const makeOpened = () => {
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
    /** A new data key for an Org, and its sealed form to store. */
    readonly makeDataKey: (org: string) => Effect.Effect<{ readonly dataKey: DataKey; readonly sealed: Uint8Array }>
    readonly openDataKey: (org: string, sealed: Uint8Array) => Effect.Effect<DataKey, CannotOpen>
    readonly seal: (key: DataKey, place: Place, plaintext: Uint8Array) => Effect.Effect<Uint8Array>
    readonly open: (key: DataKey, place: Place, sealed: Uint8Array) => Effect.Effect<Uint8Array, CannotOpen>
    /** Ids of the master keys, the one that seals first. */
    readonly masterKeyIds: ReadonlyArray<string>
    /** An Org's data key, sealed by the master key that seals now. */
    readonly resealDataKey: (org: string, sealed: Uint8Array) => Effect.Effect<Uint8Array, CannotOpen>
    /** A sealed constant; a master key that does not open the stored one belongs to another database. */
    readonly sealCanary: Effect.Effect<Uint8Array>
    readonly openCanary: (sealed: Uint8Array) => Effect.Effect<void, CannotOpen>
    /** What belongs to the service itself, sealed by the master key. */
    readonly sealForService: (name: string, plaintext: Uint8Array) => Effect.Effect<Uint8Array>
    readonly openForService: (name: string, sealed: Uint8Array) => Effect.Effect<Uint8Array, CannotOpen>
    /** For each master key, by its id, a key for one purpose that only its holders can derive. */
    readonly derived: (purpose: string) => ReadonlyMap<string, Uint8Array>
    /** A text that only we could have made, for tokens that we hand out and get back (cursors); not secret. */
    readonly stamp: (purpose: string, text: string) => string
    /** The text of a stamp of this purpose; undefined for anything else. */
    readonly unstamp: (purpose: string, stamped: string) => string | undefined
  }
>()("@svc/cluster/sealing/Sealing") {
  static readonly layer = (masterKeys: MasterKeys): Layer.Layer<Sealing> => {
    const master = masterKeys[0]!
    const masterKey = (id: string) => masterKeys.find((key) => key.id === id)?.key
    const opened = makeOpened()
    const made = new Map<string, string>()
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
        const known = made.get(name)
        if (known !== undefined) return known
        const stamped = Buffer.concat([mac(master.key, purpose, text), Buffer.from(text)]).toString("base64url")
        if (made.size >= madeAtMost) made.clear()
        if (name.length <= madeOfAtMost) made.set(name, stamped)
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
