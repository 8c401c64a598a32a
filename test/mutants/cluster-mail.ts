/** Planted bugs in `packages/cluster/src/mail`. */
import type { Mutants } from "./Mutant.ts"

export const clusterMail: Mutants = {
  "policy-suppresses": {
    file: "cluster/src/mail/sending/AddressRejection.ts",
    from: "if (status !== undefined) return addressStatuses.has(status)",
    to: 'if (status !== undefined && status.startsWith("5.1.")) return true',
    bug: "a refused sender (5.1.0, 5.1.8) suppresses a good recipient",
    tests: ["sending/address-rejection"],
  },
  "append-over-quota": {
    file: "cluster/src/mail/folders/FolderContents.ts",
    from: "where identity_id = ${identity.id}::uuid and bytes_used + ${mail.size}::bigint <= ${quotaBytes}::bigint",
    to: "where identity_id = ${identity.id}::uuid and ${mail.size}::bigint <= ${quotaBytes}::bigint",
    bug: "IMAP APPEND checks only the message's own size against the Mailbox quota, not what is used",
    tests: ["mail/imap/folders", "mail/imap/session", "mail/imap/python", "mail/imap/conversation", "mail/mailbox"],
  },
  "raw-of-any-org": {
    file: "cluster/src/mail/MessageQueries.ts",
    from: "where m.id = ${uuid} and m.identity_id = ${identityId} and not m.is_draft`\n      if (found === undefined)",
    to: "where m.id = ${uuid} and not m.is_draft`\n      if (found === undefined)",
    bug: "GET …/messages/{id}/raw answers the mail of any Identity of any Org",
    tests: ["mail/reading", "mail/large", "api/scopes", "mail/pages", "identity/neighbours"],
  },
  "lost-lease-goes-on": {
    file: "cluster/src/mail/sending/OutboxQueue.ts",
    from: "for (const row of lost) underWay.get(row)?.interruptUnsafe()",
    to: "if (lost.length > 0) yield* Effect.logWarning(`${lost.length} leases of outgoing mail are another's`)",
    bug: "an attempt whose lease went to another process goes on sending (only logged)",
    tests: ["sending/outbox", "sending/attempts", "sending/departures", "sending/round", "mail/sending/round"],
  },
  "forged-sender-allowed": {
    file: "cluster/src/mail/Arrivals.ts",
    from: 'if (mail.origin.verdict !== "verified" || mail.from === null || mail.envelope_from === "") return null',
    to: 'if (mail.from === null || mail.envelope_from === "") return null',
    bug: "forged mail makes its From an Allowed Recipient (verdict not asked)",
    tests: ["mail/arrivals", "mail/mailbox", "mail/acceptance", "api/mail-settings", "sending/judgement"],
  },
  "search-finds-draft-pictures": {
    file: "cluster/src/mail/MessageSearch.ts",
    from: "where m.identity_id = ${identityId} and not m.is_draft and m.uid = any(${uids}::int[])",
    to: "where m.identity_id = ${identityId} and m.uid = any(${uids}::int[])",
    bug: "search over segments finds pictures of drafts",
    tests: ["mail/search", "mail/segments", "mail/imap/drafts", "sending/drafts", "mail/search-migration"],
  },
}
