/** A message that its Identity's actor judged fit to go out, as it is stored together with those of others. */
import type { ComposedMail, Recipient } from "@svc/domain/mail/SendingProtocol"
import type { Write } from "../../actor/Write.ts"

/** A row of the outbox: the message for the recipients of one domain. */
export interface OutboxRow {
  readonly id: string
  readonly domain: string
  readonly addresses: ReadonlyArray<Recipient["address"]>
}

/** A message that goes out, or waits for a person. */
export interface OutboundMessage {
  readonly write: Write
  readonly mail: ComposedMail
  /** The first of those it is for. */
  readonly recipient: string
  readonly rows: ReadonlyArray<OutboxRow>
  /** The message it answers. */
  readonly answers: string | null
  /** It was this version of the draft of its id, which goes; null for what was no draft. */
  readonly draftVersion: number | null
  readonly submissionKey: Uint8Array | undefined
  /** A person has to approve it. */
  readonly waits: boolean
  /** It is the one of the hour with which the limit is near. */
  readonly near: { readonly used: number; readonly quota: number } | null
}
