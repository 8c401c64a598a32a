/** Messages to a Mailbox's actor: passed by reference within a process, validated between processes. */
import { ReceivedMail, ReceiveMail } from "@svc/domain/mail/MailboxProtocol"
import { Exit, Schema } from "effect"
import { describe, expect, it } from "vitest"

const mail: ReceivedMail = {
  message_id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4b01",
  envelope_from: "ann@example.org",
  recipient: "box@mail.localhost",
  tag: null,
  sha256: new Uint8Array(32),
  size: 3,
  received_at: new Date(0),
  origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: null },
  from: null,
  to: [],
  cc: [],
  bcc: [],
  reply_to: [],
  subject: "",
  snippet: "",
  message_id_header: null,
  in_reply_to: null,
  references: [],
  attachments: [],
  content: null,
}

const payload = Schema.toCodecJson(ReceiveMail.payloadSchema)

describe("A message for an actor", () => {
  it("in the same process is passed by reference", () => {
    expect(ReceiveMail.payloadSchema.make(mail)).toBe(mail)
  })

  it("in another process is encoded and validated", () => {
    const written = Schema.encodeSync(payload)(mail)
    expect(written).toEqual(Schema.encodeSync(Schema.toCodecJson(ReceivedMail))(mail))
    expect(Schema.decodeUnknownSync(payload)(written)).toEqual(mail)
    const decoded = Schema.decodeUnknownExit(payload)({ ...(written as object), size: "three" })
    expect(Exit.isFailure(decoded)).toBe(true)
  })
})
