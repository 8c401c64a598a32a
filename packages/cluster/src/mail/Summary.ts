/**
 * Builds the summary that is stored with a message for lists. Lists return it unchanged (`MessageRows`), so it contains
 * only members that callers may see.
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
