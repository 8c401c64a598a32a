/** Planted bugs in `packages/mail-gateway`: IMAP. */
import type { Mutants } from "./Mutant.ts"

export const mailGatewayImap: Mutants = {
  "modified-as-uids": {
    file: "mail-gateway/src/mail/imap/session/Storing.ts",
    from: "const left = uid ? modified : selected.view.numbersOf(modified)",
    to: "const left = modified",
    bug: "STORE (UNCHANGEDSINCE) answers MODIFIED with UIDs in place of sequence numbers",
    tests: [
      "mail/imap/condstore",
      "mail/imap/session",
      "mail/imap/conversation",
      "mail/imap/marks",
      "mail/imap/python",
      "mail/imap/views",
    ],
  },
  "changedsince-ignores-placement": {
    file: "mail-gateway/src/mail/imap/store/FolderReads.ts",
    from: "${since === undefined ? sql`` : sql`and greatest(m.modseq, p.modseq) > ${since}::bigint`}`",
    to: "${since === undefined ? sql`` : sql`and m.modseq > ${since}::bigint`}`",
    bug: "FETCH (CHANGEDSINCE) misses what changed in the folder only (copied, \\Deleted): MODSEQ of the placement ignored",
    tests: [
      "mail/imap/condstore",
      "mail/imap/session",
      "mail/imap/conversation",
      "mail/imap/marks",
      "mail/imap/python",
      "mail/imap/folders",
    ],
  },
  "logins-never-slowed": {
    file: "mail-gateway/src/mail/imap/server/Logins.ts",
    from: "now - known.since <= Timing.loginWindowMillis ? known : undefined",
    to: "now - known.since >= Timing.loginWindowMillis ? known : undefined",
    bug: "failed IMAP/submission logins are never slowed down (swapped comparison)",
    tests: [
      "mail/imap/logins",
      "mail/imap/conversation",
      "mail/imap/session",
      "mail/submission/submission",
      "mail/imap/programs",
    ],
  },
  "imap-ignores-networks": {
    file: "mail-gateway/src/mail/imap/server/Logins.ts",
    from: "if (!allows(caller.scopes, scope) || judgeNetwork(caller, from) !== undefined) return yield* refused",
    to: "if (!allows(caller.scopes, scope)) return yield* refused",
    bug: "a key bound to networks opens IMAP and submission from everywhere",
    tests: ["mail/imap/conversation", "mail/submission/submission", "mail/imap/session", "access/doors", "api/scopes"],
  },
  "imap-tries-unlimited": {
    file: "mail-gateway/src/mail/Imap.ts",
    from: "++tries >= triesInSession",
    to: "++tries >= triesInSession * 1000",
    bug: "one IMAP connection may try passwords without end",
    tests: ["mail/imap/conversation", "mail/imap/session", "mail/imap/logins"],
  },
  "imap-idle-never-ends": {
    file: "mail-gateway/src/mail/Imap.ts",
    from: 'else if (now - one.heardAt > Timing.imapIdleMillis) one.end("You were silent for too long.")',
    to: "",
    bug: "silent IMAP sessions are never closed",
    tests: ["mail/imap/conversation", "mail/imap/turns", "mail/imap/cut-short"],
  },
  "imap-login-deadline": {
    file: "mail-gateway/src/mail/Imap.ts",
    from: 'if (!one.session.isLoggedIn() && now > one.loginBy) one.end("You did not log in.")\n      else ',
    to: "",
    bug: "IMAP connections that never log in stay open",
    tests: ["mail/imap/conversation", "mail/imap/turns", "mail/imap/cut-short"],
  },
  "imap-per-client-off-by-one": {
    file: "mail-gateway/src/mail/imap/server/Guests.ts",
    from: "if (count >= most) return false",
    to: "if (count > most) return false",
    bug: "one session more than allowed per Mailbox",
    tests: ["mail/imap/conversation"],
  },
  "imap-guest-leak": {
    file: "mail-gateway/src/mail/imap/server/Guests.ts",
    from: "if (count > 0) counts.set(name, count)\n    else counts.delete(name)",
    to: "",
    bug: "sessions that ended count for ever",
    tests: ["mail/imap/conversation"],
  },
}
