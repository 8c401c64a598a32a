/** Drafts are shared between the API and mail clients, and subaddress tags are folders if enabled. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { send } from "../../harness/Mail.ts"
import { sharedService, type TestService } from "../../harness/Service.ts"

let service: TestService
let token: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
})

const makeMailbox = async () => {
  const { secrets, handle } = await makeIdentity(service.base, token)
  const path = `/api/identities/${handle}`
  const login = () => ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
  const api = (method: string, rest: string, body?: object) =>
    call(service.base, method, `${path}${rest}`, { token, ...(body === undefined ? {} : { body }) })
  const drafts = async () => (await api("GET", "/drafts")).body.drafts
  return { handle, login, api, drafts }
}

const until = async (client: ImapClient, wanted: RegExp): Promise<string> => {
  while (true) {
    const line = await client.line()
    if (line === undefined) throw new Error(`ended before ${wanted}`)
    if (wanted.test(line)) return line
  }
}

const written = (subject: string, more = "") =>
  `From: ada@mail.localhost\nTo: Grace <grace@example.org>\nCc: b@example.org\nSubject: ${subject}\nMIME-Version: 1.0\n${more}`

describe("the Drafts folder", () => {
  it("shows created, changed and deleted API drafts, also to idle clients, and they are not listed as messages", async () => {
    const { login, api } = await makeMailbox()
    const first = await api("POST", "/drafts", {
      to: ["grace@example.org"],
      bcc: ["hidden@example.org"],
      subject: "One",
      text: "Dear Gräce",
      attachments: [{ filename: "a.txt", content_type: "text/plain", content_base64: "aGVsbG8=" }],
    })
    expect(first.status).toBe(201)
    const client = await login()
    expect((await client.say("SELECT Drafts")).untagged).toContain("* 1 EXISTS")
    const [shown] = (await client.say("FETCH 1 (FLAGS INTERNALDATE ENVELOPE RFC822.SIZE BODY.PEEK[])")).untagged
    expect(shown).toContain("FLAGS (\\Seen \\Draft \\Recent)")
    const [, stored] = /INTERNALDATE "([^"]+ \+0000)"/.exec(shown!)!
    expect(Date.parse(stored!)).toBe(Math.floor(Date.parse(first.body.updated_at) / 1_000) * 1_000)
    expect(shown).toContain('"hidden" "example.org"')
    expect(shown).toMatch(/filename=a\.txt[^]*aGVsbG8=/)
    expect(shown).toMatch(/"<draft\.[^@"]+@mail\.localhost>"/)
    expect(shown).not.toContain("AI-Disclosure")
    const [, size, bytes] = /RFC822\.SIZE (\d+) BODY\[\] \{(\d+)\}/.exec(shown!)!
    expect(size).toBe(bytes)

    client.write("i IDLE\r\n")
    await until(client, /^\+/)
    await api("PUT", `/drafts/${first.body.id}`, { subject: "Two", text: "again" })
    await until(client, /^\* 1 EXPUNGE/)
    await until(client, /^\* 1 EXISTS/)
    await api("DELETE", `/drafts/${first.body.id}`)
    await until(client, /^\* 1 EXPUNGE/)
    client.write("DONE\r\n")
    await until(client, /^i OK/)
    expect((await client.say("STATUS Drafts (MESSAGES UIDNEXT)")).untagged).toEqual([
      "* STATUS Drafts (MESSAGES 0 UIDNEXT 3)",
    ])
    await api("POST", "/drafts", { subject: "Three", text: "t" })
    await client.say("NOOP")
    expect((await client.say("FETCH 1 ENVELOPE")).untagged[0]).toContain('"Three"')
    expect((await api("GET", "/messages")).body.messages).toEqual([])
    expect((await api("GET", "/messages?query=Three")).body.messages).toEqual([])
    expect((await api("GET", "/threads")).body.threads).toEqual([])
    const id = /EMAILID \(([^)]+)\)/.exec((await client.say("FETCH 1 EMAILID")).untagged[0]!)![1]
    expect((await api("GET", `/messages/${id}`)).status).toBe(404)
    client.close()
  })

  it("stores an appended message as an API draft if possible and keeps its bytes", async () => {
    const { login, api, drafts } = await makeMailbox()
    const client = await login()
    // The folder keeps its use under another name.
    await client.say("RENAME Drafts Work")
    await client.say("SELECT Work")
    const mixed = `${written("Plain", "Content-Type: multipart/mixed; boundary=x\n")}\n--x\nContent-Type: text/plain; charset=utf-8\n\nHello\n--x\nContent-Type: application/pdf; name=r.pdf\nContent-Disposition: attachment; filename=r.pdf\nContent-Transfer-Encoding: base64\n\nJVBERi0=\n--x--\n`
    const reply = await client.append("Work", mixed, "\\Draft \\Seen")
    expect(reply.tagged).toMatch(/^OK \[APPENDUID \d+ 1\]/)
    const [draft] = await drafts()
    expect(draft).toMatchObject({ to: ["grace@example.org"], cc: ["b@example.org"], subject: "Plain" })
    const complete = await api("GET", `/drafts/${draft.id}`)
    expect(complete.body.text.trim()).toBe("Hello")
    expect(complete.body.attachments).toEqual([
      { filename: "r.pdf", content_type: "application/pdf", content_base64: "JVBERi0=" },
    ])
    // Synchronizing again adds no second picture.
    await client.say("NOOP")
    const { untagged } = await client.say("FETCH 1:* (UID BODY.PEEK[])")
    expect(untagged).toHaveLength(1)
    expect(untagged[0]).toContain(mixed.replace(/\n/g, "\r\n"))
    expect((await api("GET", "/messages")).body.messages).toEqual([])

    // An API draft cannot contain HTML with a missing embedded picture, so such a message is stored as a plain message.
    const inline = `${written("Inline", "Content-Type: text/html\n")}\n<img src="cid:a">\n`
    await client.append("Work", inline, "\\Draft")
    expect((await drafts()).map(({ subject }: { subject: string }) => subject)).toEqual(["Plain"])
    expect((await api("GET", "/messages")).body.messages).toHaveLength(1)
    client.close()
  })

  it("deletes the draft when a client removes its message", async () => {
    const { login, api, drafts } = await makeMailbox()
    for (const subject of ["one", "two"]) await api("POST", "/drafts", { subject, text: "t" })
    const client = await login()
    await client.say("SELECT Drafts")
    await client.say("STORE 1 +FLAGS (\\Deleted)")
    expect((await client.say("EXPUNGE")).untagged).toContain("* 1 EXPUNGE")
    expect((await drafts()).map(({ subject }: { subject: string }) => subject)).toEqual(["two"])
    expect((await client.say("MOVE 1 Trash")).tagged).toMatch(/^OK/)
    expect(await drafts()).toEqual([])
    expect((await client.say("STATUS Trash (MESSAGES)")).untagged).toEqual(["* STATUS Trash (MESSAGES 1)"])
    expect((await api("GET", "/messages")).body.messages).toEqual([])
    client.close()
  })
})

describe("a subaddress tag", () => {
  it("is a folder if the Mailbox enables it, for existing and new mail", async () => {
    const { handle, login, api } = await makeMailbox()
    const receive = (tag: string, subject: string) =>
      send(service.smtpPort, { from: "grace@example.org", to: `${handle}+${tag}@mail.localhost`, subject, text: "t" })
    await receive("invoices", "early")
    const client = await login()
    const names = async () =>
      (await client.say('LIST "" "Tags*"')).untagged.map((line) => line.replace(/^.* "\/" /, ""))
    await client.say("SELECT INBOX")
    expect((await client.say("SEARCH KEYWORD Invoices")).untagged[0]).toBe("* SEARCH 1")
    expect((await client.say("SEARCH UNKEYWORD invoices")).untagged[0]).toBe("* SEARCH")
    expect(await names()).toEqual([])
    expect((await api("GET", "/mail")).body.tag_folders).toBe(false)
    expect((await api("PATCH", "/mail", { tag_folders: true })).body.tag_folders).toBe(true)
    expect(await names()).toEqual(["Tags", "Tags/invoices"])
    await client.say("SELECT Tags/invoices")
    client.write("i IDLE\r\n")
    await until(client, /^\+/)
    await receive("invoices", "late")
    await until(client, /^\* 2 EXISTS/)
    client.write("DONE\r\n")
    await until(client, /^i OK/)
    // A message that a client removes stays removed and remains in INBOX.
    await client.say("STORE 1 +FLAGS (\\Deleted)")
    await client.say("EXPUNGE")
    await receive("other", "third")
    expect(await names()).toEqual(["Tags", "Tags/invoices", "Tags/other"])
    expect((await client.say("STATUS Tags/invoices (MESSAGES)")).untagged[0]).toContain("(MESSAGES 1)")
    expect((await client.say("STATUS INBOX (MESSAGES)")).untagged[0]).toContain("(MESSAGES 3)")
    expect((await api("GET", "/messages")).body.messages).toHaveLength(3)
    client.close()
  })
})
