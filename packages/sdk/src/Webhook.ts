/** Verification of webhook deliveries (https://www.standardwebhooks.com). */
import type { Event } from "./generated.ts"
import { InvalidSignature } from "./Errors.ts"

export interface Delivery {
  readonly headers: Headers | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** The body exactly as it arrived, before it was parsed. */
  readonly body: string | Uint8Array
}

const decode = (base64: string) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))

const keyOf = (secret: string) => {
  const bytes = decode(secret.replace(/^whsec_/, ""))
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"])
}

/** Returns the headers of a delivery, for tests of your receiver. */
export const signWebhook = async (
  body: string,
  secret: string,
  { id = `evt_${crypto.randomUUID()}`, at = new Date() }: { readonly id?: string; readonly at?: Date } = {},
): Promise<Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>> => {
  const seconds = String(Math.floor(at.getTime() / 1000))
  const signed = new TextEncoder().encode(`${id}.${seconds}.${body}`)
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", await keyOf(secret), signed))
  return {
    "webhook-id": id,
    "webhook-timestamp": seconds,
    "webhook-signature": `v1,${btoa(String.fromCharCode(...signature))}`,
  }
}

/**
 * Returns the Event of a delivery if one of its signatures was made with one of the secrets (`whsec_…`; several during a
 * rotation). Throws {@link InvalidSignature} otherwise, and if the delivery is older or newer than `toleranceSeconds` (five minutes).
 *
 * `webhook-id` is the id of the Event, and a delivery may arrive twice: store the id and ignore repeats.
 */
export const verifyWebhook = async (
  delivery: Request | Delivery,
  secret: string | ReadonlyArray<string>,
  { toleranceSeconds = 300 }: { readonly toleranceSeconds?: number } = {},
): Promise<Event> => {
  const given = delivery.headers
  const header = (name: string): string => {
    const value = given instanceof Headers ? given.get(name) : (given as Record<string, unknown>)[name]
    if (typeof value !== "string") throw new InvalidSignature(`The request has no header ${name}`)
    return value
  }
  const raw = delivery instanceof Request ? new Uint8Array(await delivery.arrayBuffer()) : delivery.body
  const body = typeof raw === "string" ? raw : new TextDecoder().decode(raw)
  const [id, at] = [header("webhook-id"), header("webhook-timestamp")]
  if (!(Math.abs(Date.now() / 1000 - Number(at)) <= toleranceSeconds)) {
    throw new InvalidSignature(
      `The delivery is older than ${toleranceSeconds} seconds, or the clock of this machine is wrong`,
    )
  }
  const signed = new TextEncoder().encode(`${id}.${at}.${body}`)
  const signatures = header("webhook-signature")
    .split(" ")
    .filter((one) => one.startsWith("v1,"))
  for (const one of typeof secret === "string" ? [secret] : secret) {
    const key = await keyOf(one)
    for (const signature of signatures) {
      // `verify` compares in constant time.
      if (await crypto.subtle.verify("HMAC", key, decodeOr(signature.slice(3)), signed))
        return JSON.parse(body) as Event
    }
  }
  throw new InvalidSignature("No signature matches: the secret is wrong, or the body was changed or parsed before")
}

const decodeOr = (base64: string): Uint8Array<ArrayBuffer> => {
  try {
    return decode(base64)
  } catch {
    return new Uint8Array()
  }
}
