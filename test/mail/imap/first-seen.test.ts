/** \Recent, INTERNALDATE and MODSEQ: which session sees a message first, when it arrived, and when it changed. */
import { beforeAll, expect, it } from "vitest"
import { makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { sharedService, type TestService } from "../../harness/Service.ts"

let service: TestService
let token: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
})

const makeMailbox = async () => {
  const { username, password } = (await makeIdentity(service.base, token)).secrets.imap
  const login = () => ImapClient.login(service.imapPort, username, password)
  return { login, client: await login() }
}

const append = async (client: ImapClient, count: number) => {
  for (let n = 0; n < count; n++) await client.append("INBOX", `Subject: s${n}\n\nbody\n`)
}
const found = async (client: ImapClient, command: string) => (await client.say(command)).untagged

it("\\Recent is set in one session: the first read-write session that reports the message", async () => {
  const { login, client } = await makeMailbox()
  const other = await login()
  await append(client, 2)
  // A read-only session sees it and does not claim it.
  expect(await found(other, "EXAMINE INBOX")).toContain("* 2 RECENT")
  expect(await found(other, "FETCH 1 FLAGS")).toEqual(["* 1 FETCH (FLAGS (\\Recent))"])
  await other.say("CLOSE")
  expect(await found(other, "STATUS INBOX (MESSAGES RECENT)")).toEqual(["* STATUS INBOX (MESSAGES 2 RECENT 2)"])

  expect(await found(client, "SELECT INBOX")).toContain("* 2 RECENT")
  expect(await found(other, "SELECT INBOX")).toContain("* 0 RECENT")
  expect(await found(other, "STATUS INBOX (RECENT)")).toEqual(["* STATUS INBOX (RECENT 0)"])
  expect(await found(client, "STORE 1 FLAGS (\\Seen)")).toEqual(["* 1 FETCH (FLAGS (\\Seen \\Recent))"])
  expect(await found(other, "FETCH 1:2 FLAGS")).toEqual(["* 1 FETCH (FLAGS (\\Seen))", "* 2 FETCH (FLAGS ())"])
  expect(await found(client, "SEARCH RECENT")).toEqual(["* SEARCH 1 2"])
  expect(await found(client, "SEARCH NEW")).toEqual(["* SEARCH 2"])
  expect(await found(client, "SEARCH OLD")).toEqual(["* SEARCH"])
  expect(await found(other, "SEARCH OLD")).toEqual(["* SEARCH 1 2"])

  // New mail is reported as recent to one of them.
  const third = await login()
  await append(third, 1)
  expect((await found(other, "NOOP")).filter((line) => /EXISTS|RECENT/.test(line))).toEqual([
    "* 3 EXISTS",
    "* 1 RECENT",
  ])
  expect((await found(client, "NOOP")).filter((line) => /EXISTS|RECENT/.test(line))).toEqual([
    "* 3 EXISTS",
    "* 2 RECENT",
  ])
  await client.say("STORE 1 +FLAGS.SILENT (\\Deleted)")
  expect(await found(client, "EXPUNGE")).toEqual(["* 1 EXPUNGE"])
  expect(await found(client, "SEARCH RECENT")).toEqual(["* SEARCH 1"])

  // A copy is a new message for \Recent.
  await client.say("CREATE Work")
  await client.say("COPY 1 Work")
  expect(await found(client, "SELECT Work")).toContain("* 1 RECENT")
  for (const one of [client, other, third]) one.close()
})

it("\\Recent does not exist in IMAP4rev2", async () => {
  const { login, client } = await makeMailbox()
  await append(client, 1)
  await client.say("ENABLE IMAP4rev2")
  expect((await found(client, "SELECT INBOX")).filter((line) => line.includes("RECENT"))).toEqual([])
  expect(await found(client, "FETCH 1 FLAGS")).toEqual(["* 1 FETCH (FLAGS ())"])
  client.close()
  // It also claimed none.
  const other = await login()
  expect(await found(other, "SELECT INBOX")).toContain("* 1 RECENT")
  other.close()
})

it("INTERNALDATE keeps the client's time zone, and SEARCH uses the day in that zone", async () => {
  const { client } = await makeMailbox()
  const at = async (time: string) => {
    const bytes = Buffer.from("Subject: s\r\n\r\nbody\r\n")
    expect((await client.say(`APPEND INBOX "${time}" {${bytes.length}}`, bytes)).tagged).toMatch(/^OK/)
  }
  await at("24-Mar-2007 23:00:00 +0200")
  await at("25-Mar-2007 00:00:00 +0200")
  await at("25-Mar-2007 23:30:00 -0330")
  await client.say("SELECT INBOX")
  expect(await found(client, "FETCH 1:* INTERNALDATE")).toEqual([
    '* 1 FETCH (INTERNALDATE "24-Mar-2007 23:00:00 +0200")',
    '* 2 FETCH (INTERNALDATE "25-Mar-2007 00:00:00 +0200")',
    '* 3 FETCH (INTERNALDATE "25-Mar-2007 23:30:00 -0330")',
  ])
  expect(await found(client, "SEARCH BEFORE 25-Mar-2007")).toEqual(["* SEARCH 1"])
  expect(await found(client, "SEARCH ON 25-Mar-2007")).toEqual(["* SEARCH 2 3"])
  expect(await found(client, "SEARCH SINCE 26-Mar-2007")).toEqual(["* SEARCH"])
  expect(await found(client, "SORT (ARRIVAL) UTF-8 ALL")).toEqual(["* SORT 1 2 3"])
  client.close()
})

it("HIGHESTMODSEQ is sent by the first command that needs it, and MODSEQ of a search covers its results", async () => {
  const { client } = await makeMailbox()
  await append(client, 4)
  await client.say("SELECT INBOX")
  const first = await found(client, "FETCH 1 MODSEQ")
  expect(first).toEqual([
    expect.stringMatching(/^\* OK \[HIGHESTMODSEQ \d+\]/),
    expect.stringMatching(/^\* 1 FETCH \(MODSEQ \(\d+\)\)/),
  ])
  expect((await found(client, "FETCH 1 MODSEQ")).filter((line) => line.includes("HIGHEST"))).toEqual([])
  const changed = async (number: number) =>
    Number(/MODSEQ \((\d+)\)/.exec((await found(client, `STORE ${number} +FLAGS (\\Seen)`))[0]!)![1])
  const [one, three, two] = [await changed(1), await changed(3), await changed(2)]
  // RFC 4731 section 3.2: of the results only.
  const searched = async (returns: string, set: string) =>
    /MODSEQ (\d+)/.exec((await found(client, `SEARCH RETURN (${returns}) ${set} MODSEQ 1`))[0]!)?.[1]
  expect(await searched("MIN", "1:3")).toBe(String(one))
  expect(await searched("MAX", "1:3")).toBe(String(three))
  expect(await searched("MIN MAX", "1:3")).toBe(String(three))
  expect(await searched("ALL", "1:3")).toBe(String(two))
  expect(await searched("MIN COUNT", "1:3")).toBe(String(two))
  client.close()
})
