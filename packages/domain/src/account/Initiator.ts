/**
 * Who caused a change, and in which request: carried by every message to an actor as a header, so that it is optional on
 * the wire and two versions can be mixed, and kept with what the change wrote.
 */
import type { CredentialKind } from "./Account.ts"

export interface Initiator {
  /** `system`: nobody asked; a saga, a timer or mail from outside did it. */
  readonly kind: CredentialKind | "system"
  /** Id of the session, of the key or of the grant. */
  readonly credentialId: string | null
  /** `req_…`; null where no request led to it. */
  readonly requestId: string | null
  /** The key may approve outgoing mail, so what it sends needs no approval. A session always may. */
  readonly approves?: boolean
}

export const system: Initiator = { kind: "system", credentialId: null, requestId: null }

/** The header's name. */
export const initiatorHeader = "svc-by"

const kinds: ReadonlySet<string> = new Set<Initiator["kind"]>([
  "session",
  "admin_key",
  "identity_key",
  "grant",
  "system",
])

/** The header that names the command a message is; a message that comes twice, or a request made again, has the same. */
export const commandHeader = "svc-command"

/** The header that carries what the audit log is to say of the change, for writes that put it on record themselves. */
export const noteHeader = "svc-note"

/** `admin_key 0199d3c0-… req_01kj…`, with `-` for what is not known. */
export const encodeBy = (by: Initiator): string =>
  `${by.kind} ${by.credentialId ?? "-"} ${by.requestId ?? "-"}${by.approves === true ? " approves" : ""}`

/** What an older process did not say, or a newer one says otherwise, is the system's. */
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
