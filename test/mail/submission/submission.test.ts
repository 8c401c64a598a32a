/** Submission by mail programs: allowed senders and recipients, the resulting message, and the replies to refusals. */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { converse } from "../../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../../harness/Service.ts"
import { type Program, program } from "./Programs.ts"

let service: OwnService
let token: string
let ada: Program
let bob: Program
beforeAll(async () => {
  service = await startService({ env: { SVC_LIMIT_MAIL_HOURLY: "200" } })
  token = (await signUp(service.base)).session
  ada = await program(service, token)
  bob = await program(service, token, [ada.address])
  await ada.allow(bob.address)
  await ada.allow(ada.address)
})
afterAll(() => service.stop())

const plain = (user: string, pass: string) => Buffer.from(`\0${user}\0${pass}`).toString("base64")

/** Sends a message with these commands and returns the replies from MAIL on. */
const submit = async (
  who: Program,
  letter: string,
  { from = who.address, to = [bob.address] }: { readonly from?: string; readonly to?: ReadonlyArray<string> } = {},
) =>
  (
    await converse(service.submissionPort, [
      "EHLO laptop\r\n",
      `AUTH PLAIN ${plain(who.user, who.pass)}\r\n`,
      `MAIL FROM:<${from}>\r\n`,
      ...to.map((one) => `RCPT TO:<${one}>\r\n`),
      "DATA\r\n",
      `${letter.replaceAll(/\r?\n/g, "\r\n")}\r\n.\r\n`,
      "QUIT\r\n",
    ])
  ).slice(3)

/** Returns the reply after DATA. */
const answered = async (...given: Parameters<typeof submit>) => (await submit(...given)).at(-2)

const letter = (who: Program, subject: string, body = "Hello.\n", fields = "") =>
  `From: <${who.address}>\nTo: <${bob.address}>\nSubject: ${subject}\n${fields}\n${body}`

