/** A message to several subaddress tags of one Mailbox is one message, which each of its tags finds. */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { ImapClient } from "../harness/Imap.ts"
import { converse, upToData } from "../harness/Mail.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let token: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
})

/** Sends one transaction and returns the reply to its data. */
const deliver = async (to: ReadonlyArray<string>, subject: string) => {
  const commands = upToData(to[0]!)
  commands.splice(3, 0, ...to.slice(1).map((other) => `RCPT TO:<${other}>\r\n`))
  const data = `From: Grace <grace@example.org>\r\nSubject: ${subject}\r\n\r\nHello.\r\n.\r\n`
  return (await converse(service.smtpPort, [...commands, data, "QUIT\r\n"])).at(-2)!
}

const makeMailbox = async () => {
  const { secrets, handle } = await makeIdentity(service.base, token)
  const api = (method: string, rest: string, body?: object) =>
    call(service.base, method, `/api/identities/${handle}${rest}`, { token, ...(body === undefined ? {} : { body }) })
  const login = () => ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
  const messages = async (query = "") => (await api("GET", `/messages${query}`)).body.messages
  const address = (tag?: string) => `${handle}${tag === undefined ? "" : `+${tag}`}@mail.localhost`
  return { handle, api, login, messages, address }
}

describe("A transaction with 100 tags of a Mailbox", () => {
  const tags = Array.from({ length: 100 }, (_, n) => `tag${n}`)

  it("stores one message, counts its size once, and raises one Event with all tags", async () => {
    const { handle, api, messages, address } = await makeMailbox()
    const to = tags.map(address)
    expect(await deliver(to, "many")).toMatch(/^250 /)
    const [message, ...others] = await messages()
    expect(others).toEqual([])
    expect(message).toMatchObject({ subject: "many", tag: "tag0", tags })
    const read = (await api("GET", `/messages/${message.id}`)).body
    expect(read.tags).toEqual(tags)
    const recipients = read.headers.filter(({ name }: { name: string }) => name === "Delivered-To")
    expect(recipients.map(({ value }: { value: string }) => value)).toEqual(to)
    const used = service.query(
      (sql) => sql<{ bytes: number }>`
        select bytes_used::int as bytes from mailbox m join identity i on i.id = m.identity_id where i.canonical = ${handle}`,
    )
    expect(await used).toEqual([{ bytes: message.size }])
    const events = (await api("GET", "/events?type=email.received")).body.events
    expect(events).toMatchObject([{ type: "email.received", data: { email_id: message.id, tag: "tag0", tags } }])
  })

  it("is found by each tag, and not by another", async () => {
    const { messages, address } = await makeMailbox()
    await deliver(tags.map(address), "many")
    await deliver([address("tag1")], "single")
    await deliver([address()], "untagged")
    const subjects = async (query: string) => (await messages(query)).map(({ subject }: { subject: string }) => subject)
    for (const tag of tags) {
      const expected = tag === "tag1" ? ["single", "many"] : ["many"]
      expect(await subjects(`?tag=${tag}`), tag).toEqual(expected)
      expect(await subjects(`?query=tag:${tag}`), tag).toEqual(expected)
    }
    expect(await subjects("?tag=tag100")).toEqual([])
    expect(await subjects("?query=-tag:tag99")).toEqual(["untagged", "single"])
  })

  it("is a keyword of each tag in INBOX, and in the folder of each tag", async () => {
    const { api, login, address } = await makeMailbox()
    await deliver(tags.map(address), "many")
    const client = await login()
    await client.say("SELECT INBOX")
    const flags = `FLAGS (${tags.join(" ")} \\Recent)`
    expect((await client.say("FETCH 1 FLAGS")).untagged).toContain(`* 1 FETCH (${flags})`)
    expect((await client.say("FETCH 1 (FLAGS ENVELOPE)")).untagged[0]).toContain(flags)
    for (const tag of ["tag0", "tag99"]) {
      expect((await client.say(`SEARCH KEYWORD ${tag}`)).untagged, tag).toEqual(["* SEARCH 1"])
    }
    expect((await client.say("SEARCH KEYWORD tag100")).untagged).toEqual(["* SEARCH"])
    await api("PATCH", "/mail", { tag_folders: true })
    const folders = (await client.say('LIST "" "Tags/*" RETURN (STATUS (MESSAGES))')).untagged
    const counts = folders.filter((line) => line.startsWith("* STATUS"))
    expect(counts.sort()).toEqual(tags.map((tag) => `* STATUS Tags/${tag} (MESSAGES 1)`).sort())
    await client.say("SELECT Tags/tag99")
    expect((await client.say("FETCH 1 ENVELOPE")).untagged[0]).toContain('"many"')
    client.close()
  })
})

describe("A transaction with several tags of a Mailbox", () => {
  it("stores one message if it also names the Mailbox without a tag, and different spellings of a tag once", async () => {
    const { handle, messages, address } = await makeMailbox()
    const spelled = `${handle.slice(0, 2)}-${handle.slice(2)}+A@mail.localhost`
    expect(await deliver([address(), address("b"), address("a"), spelled], "both")).toMatch(/^250 /)
    expect((await messages()).map(({ tags }: { tags: ReadonlyArray<string> }) => tags)).toEqual([["b", "a"]])
  })

  it("stores nothing twice if it is retried with the recipients in another order", async () => {
    const there = await makeMailbox()
    const late = await makeMailbox()
    const to = [there.address("a"), there.address("b"), there.address(), late.address("c")]
    // The second Mailbox fails after the recipients were accepted.
    await service.query(
      (sql) => sql`alter table message add constraint held check (recipient <> ${sql.literal(`'${to.at(-1)!}'`)})`,
    )
    expect(await deliver(to, "again")).toMatch(/^451 /)
    await service.query((sql) => sql`alter table message drop constraint held`)
    expect(await deliver(to.toReversed(), "again")).toMatch(/^250 /)
    expect(await there.messages()).toMatchObject([{ tags: ["a", "b"] }])
    expect(await late.messages()).toMatchObject([{ tags: ["c"] }])
    // The transaction was answered, so the same data is another message.
    expect(await deliver(to.toReversed(), "again")).toMatch(/^250 /)
    expect(await there.messages()).toHaveLength(2)
  })

  it("is another message than a transaction with other tags", async () => {
    const { messages, address } = await makeMailbox()
    for (const to of [["a"], ["b"], ["a", "b"]]) await deliver(to.map(address), "same")
    expect((await messages()).map(({ tags }: { tags: ReadonlyArray<string> }) => tags)).toEqual([
      ["a", "b"],
      ["b"],
      ["a"],
    ])
  })
})
