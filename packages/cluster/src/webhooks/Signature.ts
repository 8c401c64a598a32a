/** Signing as Standard Webhooks has it (decisions.md "Events"): HMAC-SHA256 over `id.timestamp.body`. */
import { createHmac, randomBytes } from "node:crypto"
import { apiVersion } from "@svc/domain/Version"

const prefix = "whsec_"

/** A new signing secret: `whsec_` and base64 of 32 random bytes. */
export const newSecret = (): string => prefix + randomBytes(32).toString("base64")

interface Signed {
  /** The Event's `evt_` id, which receivers deduplicate on. */
  readonly id: string
  readonly at: Date
  readonly body: string
  /** Every secret that is valid now; receivers accept any one signature. */
  readonly secrets: ReadonlyArray<string>
}

/** Who calls, for the receiver's log and its filters. */
export const userAgent = `svc-webhooks/${apiVersion}`

export const signedHeaders = (message: Signed): Record<string, string> => {
  const timestamp = String(Math.floor(message.at.getTime() / 1000))
  const signatures = message.secrets.map((secret) => {
    const key = Buffer.from(secret.slice(prefix.length), "base64")
    return `v1,${createHmac("sha256", key).update(`${message.id}.${timestamp}.${message.body}`).digest("base64")}`
  })
  return {
    "webhook-id": message.id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
    "user-agent": userAgent,
  }
}
