/** Planted bugs that stand for a class of tests: rows of every table, members of every request, tokens of a grammar. */
import type { Mutants } from "./Mutant.ts"

export const classes: Mutants = {
  "restored-mail-leaves-again": {
    file: "cluster/src/backup/RestoreAdjustments.ts",
    from: '  { what: "outgoing messages", table: "outbox", due: "next_attempt_at" },\n',
    to: "",
    bug: "mail that was queued at the backup is sent again by the restored service",
    tests: ["operations/backup-rows"],
  },
  "restored-sequences-repeat": {
    file: "cluster/src/backup/BackupLoader.ts",
    from: "${last + sequenceGap}::bigint",
    to: "${last + 1}::bigint",
    bug: "a restored service assigns numbers again that were assigned after the backup",
    tests: ["operations/backup-rows"],
  },
  "backup-without-snapshot": {
    file: "cluster/src/backup/BackupWriter.ts",
    from: "set transaction isolation level repeatable read, read only",
    to: "set transaction read only",
    bug: "the tables of a backup are of different moments",
    tests: ["operations/backup-rows"],
  },
  "restore-accepts-lost-rows": {
    file: "cluster/src/backup/BackupLoader.ts",
    from: "if (found!.n !== rows)",
    to: "if (found!.n > rows)",
    bug: "a restore that lost rows succeeds",
    tests: ["operations/backup-rows"],
  },
  "link-during-drain": {
    file: "tunnel-edge/src/edge/links/LinkAttachment.ts",
    from: '    if (self.isDraining) return yield* refuse("unavailable", "This edge is going down.")\n',
    to: "",
    bug: "an edge that is going down accepts the link of an agent",
    tests: ["tunnel/leases"],
  },
  "thread-id-of-message": {
    file: "mail-gateway/src/mail/imap/session/FetchCommand.ts",
    from: "return `THREADID (${message.threadId})`",
    to: "return `THREADID (${message.id})`",
    bug: "FETCH THREADID answers the id of the message",
    tests: ["mail/imap/grammar"],
  },
  "bracket-ends-astring": {
    file: "mail-gateway/src/mail/imap/protocol/Reader.ts",
    from: "const astringChars = /[!#$&'+,./0-9:;<=>?@A-Z[\\]^_`a-z|}~-]+/y",
    to: "const astringChars = /[!#$&'+,./0-9:;<=>?@A-Z[^_`a-z|}~-]+/y",
    bug: "a folder or a password with ] is refused over IMAP",
    tests: ["mail/imap/grammar"],
  },
  "empty-partial-fetch": {
    file: "mail-gateway/src/mail/imap/protocol/FetchItems.ts",
    from: '  if (count === 0) throw new Malformed("A partial fetch must be at least one byte")\n',
    to: "",
    bug: "FETCH BODY[]<0.0> is accepted",
    tests: ["mail/imap/grammar"],
  },
  "submission-port-of-imap": {
    file: "cli/src/serve/Serve.ts",
    from: "mailServer(settings, settings.submissionPort, settings.submissionsPort)",
    to: "mailServer(settings, settings.submissionPort, settings.imapsPort)",
    bug: "in Production, mail programs are told the IMAP port for sending",
    tests: ["operations/settings"],
  },
  "rejection-without-reason": {
    file: "api/src/mail/Sending.ts",
    from: "const command = { org_id: orgId, message_id, approve, reason, content_sha256 }",
    to: "const command = { org_id: orgId, message_id, approve, reason: null, content_sha256 }",
    bug: "the reason of a rejected message is lost",
    tests: ["api/members"],
  },
  "refusals-before-flush-lost": {
    file: "cluster/src/audit/Refusals.ts",
    from: "const before = present === undefined || present.more === 0 ? Effect.void : keep(present.act, present.more)",
    to: "const before = Effect.void",
    bug: "the number of refusals of a minute is lost if another refusal follows before the flush",
    tests: ["audit/refusals"],
  },
  "optional-part-fails-process": {
    file: "cluster/src/health/Health.ts",
    from: 'const weight = status === "fail" && !essential ? "warn" : status',
    to: "const weight = status",
    bug: "a process gets no requests while a part fails that it does not need",
    tests: ["operations/health"],
  },
}
