/** A checked outbound message, as {@link OutboundBatch} stores it. */
import type { ComposedMail, Recipient } from "@svc/domain/mail/SendingProtocol"
import type { Write } from "../../actor/Write.ts"

/** An outbox row: the message for the recipients of one domain. */
export interface OutboxRow {
  readonly id: string
  readonly domain: string
  readonly addresses: ReadonlyArray<Recipient["address"]>
}

/** A message that is sent or waits for approval. */
export interface OutboundMessage {
  readonly write: Write
  readonly mail: ComposedMail
  /** The first recipient. */
  readonly recipient: string
  readonly rows: ReadonlyArray<OutboxRow>
  /** The message that this one replies to. */
  readonly answers: string | null
  /** The version of the draft with the same id, which is deleted; null if there was no draft. */
  readonly draftVersion: number | null
  readonly submissionKey: Uint8Array | undefined
  /** Whether a person must approve the message. */
  readonly waits: boolean
  /** Set if this message is the one in an hour that brings the Identity near its limit. */
  readonly near: { readonly used: number; readonly quota: number } | null
}
