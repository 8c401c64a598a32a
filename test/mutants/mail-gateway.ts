/** Planted bugs in `packages/mail-gateway`. */
import type { Mutants } from "./Mutant.ts"

export const mailGateway: Mutants = {
  "not-ready-refused-for-good": {
    file: "mail-gateway/src/mail/Smtp.ts",
    from: 'failure._tag === "ReceptionUnavailable" || failure.reason === "not_yet")) {',
    to: 'failure._tag === "ReceptionUnavailable")) {',
    bug: "mail to a Mailbox that is not ready yet is refused for ever (550) in place of 451",
    tests: ["mail/acceptance", "mail/reception", "identity/readiness", "mail/takers", "mail/gateways"],
  },
  "largest-message-refused": {
    file: "mail-gateway/src/mail/smtp/Data.ts",
    from: 'if (size > maxBytes) flaw = "too_large"',
    to: 'if (size >= maxBytes) flaw = "too_large"',
    bug: "a message of exactly the largest size is refused (off by one)",
    tests: ["mail/data", "mail/chunking", "mail/large", "mail/acceptance"],
  },
  "dkim-without-reply-to": {
    file: "mail-gateway/src/mail/judging/Signatures.ts",
    from: '["from", "sender", "reply-to", "subject", "content-disposition"] as const',
    to: '["from", "sender", "subject", "content-disposition"] as const',
    bug: "a DKIM signature that leaves Reply-To uncovered still verifies (Reply-To can be written by anybody)",
    tests: ["mail/forgery", "mail/origin", "mail/judging", "mail/arc"],
  },
  "spf-aligned-by-suffix": {
    file: "mail-gateway/src/mail/Origin.ts",
    from: "const isSender = aligned(sender.domain, writer.domain)",
    to: "const isSender = sender.domain.toLowerCase().endsWith(writer.domain)",
    bug: "SPF alignment by endsWith: evilexample.com speaks for example.com",
    tests: ["mail/forgery", "mail/origin", "mail/judging"],
  },
  "modified-as-uids": {
    file: "mail-gateway/src/mail/imap/session/Storing.ts",
    from: "const left = uid ? modified : selected.view.numbersOf(modified)",
    to: "const left = modified",
    bug: "STORE (UNCHANGEDSINCE) answers MODIFIED with UIDs in place of sequence numbers",
    tests: ["mail/imap/session", "mail/imap/conversation", "mail/imap/marks", "mail/imap/python", "mail/imap/views"],
  },
  "changedsince-ignores-placement": {
    file: "mail-gateway/src/mail/imap/store/FolderReads.ts",
    from: "${since === undefined ? sql`` : sql`and greatest(m.modseq, p.modseq) > ${since}::bigint`}`",
    to: "${since === undefined ? sql`` : sql`and m.modseq > ${since}::bigint`}`",
    bug: "FETCH (CHANGEDSINCE) misses what changed in the folder only (copied, \\Deleted): MODSEQ of the placement ignored",
    tests: ["mail/imap/session", "mail/imap/conversation", "mail/imap/marks", "mail/imap/python", "mail/imap/folders"],
  },
  "logins-never-slowed": {
    file: "mail-gateway/src/mail/imap/server/Logins.ts",
    from: "now - known.since <= Timing.loginWindowMillis ? known : undefined",
    to: "now - known.since >= Timing.loginWindowMillis ? known : undefined",
    bug: "failed IMAP/submission logins are never slowed down (swapped comparison)",
    tests: ["mail/imap/conversation", "mail/imap/session", "mail/submission/submission", "mail/imap/programs"],
  },
  "imap-ignores-networks": {
    file: "mail-gateway/src/mail/imap/server/Logins.ts",
    from: "if (!allows(caller.scopes, scope) || judgeNetwork(caller, from) !== undefined) return yield* refused",
    to: "if (!allows(caller.scopes, scope)) return yield* refused",
    bug: "a key bound to networks opens IMAP and submission from everywhere",
    tests: ["mail/imap/conversation", "mail/submission/submission", "mail/imap/session", "access/doors", "api/scopes"],
  },
  "temporary-refusal-in-data-unknown": {
    file: "mail-gateway/src/mail/sending/smtp/Conversation.ts",
    from: "const isRefusal = last !== undefined && last.code >= 400",
    to: "const isRefusal = last !== undefined && last.code >= 500",
    bug: "a 4xx said in the middle of DATA counts as an unknown outcome, not as a temporary refusal",
    tests: ["mail/sending/direct", "mail/sending/relay", "mail/sending/round", "mail/sending/silence"],
  },
  "mta-sts-forgotten-early": {
    file: "mail-gateway/src/mail/sending/MtaSts.ts",
    from: "now + (policy.maxAge ?? 0) * 1_000",
    to: "now + (policy.maxAge ?? 0)",
    bug: "an MTA-STS policy is kept for max_age milliseconds, not seconds: a downgrade works at once",
    tests: ["mail/sending/direct", "mail/sending/round", "mail/sending/dane"],
  },
  "bounces-counted-together": {
    file: "mail-gateway/src/mail/sending/Bounces.ts",
    from: "`${outboxId} ${customerOf(client)}`",
    to: "outboxId",
    bug: "bounces are counted for all clients together: anybody uses up what the real server may report",
    tests: ["mail/sending/bounces", "mail/sending/bounce-address", "mail/operator"],
  },
  "full-mailbox-bounces": {
    file: "mail-gateway/src/mail/sending/Inside.ts",
    from: 'const full = later("4.2.2", "The Mailbox is full")',
    to: 'const full: Omit<Outcome, "recipient"> = { state: "refused", reply: reply(552, "5.2.2", "The Mailbox is full") }',
    bug: "mail between Identities bounces for good (552) where a Mailbox is full, in place of being tried again (452/4.2.2)",
    tests: ["sending/between", "sending/outbox", "sending/round", "mail/sending/round"],
  },
}
