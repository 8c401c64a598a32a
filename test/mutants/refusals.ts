/** Planted bugs in limits, refusals and recoveries that only a rare request reaches. */
import type { Mutants } from "./Mutant.ts"

export const refusals: Mutants = {
  "sign-in-form-counted-twice": {
    file: "api/src/pages/SignInPage.ts",
    from: `      const form = yield* HttpServerRequest.schemaBodyUrlParams(SignIn)
`,
    to: `      const form = yield* HttpServerRequest.schemaBodyUrlParams(SignIn)
      yield* limited(limits, "magic_link")
`,
    bug: "a person who signs in with the form reaches the limit after half of its links",
    tests: ["pages/refusals"],
  },
  "device-key-without-record": {
    file: "api/src/pages/DevicePage.ts",
    from: 'if (decision === "approve") yield* audit.secret(act("secret"))',
    to: 'if (decision === "approve") yield* Effect.ignore(audit.secret(act("secret")))',
    bug: "the page of a device login creates a key that the audit log does not contain",
    tests: ["pages/refusals"],
  },
  "directories-unlimited-per-reader": {
    file: "cluster/src/proof/AgentKeys.ts",
    from: " || mine >= reads.perReader",
    to: "",
    bug: "the requests of one Tunnel occupy all reads of directories, so that other Tunnels know no caller",
    tests: ["proof/foreign-keys"],
  },
  "busy-directory-cached": {
    file: "cluster/src/proof/AgentKeys.ts",
    from: "if (!failure.isBusy)",
    to: "if (true)",
    bug: "an Identity's callers are refused for ten seconds after the database was unavailable for a moment",
    tests: ["proof/foreign-keys"],
  },
  "reader-place-kept": {
    file: "cluster/src/proof/AgentKeys.ts",
    from: "if (left > 0) readers.set(reader, left)",
    to: "if (left >= 0) readers.set(reader, left + 1)",
    bug: "after eight directories, a reader can read no others any more",
    tests: ["proof/foreign-keys"],
  },
  "card-anywhere-at-interface": {
    file: "cluster/src/proof/Verifications.ts",
    from: ' && url.pathname.startsWith("/.well-known/")',
    to: "",
    bug: "a page of an agent's site that visitors fill passes as the agent's card",
    tests: ["proof/foreign-proofs"],
  },
  "issuer-of-another-document": {
    file: "cluster/src/proof/Verifications.ts",
    from: 'if (json["issuer"] !== issuer)',
    to: "if (false)",
    bug: "the discovery document of one issuer vouches for tokens of another",
    tests: ["proof/foreign-proofs"],
  },
  "card-signatures-unlimited": {
    file: "cluster/src/proof/Verifications.ts",
    from: ".slice(0, 5)) {",
    to: ") {",
    bug: "one card makes the service read hundreds of addresses",
    tests: ["proof/foreign-proofs"],
  },
  "permanent-document-failure-repeated": {
    file: "cluster/src/proof/ForeignDocuments.ts",
    from: "answer.status >= 500 || answer.status === 429",
    to: "true",
    bug: "a DID document that does not exist is read again for each message that names it",
    tests: ["proof/foreign-keys"],
  },
  "approval-of-unlisted-recipient": {
    file: "cluster/src/mail/sending/Approvals.ts",
    from: "  yield* judgeRecipients(write, waiting.subject, recipients, judged?.refused ?? [])\n",
    to: "",
    bug: "a message is sent to a recipient that was removed from the list while the message waited",
    tests: ["sending/approval"],
  },
  "expired-approval-forgotten": {
    file: "cluster/src/mail/sending/Approvals.ts",
    from: "where status = 'awaiting_approval' and lapses_at <= ${late}",
    to: "where status = 'awaiting_approval' and lapses_at > ${late}",
    bug: "after a restart, messages that nobody decided on wait forever",
    tests: ["sending/decisions"],
  },
  "full-mailbox-still-sends": {
    file: "cluster/src/mail/sending/SendHandlers.ts",
    from: "Number(verdict.bytes_used) + mail.size > limits.mailboxBytes",
    to: "Number(verdict.bytes_used) > limits.mailboxBytes",
    bug: "copies of sent messages exceed the size of the Mailbox",
    tests: ["sending/decisions"],
  },
  "refused-submission-accepted": {
    file: "cluster/src/mail/sending/SendHandlers.ts",
    from: 'if (before.status === "refused")',
    to: 'if (before.status === "declined")',
    bug: "a mail program shows a message as sent that a person refused",
    tests: ["sending/decisions"],
  },
  "agent-claim-forgotten": {
    file: "cluster/src/mail/AgentClaims.ts",
    from: "where next_attempt_at <= ${late}",
    to: "where next_attempt_at < ${late} - interval '1 day'",
    bug: "a claim whose process has ended is not decided",
    tests: ["mail/agents"],
  },
  "held-last-attempt-closed": {
    file: "cluster/src/mail/sending/outbox/OutboxRecords.ts",
    from: 'const isOpen = outcomes.some(({ state }) => state === "held") || settled',
    to: "const isOpen = settled",
    bug: "mail that a stop held back during its last attempt is never sent",
    tests: ["sending/attempts"],
  },
}
