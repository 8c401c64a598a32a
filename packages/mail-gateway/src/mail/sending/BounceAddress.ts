/**
 * Where bounces of what we send come back to: `bounce+<token>@<mail domain>` (variable envelope return path). The token is
 * the row of the outbox, which names the message, the Identity and the recipients, under a stamp that only we can make. It
 * is 45 characters of lower case, as some servers write local parts.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { EnvelopeSender } from "@svc/cluster/mail/sending/EnvelopeSender"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect, Layer } from "effect"

const prefix = "bounce+"
const purpose = "bounce"
const idBytes = 16
const stampBytes = 12

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

/** RFC 4648 section 6, in lower case and without padding. */
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

/** The local part for a row of the outbox. */
export const localPart = (sealing: Sealing["Service"], outboxId: string): string => written(keyOf(sealing), outboxId)

const written = (key: Uint8Array, outboxId: string): string => {
  const id = Buffer.from(outboxId.replaceAll("-", ""), "hex")
  return `${prefix}${base32(Buffer.concat([id, stamp(key, id)]))}`
}

/** Whether a local part is written as one of ours; only those that {@link read} finds to be are ever accepted. */
export const isWritten = (local: string): boolean => /^bounce\+[a-z2-7]{45}$/i.test(local)

/** The row that a local part stands for; undefined for any that we did not make. */
export const read = (sealing: Sealing["Service"], local: string): string | undefined => {
  if (!isWritten(local)) return undefined
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
      return { of: ({ outboxId }) => `${written(key, outboxId)}@${settings.mailDomain}` }
    }),
  )
