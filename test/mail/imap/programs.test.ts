/** Mail clients: imapflow always; curl and mbsync if installed. */
import { execFile } from "node:child_process"
import { mkdtempSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { ImapFlow } from "imapflow"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { send } from "../../harness/Mail.ts"
import { eventually, sharedService, type TestService } from "../../harness/Service.ts"
import { has } from "../../harness/Programs.ts"

const run = promisify(execFile)

let service: TestService
let token: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
})

const makeMailbox = async (letters: number) => {
  const { secrets, handle } = await makeIdentity(service.base, token)
  for (let n = 0; n < letters; n++) {
    await send(service.smtpPort, {
      from: { name: "Grace Höpper", address: "grace@example.org" },
      to: `${handle}@mail.localhost`,
      subject: `Grüße ${n}`,
      text: `Zahl ${n}`,
      attachments: n % 3 === 0 ? [{ filename: "räume.txt", content: `Anhang ${n}` }] : [],
    })
  }
  return { handle, user: secrets.imap.username as string, pass: secrets.imap.password as string }
}

describe("imapflow", () => {
  it("reads, flags, moves, idles and appends", async () => {
    const { handle, user, pass } = await makeMailbox(3)
    const client = new ImapFlow({
      host: "127.0.0.1",
      port: service.imapPort,
      secure: false,
      auth: { user, pass },
      tls: { rejectUnauthorized: false },
      logger: false,
      qresync: true,
    })
    await client.connect()
    const folders = await client.list()
    expect(folders.map(({ path: name, specialUse }) => [name, specialUse])).toEqual([
      ["INBOX", "\\Inbox"],
      ["Sent", "\\Sent"],
      ["Drafts", "\\Drafts"],
      ["Junk", "\\Junk"],
      ["Trash", "\\Trash"],
    ])
    const lock = await client.getMailboxLock("INBOX")
    const seen = []
    for await (const message of client.fetch("1:*", {
      envelope: true,
      bodyStructure: true,
      flags: true,
      uid: true,
      threadId: true,
    })) {
      seen.push([message.uid, message.envelope?.subject, message.bodyStructure?.childNodes?.length ?? 0])
      expect(message.envelope?.from?.[0]).toEqual({ name: "Grace Höpper", address: "grace@example.org" })
      expect(message.emailId).toMatch(/^msg_/)
    }
    expect(seen).toEqual([
      [1, "Grüße 0", 2],
      [2, "Grüße 1", 0],
      [3, "Grüße 2", 0],
    ])
    const { content } = await client.download("1", "2")
    const pieces = []
    for await (const piece of content!) pieces.push(piece as Buffer)
    expect(Buffer.concat(pieces).toString()).toBe("Anhang 0")
    await client.messageFlagsAdd("1", ["\\Flagged", "$Forwarded"])
    expect(await client.search({ flagged: true })).toEqual([1])
    expect(await client.search({ subject: "grüße 2" })).toEqual([3])
    await client.mailboxCreate(["Work", "Größe"])
    const moved = await client.messageMove("3", "Work/Größe")
    expect(moved).toMatchObject({ uidMap: new Map([[3, 1]]) })
    await client.append("INBOX", "Subject: made here\r\n\r\nbody\r\n", ["\\Seen"])
    const news = new Promise((resolve) => client.on("exists", resolve))
    void client.idle()
    await send(service.smtpPort, { from: "a@b.example", to: user, subject: "now" })
    expect(await news).toMatchObject({ count: 4 })
    await client.messageDelete("2")
    lock.release()
    expect(await client.status("INBOX", { messages: true, unseen: true })).toMatchObject({ messages: 3, unseen: 2 })
    await client.logout()
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages`, { token })
    expect(body.messages.map(({ subject }: { subject: string }) => subject)).toEqual([
      "now",
      "made here",
      "Grüße 2",
      "Grüße 0",
    ])
  })
})

describe.skipIf(!has("curl"))("curl", () => {
  it("lists, searches, reads and appends, by password and by key", async () => {
    const { user, pass } = await makeMailbox(2)
    const base = `imaps://127.0.0.1:${service.imapsPort}`
    const curl = async (...args: ReadonlyArray<string>) =>
      (await run("curl", ["-sk", "--user", `${user}:${pass}`, ...args])).stdout
    expect(await curl(`${base}/`)).toContain('* LIST (\\HasNoChildren) "/" INBOX')
    expect((await curl(`${base}/INBOX?SUBJECT%20%221%22`)).trim()).toBe("* SEARCH 2")
    expect(await curl(`${base}/INBOX;UID=1;SECTION=TEXT`)).toContain("Zahl 0")
    const folder = mkdtempSync(path.join(os.tmpdir(), "svc-curl-"))
    writeFileSync(path.join(folder, "mail"), "Subject: up\r\n\r\nhi\r\n")
    await curl("-T", path.join(folder, "mail"), `${base}/Drafts`)
    expect(await curl(`${base}/Drafts;UID=1`)).toBe("Subject: up\r\n\r\nhi\r\n")
    rmSync(folder, { recursive: true })
  })
})

describe.skipIf(!has("mbsync"))("mbsync", () => {
  it("synchronizes a Maildir and a Mailbox both ways", async () => {
    const { user, pass, handle } = await makeMailbox(20)
    const home = mkdtempSync(path.join(os.tmpdir(), "svc-mbsync-"))
    mkdirSync(path.join(home, "md"))
    const config = path.join(home, "rc")
    writeFileSync(
      config,
      [
        `IMAPAccount a\nHost 127.0.0.1\nPort ${service.imapPort}\nUser ${user}\nPass ${pass}\nSSLType None\nAuthMechs PLAIN\n`,
        "IMAPStore r\nAccount a\n",
        `MaildirStore l\nPath ${home}/md/\nInbox ${home}/md/INBOX\nSubFolders Verbatim\n`,
        "Channel c\nFar :r:\nNear :l:\nPatterns *\nCreate Both\nExpunge Both\nSyncState *\n",
      ].join("\n"),
    )
    const sync = () => run("mbsync", ["-q", "-c", config, "c"])
    await sync()
    const inbox = path.join(home, "md", "INBOX")
    const fresh = readdirSync(path.join(inbox, "new")).sort()
    expect(fresh).toHaveLength(20)
    const mark = (name: string, flags: string) =>
      renameSync(path.join(inbox, "new", name), path.join(inbox, "cur", `${name.split(":")[0]}:2,${flags}`))
    for (const name of fresh.slice(0, 4)) mark(name, "S")
    for (const name of fresh.slice(4, 9)) mark(name, "ST")
    writeFileSync(path.join(inbox, "cur", "1.local:2,F"), "Subject: from here\n\nbody\n")
    await sync()
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/messages?limit=100`, { token })
    expect(body.messages).toHaveLength(16)
    const files = () => ["cur", "new"].flatMap((folder) => readdirSync(path.join(inbox, folder))).length
    await call(service.base, "DELETE", `/api/identities/${handle}/messages/${body.messages[3].id}`, { token })
    await sync()
    await eventually(
      async () => files(),
      (count) => count === 15,
    )
    rmSync(home, { recursive: true })
  })
})