describe("A submitted message", () => {
  it("reaches the other Mailbox as written, with the disclosure in both bodies and without its Bcc", async () => {
    const transport = ada.transport()
    const sent = await transport.sendMail({
      from: { name: "Ada Lovelace", address: ada.address },
      to: { name: "Bob", address: bob.address },
      bcc: ada.address,
      subject: "Grüße vom Programm",
      text: "Zahl: 42\n\n-- \nAda",
      html: `<p>Zahl: <b>42</b> <img src="cid:dot@ada" alt="dot" height="10"></p>`,
      messageId: "<first@laptop.example>",
      attachments: [
        { filename: "dot.png", content: Buffer.from("PNG"), contentType: "image/png", cid: "dot@ada" },
        { filename: "räume.txt", content: "Anhang", contentType: "text/plain" },
      ],
      headers: {
        "User-Agent": "Program/1.0",
        "AI-Disclosure": "none",
        "Agent-Identity": "did:web:mallory.example",
        "X-Own": "1",
      },
    })
    transport.close()
    expect(sent.response).toMatch(/^250 2\.6\.0 Queued as msg_[0-9a-z]{26}$/)
    const { id } = await bob.received("Grüße vom Programm")
    const message = await bob.read(id)
    expect(message).toMatchObject({
      from: { address: ada.address, name: "Ada Lovelace" },
      to: [{ address: bob.address, name: "Bob" }],
      bcc: [],
      message_id: "<first@laptop.example>",
      origin: { verdict: "verified" },
    })
    expect(message.text).toMatch(/^Zahl: 42\n\n---\n.*AI.*\n\n-- \nAda\s*$/s)
    expect(message.html).toMatch(/<b>42<\/b> <img src="cid:dot@ada" alt="dot" height="10">.*AI/s)
    expect(message.attachments.map((one: any) => [one.filename, one.content_type])).toEqual([
      ["dot.png", "image/png"],
      ["räume.txt", "text/plain"],
    ])
    const fields = message.headers.map((one: any) => `${one.name}: ${one.value}`)
    expect(fields).toEqual(
      expect.arrayContaining(["AI-Disclosure: mode=ai-originated", "User-Agent: Program/1.0", "X-Own: 1"]),
    )
    const did = (handle: string) => `did:web:${encodeURIComponent(new URL(service.base).host)}:%40${handle}`
    expect(fields.filter((one: string) => /^(?:bcc|ai-disclosure|agent-identity)/i.test(one))).toEqual([
      "AI-Disclosure: mode=ai-originated",
      `Agent-Identity: ${did(ada.handle)}`,
    ])
    expect(message.origin.agent).toEqual({ did: did(ada.handle), domain: null, checked_at: expect.any(String) })
    const [stored] = await ada.outbound()
    expect((await ada.read(stored.id)).bcc).toEqual([{ address: ada.address, name: null }])
  })

  it("requires the Identity's own address as sender", async () => {
    const own = (from: string) => letter(ada, "whose").replace(/^From: .*$/m, `From: ${from}`)
    for (const from of [
      "bob@mail.localhost",
      `${ada.handle}@elsewhere.example`,
      `<${bob.address}>, <${ada.address}>`,
      `Ada <${ada.handle}+tag@mail.localhost>`,
      "",
    ]) {
      expect(await answered(ada, own(from))).toMatch(/^550 5\.7\.1 The message is not valid: /)
    }
    expect(await answered(ada, `${own(`<${ada.address}>`)}`.replace(/^To/m, `From: ${bob.address}\nTo`))).toMatch(
      /^550 5\.7\.1 /,
    )
    for (const from of [bob.address, "", `${ada.handle}+tag@mail.localhost`]) {
      expect((await submit(ada, letter(ada, "whose"), { from }))[0]).toMatch(/^550 5\.7\.1 The sender can only be /)
    }
    // Another spelling of the Handle is accepted, and sent as registered.
    const spelled = `${ada.handle.slice(0, 3)}-${ada.handle.slice(3)}@MAIL.localhost`.toUpperCase()
    expect(await answered(ada, own(`"bank@evil.example" <${spelled}>`), { from: spelled })).toMatch(/^250 /)
    expect((await bob.received("whose")).from).toEqual({ address: ada.address, name: null })
  })

  it("requires every envelope recipient to be an Allowed Recipient, whatever the header says", async () => {
    const before = (await ada.outbound()).length
    const reply = await answered(ada, letter(ada, "strangers"), { to: [bob.address, "eve@evil.example"] })
    expect(reply).toMatch(/^550 5\.7\.1 .*eve@evil\.example is not an Allowed Recipient/)
    expect(await ada.outbound()).toHaveLength(before)
    expect((await submit(ada, letter(ada, "x"), { to: ['"b, c"@evil.example'] }))[1]).toMatch(/^553 5\.1\.3 /)
    expect(await answered(ada, letter(ada, "shown").replace(/^To: /m, "To: Eve <eve@evil.example>, "))).toMatch(/^250 /)
    expect((await bob.received("shown")).to.map((one: any) => one.address)).toEqual(["eve@evil.example", bob.address])
  })

  it("is subject to the switch, the hourly limit and approval", async () => {
    const cleo = await program(service, token, [bob.address])
    await cleo.patch({ outgoing: "stopped", reason: "Pause\r\n250 für heute" })
    expect(await answered(cleo, letter(cleo, "stopped"))).toBe(
      "550 5.7.1 Outgoing mail is stopped: Outgoing mail of the Identity is stopped: Pause 250 f?r heute.",
    )
    await cleo.patch({ outgoing: "active" })
    await cleo.patch({ approval: "required" })
    const waits = await answered(cleo, letter(cleo, "waits"))
    expect(waits).toMatch(/^250 2\.6\.0 Waits for a person to approve it, as msg_/)
    expect((await cleo.outbound())[0].subject).toBe("waits")
    expect((await bob.list()).some((one: any) => one.subject === "waits")).toBe(false)
    await service.query(
      (sql) => sql`
        insert into mail_use (identity_id, at)
        select i.id, now() from identity i, generate_series(1, 200) where i.handle = ${cleo.handle} returning 1 as one`,
    )
    expect(await answered(cleo, letter(cleo, "too many"))).toMatch(/^452 4\.7\.1 .* Try again in \d+ s\.$/)
  })

  it("counts as a call of the account, even if it is refused", async () => {
    const who = await program(service, (await signUp(service.base)).session)
    // The server of programs leases a share of the calls. A minute may end between both looks.
    const counted = async () => {
      const before = await who.calls()
      await answered(who, letter(who, "x"))
      return (await who.calls()) - before
    }
    await eventually(counted, (calls) => calls > 1)
  })

  it("is sent once when it is resubmitted; other content or recipients make another message", async () => {
    const subject = "again"
    const letterWith = (body: string, date: string) =>
      letter(ada, subject, body, `Message-ID: <again@laptop.example>\nDate: ${date}\n`)
    const dates = [1, 2].map(
      (second) => `${new Date(Date.now() - second * 1000).toUTCString().replace("GMT", "+0000")}`,
    )
    const replies = [
      await answered(ada, letterWith("Once.\n", dates[0]!)),
      // The program sets a new date.
      await answered(ada, letterWith("Once.\n", dates[1]!)),
      await answered(ada, letterWith("Twice.\n", dates[1]!)),
      await answered(ada, letterWith("Once.\n", dates[0]!), { to: [bob.address, ada.address] }),
    ]
    expect(replies.every((reply) => reply?.startsWith("250 2.6.0 Queued as msg_"))).toBe(true)
    expect(replies[1]).toBe(replies[0])
    expect(new Set(replies).size).toBe(3)
    expect((await ada.outbound()).filter((one: any) => one.subject === subject)).toHaveLength(3)
    // Two identical messages without a Message-ID are two.
    const nameless = [await answered(ada, letter(ada, "nameless")), await answered(ada, letter(ada, "nameless"))]
    expect(new Set(nameless).size).toBe(2)
  })

  it("is filed in Sent once, even if the program appends its copy", async () => {
    const raw = letter(ada, "filed", "Hello.\n", "Message-ID: <filed@laptop.example>\n").replaceAll("\n", "\r\n")
    expect(await answered(ada, raw)).toMatch(/^250 /)
    const imap = await ImapClient.login(service.imapPort, ada.user, ada.pass)
    await imap.say("SELECT Sent")
    const found = async () =>
      (await imap.say("UID SEARCH HEADER Message-ID filed@laptop.example")).untagged.find((one) =>
        one.startsWith("* SEARCH"),
      )
    const before = await found()
    const uid = /^\* SEARCH (\d+)$/.exec(before!)![1]
    const appended = await imap.say(`APPEND Sent (\\Seen) {${raw.length}+}\r\n${raw}`)
    expect(appended.tagged).toMatch(new RegExp(`^OK \\[APPENDUID \\d+ ${uid}\\]`))
    expect(await found()).toBe(before)
    expect((await ada.outbound()).filter((one: any) => one.subject === "filed")).toHaveLength(1)
    imap.close()
  })
})

