import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { send } from "../../harness/Mail.ts"
import { startService, type TestService } from "../../harness/Service.ts"

let service: TestService
let session: string
beforeAll(async () => {
  service = await startService()
  session = (await signUp(service.base)).session
})
afterAll(() => service.stop())

describe("x", () => {
  it("works", async () => {
    const { secrets, handle } = await makeIdentity(service.base, session)
    console.log(secrets.imap)
    for (let n = 0; n < 3; n++)
      await send(service.smtpPort, {
        from: "g@example.org",
        to: `${handle}@mail.localhost`,
        subject: `s${n} Grüße`,
        text: `hello ${n}`,
        attachments: n === 1 ? [{ filename: "a.txt", content: "AAAA" }] : [],
      })
    const c = await ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
    for (const cmd of [
      "CAPABILITY",
      'LIST "" *',
      'LIST "" % RETURN (STATUS (MESSAGES UIDNEXT UNSEEN SIZE HIGHESTMODSEQ) SPECIAL-USE SUBSCRIBED)',
      'LSUB "" *',
      "SELECT INBOX",
      "FETCH 1:* (UID FLAGS RFC822.SIZE INTERNALDATE ENVELOPE BODYSTRUCTURE EMAILID THREADID PREVIEW)",
      "FETCH 2 (BODY.PEEK[1.1] BODY.PEEK[2] BODY.PEEK[HEADER.FIELDS (SUBJECT FROM)] BODY.PEEK[]<0.20>)",
      "FETCH 1 BODY[TEXT]",
      "STORE 1:2 +FLAGS (\\Deleted $Forwarded)",
      "UID STORE 3 FLAGS.SILENT (\\Flagged)",
      "SEARCH FLAGGED",
      "SEARCH BODY hello SUBJECT s1",
      "SEARCH RETURN (MIN MAX COUNT ALL) OR FROM g@ TEXT zzz",
      "UID SEARCH SENTSINCE 1-Jan-2020",
      "SORT (REVERSE SUBJECT) UTF-8 ALL",
      "THREAD REFERENCES UTF-8 ALL",
      "CREATE a/b/c",
      "COPY 1:2 a/b/c",
      "UID COPY 3 nowhere",
      "MOVE 3 a/b",
      "EXPUNGE",
      "NOOP",
      "STATUS a/b/c (MESSAGES UIDNEXT)",
      "RENAME a x",
      'LIST "" *',
      "SELECT x/b/c",
      "FETCH 1:* (FLAGS UID)",
      "DELETE x/b/c",
      "GETQUOTAROOT INBOX",
      "ENABLE QRESYNC IMAP4rev2",
      "SELECT INBOX (QRESYNC (1 1))",
      "NAMESPACE",
      "BOGUS",
      "FETCH 99 FLAGS",
    ]) {
      const r = await c.say(cmd)
      console.log(`> ${cmd}\n${[...r.untagged, r.tagged].join("\n")}`)
    }
    console.log(await c.append("INBOX", "Subject: hi\n\nbody\n", "\\Seen foo"))
    console.log(await c.say("FETCH 1:* (FLAGS ENVELOPE BODY)"))
    expect(1).toBe(1)
  }, 60000)
})
