/** Mail clients against the whole service, with the same Mailbox over REST. */
import { deflateRawSync } from "node:zlib"
import { connect as connectTls } from "node:tls"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { send } from "../../harness/Mail.ts"
import { eventually, startService, type OwnService } from "../../harness/Service.ts"
import { browser, obtainTokens, registerClient } from "../../oauth/Consent.ts"

let service: OwnService
let token: string
beforeAll(async () => {
  service = await startService({ env: { SVC_IMAP_MAILBOX_SESSIONS: "4" } })
  token = (await signUp(service.base)).session
})
afterAll(() => service.stop())

const makeMailbox = async () => {
  const { secrets, handle } = await makeIdentity(service.base, token)
  const { username, password } = secrets.imap
  const address = `${handle}@mail.localhost`
  const login = () => ImapClient.login(service.imapPort, username, password)
  const receive = (subject: string, text = "hello") =>
    send(service.smtpPort, { from: "grace@example.org", to: address, subject, text })
  const messages = async () =>
    (await call(service.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages
  return { handle, secrets, username, password, address, login, receive, messages }
}

/** Removes the stored structures of messages, which messages of older versions do not have. */
const forgetStructures = (handle: string) =>
  service.query(
    (sql) => sql`update message_content c set structure = null from identity i
      where i.id = c.identity_id and i.handle = ${handle} and c.structure is not null returning 1`,
  )

const until = async (client: ImapClient, wanted: RegExp): Promise<string> => {
  while (true) {
    const line = await client.line()
    if (line === undefined) throw new Error(`ended before ${wanted}`)
    if (wanted.test(line)) return line
  }
}

describe("a Mailbox over IMAP", () => {
  it("shows every combination of flags in every response, and finds messages by each flag", async () => {
    const { login } = await makeMailbox()
    const client = await login()
    const system = ["\\Seen", "\\Flagged", "\\Answered", "\\Deleted", "\\Draft"]
    const flags = [...system, "word"]
    const combinations = Array.from({ length: 2 ** system.length }, (_, set) =>
      flags.filter((flag, bit) => (flag === "word" ? set % 3 === 0 : (set & (1 << bit)) !== 0)).toSorted(),
    )
    await client.say("CREATE All")
    for (const given of combinations) await client.append("All", "Subject: x\n\nx\n", given.join(" "))
    await client.say("SELECT All")
    const shown = async (items: string) =>
      (await client.say(`FETCH 1:* (${items})`)).untagged.flatMap((line) => {
        const [, names] = /^\* \d+ FETCH \(.*?FLAGS \(([^)]*)\)/.exec(line) ?? []
        if (names === undefined) return []
        return [
          names
            .split(" ")
            .filter((name) => name !== "" && name !== "\\Recent")
            .toSorted(),
        ]
      })
    // Flags alone come from memory or packed rows, the others from rows with more or less of the message.
    for (const items of ["FLAGS", "FLAGS MODSEQ", "FLAGS RFC822.SIZE", "FLAGS ENVELOPE", "FLAGS BODY.PEEK[TEXT]"])
      expect(await shown(items), items).toEqual(combinations)
    const found = async (key: string) =>
      (await client.say(`SEARCH ${key}`)).untagged[0]!.split(" ")
        .slice(2)
        .map((number) => Number(number) - 1)
    for (const flag of flags) {
      const [has, lacks] = flag === "word" ? ["KEYWORD word", "UNKEYWORD word"] : [flag.slice(1), `UN${flag.slice(1)}`]
      const expected = (wanted: boolean) =>
        combinations.flatMap((names, at) => (names.includes(flag) === wanted ? [at] : []))
      expect([await found(has), await found(lacks)], flag).toEqual([expected(true), expected(false)])
    }
    // Another session changes each message, and this one gets a notification.
    const other = await login()
    await other.say("SELECT All")
    await other.say("STORE 1:16 -FLAGS (\\Deleted)")
    await other.say("STORE 17:32 +FLAGS (\\Answered)")
    const after = combinations.map((names, at) => {
      if (at < 16) return names.filter((name) => name !== "\\Deleted")
      return [...new Set([...names, "\\Answered"])].toSorted()
    })
    await client.say("NOOP")
    for (const items of ["FLAGS", "FLAGS RFC822.SIZE"]) expect(await shown(items), items).toEqual(after)
    for (const one of [client, other]) one.close()
  })

  it("shows its folders and incoming mail, and stores changes by clients", async () => {
    const { login, receive } = await makeMailbox()
    await receive("first")
    await receive("second")
    const client = await login()
    const list = await client.say('LIST "" "*"')
    expect(list.untagged).toEqual([
      '* LIST (\\HasNoChildren) "/" INBOX',
      '* LIST (\\HasNoChildren \\Drafts) "/" Drafts',
      '* LIST (\\HasNoChildren \\Junk) "/" Junk',
      '* LIST (\\HasNoChildren \\Sent) "/" Sent',
      '* LIST (\\HasNoChildren \\Trash) "/" Trash',
    ])
    expect((await client.say("SELECT inbox")).untagged).toContain("* 2 EXISTS")
    expect((await client.say("CREATE a/b&APw-")).tagged).toMatch(/^OK/)
    expect((await client.say("COPY 1:2 a/b&APw-")).tagged).toMatch(/^OK \[COPYUID \d+ 1:2 1:2\]/)
    expect((await client.say("COPY 1 nowhere")).tagged).toMatch(/^NO \[TRYCREATE\]/)
    const moved = await client.say("MOVE 2 Trash")
    expect(moved.untagged).toEqual([expect.stringMatching(/^\* OK \[COPYUID \d+ 2 1\]/), "* 2 EXPUNGE"])
    expect((await client.say("STATUS Trash (MESSAGES UIDNEXT)")).untagged).toEqual([
      "* STATUS Trash (MESSAGES 1 UIDNEXT 2)",
    ])
    expect((await client.say("RENAME a x")).tagged).toMatch(/^OK/)
    expect((await client.say("SELECT x/b&APw-")).untagged).toContain("* 2 EXISTS")
    expect((await client.say("DELETE x/b&APw-")).tagged).toMatch(/^OK/)
    expect((await client.say("DELETE INBOX")).tagged).toMatch(/^NO \[CANNOT\]/)
    client.close()
  })

  it("assigns a new UIDVALIDITY to a recreated folder and never reuses a UID", async () => {
    const { login } = await makeMailbox()
    const client = await login()
    const validities = new Set<string>()
    for (let n = 0; n < 3; n++) {
      await client.say("CREATE box")
      const { untagged } = await client.say("STATUS box (UIDVALIDITY)")
      validities.add(untagged[0]!)
      await client.say("DELETE box")
    }
    expect(validities.size).toBe(3)
    const uids: Array<string> = []
    for (let n = 0; n < 3; n++) {
      uids.push((await client.append("INBOX", `Subject: ${n}\n\nx\n`, "\\Deleted")).tagged)
      await client.say("SELECT INBOX")
      await client.say("CLOSE")
    }
    expect(uids).toEqual([1, 2, 3].map((uid) => expect.stringContaining(` ${uid}] `)))
    client.close()
  })

  it("shares removals and flags with the API", async () => {
    const { handle, login, receive, messages } = await makeMailbox()
    await receive("one")
    await receive("two")
    const client = await login()
    await client.say("SELECT INBOX")
    const [two] = await messages()
    const removed = await call(service.base, "DELETE", `/api/identities/${handle}/messages/${two.id}`, { token })
    expect(removed.status).toBe(204)
    expect((await client.say("NOOP")).untagged).toContain("* 2 EXPUNGE")
    await client.say("STORE 1 +FLAGS (\\Deleted)")
    expect(await messages()).toHaveLength(1)
    await client.say("EXPUNGE")
    expect(await messages()).toEqual([])
    const large = `Subject: brought in\nFrom: a@b.example\n\n${`${"body ".repeat(12)}\n`.repeat(5_000)}end\n`
    expect((await client.append("INBOX", large)).tagged).toMatch(/^OK \[APPENDUID/)
    expect((await client.say("FETCH 1 BODY.PEEK[TEXT]<310000.9>")).untagged[0]).toContain("{5}\r\nend\r\n)")
    expect(await messages()).toMatchObject([{ subject: "brought in", origin: { verdict: "unverified" } }])
    // The message is in two folders; after its removal from one it remains in the other.
    await client.say("COPY 1 Trash")
    await client.say("STORE 1 +FLAGS.SILENT (\\Deleted)")
    await client.say("EXPUNGE")
    expect(await messages()).toHaveLength(1)
    client.close()
  })

  it("shows mail sent by the API in Sent and does not store the client's copy again", async () => {
    const { handle, login } = await makeMailbox()
    const at = (path: string) => `/api/identities/${handle}${path}`
    const address = "someone@example.org"
    await call(service.base, "POST", at("/allowed-recipients"), { token, body: { address } })
    const mail = { to: [address], subject: "Grüße", text: "Hello." }
    expect((await call(service.base, "POST", at("/messages/send"), { token, body: mail })).status).toBe(202)
    const client = await login()
    expect((await client.say("SELECT Sent")).untagged).toContain("* 1 EXISTS")
    const fetched = await client.say("FETCH 1 (FLAGS ENVELOPE BODYSTRUCTURE BODY.PEEK[])")
    expect(fetched.untagged[0]).toMatch(/FLAGS \(\\Seen \\Recent\) ENVELOPE .*"someone" "example.org"/)
    expect(await forgetStructures(handle)).toHaveLength(1)
    expect(await client.say("FETCH 1 (FLAGS ENVELOPE BODYSTRUCTURE BODY.PEEK[])")).toEqual(fetched)
    const literal = /BODY\[\] \{\d+\}\r\n/.exec(fetched.untagged[0]!)!
    const raw = fetched.untagged[0]!.slice(literal.index + literal[0].length, -1)
    expect((await client.append("Sent", raw)).tagged).toMatch(/^OK \[APPENDUID \d+ 1\]/)
    expect((await client.say("STATUS Sent (MESSAGES)")).untagged).toEqual(["* STATUS Sent (MESSAGES 1)"])
    client.close()
  })

  it("finds whole and partial words in bodies, including characters special to SQL", async () => {
    const { login, receive } = await makeMailbox()
    await receive("xylophon", "nothing of the kind")
    await receive("second", "a Xylophon, 100% sure")
    await receive("third", "one_word, 1000 sure")
    const client = await login()
    await client.say("SELECT INBOX")
    const found = async (keys: string) => (await client.say(`SEARCH ${keys}`)).untagged
    expect(await found("BODY xylophon")).toEqual(["* SEARCH 2"])
    expect(await found("BODY lophO")).toEqual(["* SEARCH 2"])
    expect(await found("NOT BODY xylophon")).toEqual(["* SEARCH 1 3"])
    expect(await found("OR BODY xylophon SUBJECT third")).toEqual(["* SEARCH 2 3"])
    expect(await found("BODY xylophon HEADER subject second")).toEqual(["* SEARCH 2"])
    expect(await found('BODY "100% sure"')).toEqual(["* SEARCH 2"])
    expect(await found("BODY one_word")).toEqual(["* SEARCH 3"])
    expect(await found("BODY of")).toEqual(["* SEARCH 1"])
    client.close()
  })

  it("notifies an idle client of new mail immediately", async () => {
    const { login, receive } = await makeMailbox()
    const client = await login()
    await client.say("SELECT INBOX")
    client.write("i IDLE\r\n")
    await until(client, /^\+ /)
    await receive("news")
    expect(await until(client, /EXISTS/)).toBe("* 1 EXISTS")
    client.write("DONE\r\n")
    await until(client, /^i OK/)
    client.close()
  })

  it("returns exact sizes, parts and byte ranges of messages of any size", async () => {
    const { handle, login, address } = await makeMailbox()
    const content = Buffer.alloc(2 * 1024 * 1024, "0123456789abcdef")
    await send(service.smtpPort, {
      from: "grace@example.org",
      to: address,
      subject: "large",
      text: "small",
      attachments: [{ filename: "a.bin", content }],
    })
    const client = await login()
    await client.say("SELECT INBOX")
    const sizes = await client.say("FETCH 1 (RFC822.SIZE BODYSTRUCTURE BINARY.SIZE[2])")
    const size = Number(/RFC822\.SIZE (\d+)/.exec(sizes.untagged[0]!)?.[1])
    expect(sizes.untagged[0]).toContain(`BINARY.SIZE[2] ${content.length}`)
    expect(await forgetStructures(handle)).toHaveLength(1)
    expect((await client.say("FETCH 1 (RFC822.SIZE BODYSTRUCTURE BINARY.SIZE[2])")).untagged).toEqual(sizes.untagged)
    // The structure was stored again.
    expect(await forgetStructures(handle)).toHaveLength(1)
    const complete = await client.say("FETCH 1 BODY.PEEK[]")
    const literal = /BODY\[\] \{(\d+)\}\r\n/.exec(complete.untagged[0]!)!
    expect(Number(literal[1])).toBe(size)
    const raw = complete.untagged[0]!.slice(literal.index + literal[0].length, -1)
    expect(raw.length).toBe(size)
    const slice = await client.say("FETCH 1 BODY.PEEK[]<2000000.40>")
    expect(slice.untagged[0]).toContain(`BODY[]<2000000> {40}\r\n${raw.slice(2_000_000, 2_000_040)})`)
    const part = await client.say("FETCH 1 BODY.PEEK[2]<0.16>")
    expect(part.untagged[0]).toContain(content.toString("base64").slice(0, 16))
    const binary = await client.say("FETCH 1 BINARY.PEEK[2]<1000000.16>")
    expect(binary.untagged[0]).toContain("0123456789abcdef")
    expect((await client.say("FETCH 1 FLAGS")).untagged).toEqual(["* 1 FETCH (FLAGS (\\Recent))"])
    client.close()
  })

  it("works with TLS, and with compression from the first byte after the command", async () => {
    const { username, password } = await makeMailbox()
    const client = await ImapClient.connect(service.imapsPort, { tls: true })
    expect((await client.say("CAPABILITY")).untagged[0]).not.toContain("STARTTLS")
    client.close()
    const plain = await ImapClient.connect(service.imapPort)
    expect((await plain.say("STARTTLS")).tagged).toMatch(/^OK/)
    const encrypted = new ImapClient(connectTls({ socket: plain.release(), rejectUnauthorized: false }))
    expect((await encrypted.say(`LOGIN ${username} ${password}`)).tagged).toMatch(/^OK/)
    const noop = deflateRawSync(Buffer.from("z NOOP\r\n"), { finishFlush: 2 })
    encrypted.write(Buffer.concat([Buffer.from("y COMPRESS DEFLATE\r\n"), noop.subarray(0, 4)]))
    expect(await until(encrypted, /^y /)).toMatch(/^y OK/)
    encrypted.inflate()
    encrypted.write(noop.subarray(4))
    expect(await until(encrypted, /^z /)).toMatch(/^z OK/)
    encrypted.close()
  })
})

describe("a session", () => {
  it("ends within seconds after its credential is rotated or its Identity deleted", async () => {
    const { handle, username, password, secrets } = await makeMailbox()
    const byPassword = await ImapClient.login(service.imapPort, username, password)
    const byKey = await ImapClient.login(service.imapPort, handle.toUpperCase(), secrets.identity_key)
    await call(service.base, "POST", `/api/identities/${handle}/identity-key/rotate`, { token })
    for (const client of [byPassword, byKey]) expect(await until(client, /^\* BYE/)).toContain("credential")
    const wrong = await ImapClient.connect(service.imapPort)
    expect((await wrong.say(`LOGIN ${username} ${password}`)).tagged).toMatch(/^NO \[AUTHENTICATIONFAILED\]/)
    const { body } = await call(service.base, "GET", `/api/identities/${handle}/identity-key`, { token })
    const again = await ImapClient.login(service.imapPort, username, body.imap.password)
    await call(service.base, "DELETE", `/api/identities/${handle}`, { token })
    await until(again, /^\* BYE/)
    wrong.close()
  })

  it("rejects a wrong password, another Identity's password and an unknown name in the same way", async () => {
    const [one, other] = [await makeMailbox(), await makeMailbox()]
    const tries: ReadonlyArray<readonly [string, string]> = [
      [one.username, other.password],
      ["nobody-at-all@mail.localhost", one.password],
      [`${one.handle}@elsewhere.example`, one.password],
      [one.username, other.secrets.identity_key],
      ["", ""],
    ]
    const answers: Array<string> = []
    for (const [user, password] of tries) {
      const client = await ImapClient.connect(service.imapPort)
      answers.push((await client.say(`LOGIN "${user}" "${password}"`)).tagged)
      client.close()
    }
    expect(new Set(answers)).toEqual(new Set(["NO [AUTHENTICATIONFAILED] User and password do not belong together."]))
  })

  it("requires a key with the scope and network of the login, and rejects app tokens", async () => {
    const { handle, username, login } = await makeMailbox()
    const tagged = async (password: string) => {
      const client = await ImapClient.connect(service.imapPort)
      const answer = (await client.say(`LOGIN "${username}" "${password}"`)).tagged
      client.close()
      return answer
    }
    const key = async (rights: object) =>
      (await call(service.base, "POST", `/api/identities/${handle}/keys`, { token, body: rights })).body.key
    expect(await tagged(await key({ name: "writes", scopes: ["mail:write"] }))).toMatch(/^OK /)
    expect(await tagged(await key({ name: "reads", scopes: ["mail:read"] }))).toMatch(/^NO \[AUTHENTICATIONFAILED\]/)
    expect(await tagged(await key({ name: "elsewhere", networks: ["192.0.2.0/24"] }))).toMatch(
      /^NO \[AUTHENTICATIONFAILED\]/,
    )
    const here = "http://localhost:4711/callback"
    const app = (await registerClient(service.base, [here])).body["client_id"]
    const { access } = await obtainTokens(service.base, browser(service.base, token), app, here, {
      agents: "all",
      rights: "act",
    })
    expect(access).toMatch(/^svc_oat_/)
    expect(await tagged(access)).toMatch(/^NO \[AUTHENTICATIONFAILED\]/)
    ;(await login()).close()
  })

  it("counts against the limit of sessions per Mailbox", async () => {
    const { username, password } = await makeMailbox()
    const clients = []
    for (let n = 0; n < 4; n++) clients.push(await ImapClient.login(service.imapPort, username, password))
    const fifth = await ImapClient.connect(service.imapPort)
    expect((await fifth.say(`LOGIN ${username} ${password}`)).tagged).toMatch(/^NO \[LIMIT\]/)
    clients[0]!.close()
    await eventually(
      () => fifth.say(`LOGIN ${username} ${password}`),
      ({ tagged }) => tagged.startsWith("OK"),
    )
    for (const client of [...clients, fifth]) client.close()
  })
})