describe("Login", () => {
  const auth = async (...lines: ReadonlyArray<string>) =>
    (
      await converse(service.submissionPort, ["EHLO laptop\r\n", ...lines.map((line) => `${line}\r\n`), "QUIT\r\n"])
    ).slice(2)
  const base64 = (text: string) => Buffer.from(text).toString("base64")

  it("accepts the password and the Identity Key, by PLAIN, LOGIN and OAUTHBEARER", async () => {
    const { user, pass, key, handle } = ada
    for (const lines of [
      [`AUTH PLAIN ${plain(user, pass)}`],
      ["AUTH PLAIN", plain(handle, key)],
      ["AUTH LOGIN", base64(user), base64(pass)],
      [`auth login ${base64(handle)}`, base64(key)],
      [`AUTH OAUTHBEARER ${base64(`n,a=${user},\x01auth=Bearer ${key}\x01\x01`)}`],
    ]) {
      expect((await auth(...lines)).at(-2)).toBe("235 2.7.0 Logged in")
    }
    expect((await auth(`AUTH PLAIN ${plain(user, pass)}`, `AUTH PLAIN ${plain(user, pass)}`))[1]).toMatch(/^503 /)
  })

  it("does not reveal what was wrong, and closes after five attempts", async () => {
    const { user, pass } = bob
    expect((await auth(`AUTH PLAIN ${plain(user, ada.pass)}`))[0]).toMatch(/^535 5\.7\.8 Wrong user or password/)
    expect((await auth("AUTH CRAM-MD5"))[0]).toMatch(/^504 5\.5\.4 /)
    expect((await auth("AUTH PLAIN ****"))[0]).toMatch(/^501 5\.5\.2 /)
    expect((await auth("AUTH LOGIN", "*"))[1]).toMatch(/^501 5\.5\.2 /)
    expect((await auth(`MAIL FROM:<${user}>`))[0]).toMatch(/^530 /)
    const tries = await auth(...Array.from({ length: 6 }, () => `AUTH PLAIN ${plain("nobody", pass)}`))
    expect(tries.map((reply) => reply.slice(0, 3))).toEqual(["535", "535", "535", "535", "421"])
  })

  it("accepts only keys that may send", async () => {
    const eve = await program(service, token)
    const changed = await service.query(
      (sql) => sql`
        update api_key set scopes = 'mail:write' where identity_id = (select id from identity where handle = ${eve.handle})
        returning id`,
    )
    expect(changed).toHaveLength(1)
    expect((await auth(`AUTH PLAIN ${plain(eve.user, eve.key)}`))[0]).toMatch(/^535 /)
    expect((await auth(`AUTH PLAIN ${plain(eve.user, eve.pass)}`))[0]).toMatch(/^235 /)
  })

  it("is audited with its actual outcome", async () => {
    const { handle, user, pass, key } = await program(service, token)
    const admin = (await call(service.base, "POST", "/api/keys", { token, body: { name: "not for programs" } })).body
      .key
    for (const password of [pass, key, "wrong-wrong-wrong", admin]) {
      await auth(`AUTH PLAIN ${plain(user, password)}`)
    }
    const logins = async (query: string) =>
      (await call(service.base, "GET", `/api/audit?action=submission.login&${query}`, { token })).body.records
    expect(await logins(`identity=${handle}`)).toMatchObject([
      { outcome: "refused", actor: { kind: "imap_password" }, source: { via: "smtp" } },
      { outcome: "allowed", actor: { kind: "identity_key" }, source: { via: "smtp" } },
      { outcome: "allowed", actor: { kind: "imap_password" }, source: { via: "smtp" } },
    ])
    // A valid key that lacks this scope.
    expect((await logins("outcome=refused")).map((one: { actor: { name: string } }) => one.actor.name)).toContain(
      "not for programs",
    )
    const { body } = await call(service.base, "GET", `/api/audit?action=imap.login&identity=${handle}`, { token })
    expect(body.records).toEqual([])
  })

  it("is audited for each message: as refused, or as failed if the service could not send it", async () => {
    const fay = await program(service, token, [bob.address])
    await answered(fay, letter(fay, "stranger"), { to: ["eve@evil.example"] })
    const run = (statement: string) => service.query((sql) => sql.unsafe(statement))
    await run(`create function outage() returns trigger language plpgsql as
      $$ begin raise exception 'terminating connection' using errcode = '57P01'; end $$`)
    await run("create trigger outage before insert on message_content for each row execute function outage()")
    try {
      expect(await answered(fay, letter(fay, "outage"))).toMatch(/^451 4\.3\.0 /)
    } finally {
      await run("drop function outage cascade")
    }
    const { body } = await call(service.base, "GET", `/api/audit?action=submission.send&identity=${fay.handle}`, {
      token,
    })
    expect(body.records.map(({ outcome, code }: any) => [outcome, code])).toEqual([
      ["failed", "unavailable"],
      ["refused", "recipient_not_allowed"],
    ])
  })

  it("ends with the credential", async () => {
    const dora = await program(service, token, [bob.address])
    const output = new Promise<string>((resolve, reject) => {
      const socket = connect(service.submissionPort, "127.0.0.1")
      let text = ""
      const submit = ["EHLO laptop\r\n", `AUTH PLAIN ${plain(dora.user, dora.pass)}\r\n`]
      socket.on("data", (chunk) => {
        text += chunk.toString()
        if (/^\d{3} .*\r\n$/m.test(text)) {
          const line = submit.shift()
          if (line !== undefined) {
            text = ""
            socket.write(line)
          } else if (text.startsWith("235")) {
            text = ""
            void dora.rotate()
          }
        }
      })
      socket.on("error", reject)
      socket.on("close", () => resolve(text))
    })
    expect(await output).toBe("421 4.7.0 The credential of this session was revoked\r\n")
    expect((await auth(`AUTH PLAIN ${plain(dora.user, dora.pass)}`))[0]).toMatch(/^535 /)
  })
})

