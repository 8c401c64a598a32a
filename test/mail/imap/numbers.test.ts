/**
 * Sequence numbers and UIDs in a folder where they differ: its first messages and its last one are removed, so that no
 * number equals its UID, and no message has the UID below UIDNEXT (RFC 9051 sections 2.3.1 and 6.3.2).
 */
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

/** A client whose INBOX holds UIDs 3, 4, 6 and 7 as numbers 1 to 4; UIDNEXT is 9. All but 6 and 7 are read. */
const open = async () => {
  const { secrets } = await makeIdentity(service.base, token)
  const login = () => ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
  const client = await login()
  for (let n = 1; n <= 8; n++) await client.append("INBOX", `Subject: letter ${n}\r\n\r\ntext ${n}\r\n`)
  await client.say("SELECT INBOX")
  await client.say("UID STORE 1,2,5,8 +FLAGS.SILENT (\\Deleted)")
  await client.say("EXPUNGE")
  await client.say("UID STORE 1:5 +FLAGS.SILENT (\\Seen)")
  await client.say("UNSELECT")
  return { client, login }
}

it("SELECT reports the first unseen message by number, and UIDNEXT after the highest assigned UID", async () => {
  const { client } = await open()
  const { untagged } = await client.say("SELECT INBOX")
  expect(untagged).toContain("* 4 EXISTS")
  expect(untagged.find((line) => line.includes("UNSEEN"))).toMatch(/\[UNSEEN 3\]/)
  expect(untagged.find((line) => line.includes("UIDNEXT"))).toMatch(/\[UIDNEXT 9\]/)
  expect((await client.say("STATUS INBOX (UIDNEXT MESSAGES UNSEEN)")).untagged).toEqual([
    "* STATUS INBOX (UIDNEXT 9 MESSAGES 4 UNSEEN 2)",
  ])
  client.close()
})

it("sequence sets and UID sets include their last message and end there", async () => {
  const { client } = await open()
  await client.say("SELECT INBOX")
  const uids = async (command: string) =>
    (await client.say(command)).untagged.map((line) => Number(/UID (\d+)/.exec(line)![1]))
  expect(await uids("FETCH 1:4 (UID)")).toEqual([3, 4, 6, 7])
  expect(await uids("FETCH 2:3 (UID)")).toEqual([4, 6])
  expect(await uids("FETCH * (UID)")).toEqual([7])
  expect(await uids("UID FETCH 4:6 (UID)")).toEqual([4, 6])
  expect(await uids("UID FETCH 1:3 (UID)")).toEqual([3])
  expect(await uids("UID FETCH 5 (UID)")).toEqual([])
  // `*` is the last message, at either end of a range (section 9, seq-range).
  expect(await uids("UID FETCH 100:* (UID)")).toEqual([7])
  expect((await client.say("FETCH 5 (UID)")).tagged).toMatch(/^BAD /)
  expect((await client.say("FETCH 4:5 (UID)")).tagged).toMatch(/^BAD /)
  expect((await client.say("STORE 5 +FLAGS (\\Seen)")).tagged).toMatch(/^BAD /)
  expect((await client.say("COPY 5 Trash")).tagged).toMatch(/^BAD /)
  expect((await client.say("SEARCH UNSEEN")).untagged).toEqual(["* SEARCH 3 4"])
  expect((await client.say("UID SEARCH UNSEEN")).untagged).toEqual(["* SEARCH 6 7"])
  expect((await client.say("SEARCH UID 4:6")).untagged).toEqual(["* SEARCH 2 3"])
  expect((await client.say("UID SEARCH 2:3")).untagged).toEqual(["* SEARCH 4 6"])
  expect((await client.say("SORT (REVERSE ARRIVAL) UTF-8 ALL")).untagged).toEqual(["* SORT 4 3 2 1"])
  expect((await client.say("UID SORT (REVERSE ARRIVAL) UTF-8 ALL")).untagged).toEqual(["* SORT 7 6 4 3"])
  client.close()
})

it("a saved search refers to the same messages after others were removed", async () => {
  const { client } = await open()
  await client.say("SELECT INBOX")
  await client.say("SEARCH RETURN (SAVE) SUBJECT 6")
  await client.say("UID STORE 3 +FLAGS.SILENT (\\Deleted)")
  await client.say("EXPUNGE")
  expect((await client.say("UID FETCH $ (UID)")).untagged).toEqual(["* 2 FETCH (UID 6)"])
  expect((await client.say("FETCH $ (UID)")).untagged).toEqual(["* 2 FETCH (UID 6)"])
  expect((await client.say("SEARCH RETURN (MIN MAX COUNT) $")).untagged[0]).toMatch(/MIN 2 MAX 2 COUNT 1$/)
  client.close()
})

it("EXPUNGE numbers account for the previous removals", async () => {
  const { client, login } = await open()
  const other = await login()
  await other.say("SELECT INBOX")
  await client.say("SELECT INBOX")
  await client.say("UID STORE 3,4,7 +FLAGS.SILENT (\\Deleted)")
  // UID EXPUNGE removes only given messages with \Deleted (RFC 4315).
  expect((await client.say("UID EXPUNGE 3:6")).untagged).toEqual(["* 1 EXPUNGE", "* 1 EXPUNGE"])
  expect((await client.say("EXPUNGE")).untagged).toEqual(["* 2 EXPUNGE"])
  expect((await other.say("NOOP")).untagged.filter((line) => line.endsWith("EXPUNGE"))).toEqual([
    "* 1 EXPUNGE",
    "* 1 EXPUNGE",
    "* 2 EXPUNGE",
  ])
  expect((await other.say("UID FETCH 1:* (UID)")).untagged).toEqual(["* 1 FETCH (UID 6)"])
  client.close()
  other.close()
})

it("COPY reports old and new UIDs, and EXPUNGE keeps messages of other folders", async () => {
  const { client } = await open()
  await client.say("SELECT INBOX")
  expect((await client.say("COPY 2:3 Trash")).tagged).toMatch(/^OK \[COPYUID \d+ 4,6 1:2\]/)
  await client.say("STORE 2 +FLAGS.SILENT (\\Deleted)")
  await client.say("EXPUNGE")
  expect((await client.say("STATUS Trash (MESSAGES)")).untagged).toEqual(["* STATUS Trash (MESSAGES 2)"])
  await client.say("SELECT Trash")
  const fetched = await client.say("UID FETCH 1 (BODY.PEEK[TEXT])")
  expect(fetched.untagged.join("\n")).toContain("text 4")
  client.close()
})
