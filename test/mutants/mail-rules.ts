/** Planted bugs in the rules of mail: who may get it, where it goes, and which conversation it joins. */
import type { Mutants } from "./Mutant.ts"

export const mailRules: Mutants = {
  "unverified-owner-is-allowed": {
    file: "cluster/src/mail/sending/SendingPolicy.ts",
    from: "and owner.email = given.address and owner.email_verified_at is not null",
    to: "and owner.email = given.address",
    bug: "mail goes to the account's address although nobody has proved that it belongs to the account holder",
    tests: ["sending/owner-address"],
  },
  "hourly-limit-rounded-down": {
    file: "cluster/src/mail/sending/SendingPolicy.ts",
    from: "Math.ceil((oldest.getTime() + Timing.mailHourMillis",
    to: "Math.floor((oldest.getTime() + Timing.mailHourMillis",
    bug: "Retry-After of the hourly limit ends up to a second too early, so the retry is rejected",
    tests: ["sending/judgement"],
  },
  "forged-mail-joins-by-subject": {
    file: "cluster/src/mail/Threading.ts",
    from: 'mail.origin !== undefined && mail.origin.verdict !== "failed" ? sender',
    to: "mail.origin !== undefined ? sender",
    bug: "a forged message joins a conversation by its subject alone",
    tests: ["mail/threads"],
  },
  "oldest-message-decides-the-thread": {
    file: "cluster/src/mail/Threading.ts",
    from: "order by earlier.uid desc limit 1",
    to: "order by earlier.uid limit 1",
    bug: "a message that refers to two conversations joins the older one",
    tests: ["mail/threads"],
  },
  "oldest-reference-decides-the-thread": {
    file: "cluster/src/mail/Threading.ts",
    from: "known.reference = message_id desc, known.noted_at desc limit 1",
    to: "known.reference = message_id desc, known.noted_at limit 1",
    bug: "a message that shares references with two conversations joins the older one",
    tests: ["mail/threads"],
  },
  "null-mx-among-others": {
    file: "mail-gateway/src/mail/sending/Exchangers.ts",
    from: "records.every(({ exchange })",
    to: "records.some(({ exchange })",
    bug: "mail to a domain with a stray null MX beside its servers bounces",
    tests: ["mail/sending/direct"],
  },
  "release-takes-leased-mail": {
    file: "cluster/src/mail/sending/outbox/OutboxQueue.ts",
    from: "where held is not null and next_attempt_at",
    to: "where next_attempt_at",
    bug: "a process that starts makes mail due that another one is sending, and it is sent twice",
    tests: ["sending/left-behind"],
  },
  "lease-keeps-held": {
    file: "cluster/src/mail/sending/outbox/Outbox.ts",
    from: "attempt_started_at = due.now, held = null,",
    to: "attempt_started_at = due.now,",
    bug: "mail that was held once counts as held during its attempt, and a process that starts makes it due again",
    tests: ["sending/left-behind"],
  },
}