describe("A session of a mail program", () => {
  /** Sends a line and returns the reply. */
  const said = async (socket: Socket, line?: string) => {
    if (line !== undefined) socket.write(`${line}\r\n`)
    for (let text = ""; ;) {
      text += await new Promise<Buffer>((resolve) => socket.once("data", resolve))
      if (/^\d{3} .*\r\n$/m.test(text)) return text
    }
  }

  it("knows no login from before STARTTLS", async () => {
    const socket = connect(service.submissionPort, "127.0.0.1")
    await said(socket)
    await said(socket, "EHLO laptop")
    expect(await said(socket, `AUTH PLAIN ${plain(ada.user, ada.pass)}`)).toMatch(/^235/)
    expect(await said(socket, "STARTTLS")).toMatch(/^220/)
    const encrypted = connectTls({ socket, rejectUnauthorized: false })
    await said(encrypted, "EHLO laptop")
    expect(await said(encrypted, `MAIL FROM:<${ada.address}>`)).toMatch(/^530/)
    expect(await said(encrypted, `AUTH PLAIN ${plain(bob.user, bob.pass)}`)).toMatch(/^235/)
    expect(await said(encrypted, `MAIL FROM:<${ada.address}>`)).toMatch(/^550/)
    expect(await said(encrypted, `MAIL FROM:<${bob.address}>`)).toMatch(/^250/)
    encrypted.destroy()
  })
})
