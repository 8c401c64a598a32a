/** IMAP changes interrupted at specific moments (docs/crash-matrix.md), and lost notifications. */
import { limits } from "@svc/domain/mail/FolderProtocol"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { send } from "../../harness/Mail.ts"
import { startService, type OwnService } from "../../harness/Service.ts"

let service: OwnService
let token: string
beforeAll(async () => {
  service = await startService()
  token = (await signUp(service.base)).session
  // The database shuts down, which is the error that a running statement gets.
  await run(`create function test_down() returns trigger language plpgsql as
    $$ begin raise exception 'terminating connection' using errcode = '57P01'; end $$`)
})
afterAll(() => service.stop())

const run = (statement: string) => service.query((sql) => sql.unsafe(statement))

/** Blocks the commit of this kind of change to the table while the effect runs. */
const whileDown = async <A>(change: string, when: string, work: () => Promise<A>): Promise<A> => {
  const table = change.split(" ").at(-1)!
  await run(`create trigger test_down before ${change} for each row when (${when}) execute function test_down()`)
  try {
    return await work()
  } finally {
    await run(`drop trigger test_down on ${table}`)
  }
}

const makeMailbox = async () => {
  const { secrets, handle } = await makeIdentity(service.base, token)
  const client = await ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
  const api = (method: string, rest: string, body?: object) =>
    call(service.base, method, `/api/identities/${handle}${rest}`, { token, ...(body === undefined ? {} : { body }) })
  const receive = (subject: string) =>
    send(service.smtpPort, { from: "grace@example.org", to: `${handle}@mail.localhost`, subject, text: "t" })
  return { handle, client, api, receive }
}

const subjects = async (api: (method: string, rest: string) => Promise<{ body: any }>) =>
  (await api("GET", "/drafts")).body.drafts.map(({ subject }: { subject: string }) => subject)

describe("a draft", () => {
  const written = "From: ada@mail.localhost\nTo: grace@example.org\nSubject: Filed\n\nHello\n"

  it("is removed and appended again once if its message was stored but not the draft", async () => {
    const { client, api } = await makeMailbox()
    const refused = await whileDown("insert on draft", "true", () => client.append("Drafts", written, "\\Draft"))
    expect(refused.tagged).toMatch(/^NO \[UNAVAILABLE\]/)
    expect((await client.say("SELECT Drafts")).untagged).toContain("* 0 EXISTS")
    expect(await subjects(api)).toEqual([])
    expect((await client.append("Drafts", written, "\\Draft")).tagged).toMatch(/^OK/)
    await client.say("NOOP")
    expect((await client.say("FETCH 1:* ENVELOPE")).untagged).toHaveLength(1)
    expect(await subjects(api)).toEqual(["Filed"])
    expect((await api("GET", "/messages")).body.messages).toEqual([])
    client.close()
  })

  it("is shown by the next synchronization if its old message was removed but the new one was not added", async () => {
    const { client, api } = await makeMailbox()
    const { body } = await api("POST", "/drafts", { subject: "One", text: "t" })
    expect((await client.say("SELECT Drafts")).untagged).toContain("* 1 EXISTS")
    await api("PUT", `/drafts/${body.id}`, { subject: "Two", text: "t" })
    const noop = await whileDown("insert on placed", "true", () => client.say("NOOP"))
    expect(noop.untagged.filter((line) => /EXPUNGE|EXISTS/.test(line))).not.toContain("* 1 EXISTS")
    expect(await subjects(api)).toEqual(["Two"])
    await client.say("NOOP")
    const shown = (await client.say("FETCH 1:* ENVELOPE")).untagged
    expect(shown).toHaveLength(1)
    expect(shown[0]).toContain('"Two"')
    client.close()
  })
})

