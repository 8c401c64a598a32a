/**
 * Bounce addresses: `bounce+<token>@<mail domain>` (variable envelope return path). The token contains the id of the
 * outbox row, which identifies the message, the Identity and the recipients, and a MAC, so that addresses cannot be
 * forged. It has 45 lower-case characters, since some servers change the case of local parts.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { EnvelopeSender } from "@svc/cluster/mail/sending/MailTransport"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect, Layer } from "effect"

const prefix = "bounce+"
const purpose = "bounce"
const idBytes = 16
const stampBytes = 12

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

/** Encodes base32 (RFC 4648 section 6) in lower case and without padding. */
const base32 = (bytes: Uint8Array): string => {
  let held = 0
  let bits = 0
  let out = ""
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xfff
    for (bits += 8; bits >= 5; bits -= 5) out += alphabet[(held >> (bits - 5)) & 31]
  }
  return bits > 0 ? out + alphabet[(held << (5 - bits)) & 31] : out
}

const unbase32 = (text: string): Buffer => {
  const out: Array<number> = []
  let held = 0
  let bits = 0
  for (const char of text) {
    held = ((held << 5) | alphabet.indexOf(char)) & 0xfff
    bits += 5
    if (bits >= 8) {
      bits -= 8
      out.push((held >> bits) & 0xff)
    }
  }
  return Buffer.from(out)
}

const stamp = (key: Uint8Array, id: Uint8Array): Buffer =>
  createHmac("sha256", key).update(id).digest().subarray(0, stampBytes)

const uuidOf = (bytes: Buffer): string =>
  bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")

const keyOf = (sealing: Sealing["Service"]) => sealing.derived(purpose).get(sealing.masterKeyIds[0]!)!

/** Returns the local part for an outbox row. */
export const localPart = (sealing: Sealing["Service"], outboxId: string): string =>
  localPartOf(keyOf(sealing), outboxId)

const localPartOf = (key: Uint8Array, outboxId: string): string => {
  const id = Buffer.from(outboxId.replaceAll("-", ""), "hex")
  return `${prefix}${base32(Buffer.concat([id, stamp(key, id)]))}`
}

/**
 * Returns whether a local part has the format of a bounce address. Only those that {@link read} verifies are accepted.
 */
export const hasFormat = (local: string): boolean => /^bounce\+[a-z2-7]{45}$/i.test(local)

/** Returns the outbox row of a local part, or undefined if it is not authentic. */
export const read = (sealing: Sealing["Service"], local: string): string | undefined => {
  if (!hasFormat(local)) return undefined
  const token = local.slice(prefix.length).toLowerCase()
  const bytes = unbase32(token)
  const id = bytes.subarray(0, idBytes)
  const given = bytes.subarray(idBytes)
  if (given.length !== stampBytes || base32(bytes) !== token) return undefined
  return [...sealing.derived(purpose).values()].some((key) => timingSafeEqual(stamp(key, id), given))
    ? uuidOf(id)
    : undefined
}

export const layer = (settings: { readonly mailDomain: string }) =>
  Layer.effect(
    EnvelopeSender,
    Effect.map(Sealing, (sealing) => {
      const key = keyOf(sealing)
      return { of: ({ outboxId }) => `${localPartOf(key, outboxId)}@${settings.mailDomain}` }
    }),
  )
