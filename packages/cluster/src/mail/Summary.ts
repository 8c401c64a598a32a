/**
 * What the store keeps of a message beside its columns, for lists of messages. They show it as it stands, so it has members
 * that a caller may see and no others (`MessageRows`).
 */
import type { StoredSummary } from "@svc/domain/mail/Message"

export const summaryOf = (mail: Omit<StoredSummary, "origin">, origin: StoredSummary["origin"]): StoredSummary => ({
  from: mail.from,
  to: mail.to,
  cc: mail.cc,
  bcc: mail.bcc,
  reply_to: mail.reply_to,
  subject: mail.subject,
  snippet: mail.snippet,
  in_reply_to: mail.in_reply_to,
  references: mail.references,
  origin,
  attachments: mail.attachments,
})