describe("a change", () => {
  it("has no effect if it fails before its commit, and the response asks the client to retry", async () => {
    const { client, api, receive } = await makeMailbox()
    await receive("one")
    await client.say("SELECT INBOX")
    for (const [change, when, command] of [
      ["update on message", "true", "STORE 1 +FLAGS (\\Flagged)"],
      ["insert on placed", "true", "COPY 1 Trash"],
      ["delete on placed", "true", "MOVE 1 Trash"],
      ["insert on folder", "true", "CREATE Work"],
    ] as const) {
      const { tagged } = await whileDown(change, when, () => client.say(command))
      expect([command, tagged]).toEqual([command, expect.stringMatching(/^NO \[UNAVAILABLE\]/)])
    }
    expect((await client.say("STATUS Trash (MESSAGES)")).untagged).toEqual(["* STATUS Trash (MESSAGES 0)"])
    expect((await client.say('LIST "" Work')).untagged).toEqual([])
    expect((await client.say("FETCH 1 FLAGS")).untagged).toEqual([expect.not.stringContaining("Flagged")])
    expect((await client.say("STORE 1 +FLAGS (\\Flagged)")).tagged).toMatch(/^OK/)
    expect((await client.say("MOVE 1 Trash")).tagged).toMatch(/^OK/)
    expect((await client.say("STATUS Trash (MESSAGES)")).untagged).toEqual(["* STATUS Trash (MESSAGES 1)"])
    expect((await api("GET", "/messages")).body.messages).toHaveLength(1)
    client.close()
  })

  it("copies either all messages or none", async () => {
    const { client, receive } = await makeMailbox()
    await receive("many")
    await client.say("SELECT INBOX")
    for (let n = 0; n < 10; n++) await client.say("COPY 1:* INBOX")
    const there = async () => (await client.say("STATUS Trash (MESSAGES UIDNEXT)")).untagged
    const before = await there()
    expect(before[0]).toContain("MESSAGES 0")
    // It fails at a message after the first batch of changes that are batched.
    const cut = await whileDown("insert on placed", `new.uid > ${limits.messages}`, () => client.say("COPY 1:* Trash"))
    expect(cut.tagged).toMatch(/^NO \[UNAVAILABLE\]/)
    expect(await there()).toEqual(before)
    await client.say("NOOP")
    expect((await client.say("COPY 1:* Trash")).tagged).toMatch(/^OK \[COPYUID \d+ 1:1024 1:1024\]/)
    expect((await there())[0]).toMatch(/MESSAGES 1024 UIDNEXT 1025/)
    // Exactly the given messages.
    await client.say("STORE 3 +FLAGS.SILENT (\\Deleted)")
    await client.say("EXPUNGE")
    expect((await client.say("UID COPY 2,4:5,1000:1003 Junk")).tagged).toContain("2,4:5,1000:1003 1:7]")
    client.close()
  })

  it("is repeated after a failure between two batches, and moves no message twice", async () => {
    const { client, receive, handle } = await makeMailbox()
    await receive("many")
    await client.say("SELECT INBOX")
    for (let n = 0; n < 10; n++) await client.say("COPY 1:* INBOX")
    const count = async (folder: string) =>
      Number(/MESSAGES (\d+)/.exec((await client.say(`STATUS ${folder} (MESSAGES)`)).untagged[0]!)![1])
    const all = 1024
    expect(await count("INBOX")).toBe(all)
    // No UID of the old folder that appears in the new one is above those of the first batch.
    const later = `new.uid > ${limits.messages}`
    const cut = await whileDown("insert on placed", later, () => client.say("MOVE 1:* Trash"))
    expect(cut.tagged).toMatch(/^NO \[UNAVAILABLE\]/)
    expect([await count("INBOX"), await count("Trash")]).toEqual([all - limits.messages, limits.messages])
    await client.say("NOOP")
    expect((await client.say("MOVE 1:* Trash")).tagged).toMatch(/^OK/)
    expect([await count("INBOX"), await count("Trash")]).toEqual([0, all])

    await client.say("SELECT Trash")
    // Folder flags: each of the two batches is a commit.
    const marking = () => client.say("STORE 1:* +FLAGS.SILENT (\\Deleted)")
    const half = await whileDown("update on placed", later, marking)
    expect(half.tagged).toMatch(/^NO \[UNAVAILABLE\]/)
    const [before] = await marks(handle)
    expect(before).toMatchObject({ deleted: limits.messages })
    expect((await marking()).tagged).toMatch(/^OK/)
    // Messages that have the flag already are not changed again.
    expect(await marks(handle)).toEqual([{ ...before, deleted: all }])
    const unchanged = await client.say("STORE 1:* (UNCHANGEDSINCE 1) FLAGS.SILENT ()")
    expect(unchanged.tagged).toContain("[MODIFIED 1:1024]")
    client.close()
  })

  const marks = (handle: string) =>
    service.query(
      (sql) => sql`
        select count(*) filter (where deleted)::int as deleted, min(p.modseq) filter (where deleted)::int as changed
        from placed p join identity i on i.id = p.identity_id where i.handle = ${handle}`,
    )

  it("is reported by the next NOOP if its notification was lost", async () => {
    const { handle, client, receive } = await makeMailbox()
    await receive("one")
    await client.say("SELECT INBOX")
    // No notification is sent.
    await run(`
      with box as (
        update mailbox b set modseq = b.modseq + 1 from identity i where i.id = b.identity_id and i.handle = '${handle}'
        returning b.identity_id, b.modseq
      )
      update message m set flagged = true, modseq = box.modseq from box where m.identity_id = box.identity_id`)
    const { untagged } = await client.say("NOOP")
    expect(untagged).toEqual([expect.stringMatching(/^\* 1 FETCH \(.*\\Flagged/)])
    client.close()
  })
})
