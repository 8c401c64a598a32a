/**
 * The initiator of a change: credential and request. Messages to actors carry it as a header, which is optional so that
 * two versions can run together, and the change is stored with it.
 */
import type { CredentialKind } from "./Account.ts"

export interface Initiator {
  /** `system` means a workflow, a timer or incoming mail. */
  readonly kind: CredentialKind | "system"
  /** Id of the session, the key or the grant. */
  readonly credentialId: string | null
  /** `req_…`; null if no request caused the change. */
  readonly requestId: string | null
  /** Whether the key may approve outgoing mail; its own mail then needs no approval. A session always may. */
  readonly approves?: boolean
}

export const system: Initiator = { kind: "system", credentialId: null, requestId: null }

/** Name of the header that carries the initiator. */
export const initiatorHeader = "svc-by"

const kinds: ReadonlySet<string> = new Set<Initiator["kind"]>([
  "session",
  "admin_key",
  "identity_key",
  "grant",
  "system",
])

/**
 * Name of the header that identifies the command. Duplicates of a message and retries of a request have the same value.
 */
export const commandHeader = "svc-command"

/** Name of the header that carries the audit note of a change whose write also stores the audit record. */
export const noteHeader = "svc-note"

/** Encodes as `admin_key 0199d3c0-… req_01kj…`, with `-` for an unknown part. */
export const encodeBy = (by: Initiator): string =>
  `${by.kind} ${by.credentialId ?? "-"} ${by.requestId ?? "-"}${by.approves === true ? " approves" : ""}`

/** Decodes the header. A missing or unknown form, as another version may send it, becomes `system`. */
export const decodeBy = (header: string | undefined): Initiator => {
  if (header === undefined) return system
  const [kind, credentialId, requestId, approves] = header.split(" ")
  if (kind === undefined || !kinds.has(kind)) return system
  const known = (part: string | undefined) => (part === undefined || part === "-" ? null : part)
  return {
    kind: kind as Initiator["kind"],
    credentialId: known(credentialId),
    requestId: known(requestId),
    ...(approves === "approves" ? { approves: true } : {}),
  }
}
