/** The order that SORT gives messages, and the days by which SEARCH finds them, over a real Mailbox (RFC 5256, RFC 5957). */
import { beforeAll, expect, it } from "vitest"
import { makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { sharedService, type TestService } from "../../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

it("SORT uses the mailbox of the first address, including groups and comments", async () => {
  const { secrets } = await makeIdentity(service.base, (await signUp(service.base)).session)
  const client = await ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
  const fields: ReadonlyArray<string> = [
    "delta@x.example",
    "(a remark) bravo@x.example",
    "charlie: zulu@x.example, alpha@x.example;",
    '"Echo (not a comment)" <echo (why) @ x.example>, alpha@x.example',
    'Foxtrot <"alpha tango"@x.example>',
    "",
    "golf (Golf: a comment; with, everything)",
  ]
  for (const value of fields) {
    await client.append(
      "INBOX",
      ["From", "To", "Cc"].map((name) => (value === "" ? "" : `${name}: ${value}\r\n`)).join("") +
        "Subject: s\r\n\r\nx\r\n",
    )
  }
  await client.say("SELECT INBOX")
  const sorted = async (keys: string) => (await client.say(`SORT (${keys}) UTF-8 ALL`)).untagged[0]
  for (const key of ["CC", "FROM", "TO"]) {
    expect(await sorted(key), key).toBe("* SORT 6 5 2 3 1 4 7")
    expect(await sorted(`REVERSE ${key}`), key).toBe("* SORT 7 4 1 3 2 5 6")
  }
  for (const key of ["DISPLAYFROM", "DISPLAYTO"]) expect(await sorted(key), key).toBe("* SORT 6 2 3 1 4 5 7")
  client.close()
})

it("SEARCH compares the day in the Date field as written, without its time and zone", async () => {
  const { secrets } = await makeIdentity(service.base, (await signUp(service.base)).session)
  const client = await ImapClient.login(service.imapPort, secrets.imap.username, secrets.imap.password)
  const dates = ["Date: Tue, 3 May 2022 23:30:00 -0800\r\n", "Date: Wed, 04 may 2022 00:10:00 +0900\r\n", ""]
  for (const date of dates) await client.append("INBOX", `${date}Subject: s\r\n\r\nx\r\n`)
  await client.say("SELECT INBOX")
  const found = async (keys: string) => (await client.say(`SEARCH ${keys}`)).untagged[0]
  expect(await found("SENTON 3-May-2022")).toBe("* SEARCH 1")
  expect(await found("SENTON 4-May-2022")).toBe("* SEARCH 2")
  expect(await found("SENTBEFORE 4-May-2022")).toBe("* SEARCH 1")
  expect(await found("SENTSINCE 3-May-2022 SENTBEFORE 5-May-2022")).toBe("* SEARCH 1 2")
  // A message without the field was sent on the day of its arrival.
  expect(await found("SENTSINCE 5-May-2022")).toBe("* SEARCH 3")
  expect([await found("YOUNGER 3600"), await found("OLDER 3600")]).toEqual(["* SEARCH 1 2 3", "* SEARCH"])
  // SORT and THREAD return the messages that were searched for, and no others.
  expect((await client.say("SORT (REVERSE DATE) UTF-8 2:3")).untagged[0]).toBe("* SORT 3 2")
  expect((await client.say("SORT (DATE) UTF-8 ALL")).untagged[0]).toBe("* SORT 2 1 3")
  const [thread] = (await client.say("THREAD REFERENCES UTF-8 2:3")).untagged
  expect(thread!.match(/\d+/g)).toEqual(["2", "3"])
  await client.append("INBOX", `Subject: s\r\n\r\n${"x".repeat(1000)}\r\n`)
  await client.say("NOOP")
  expect((await client.say("SORT (SIZE) UTF-8 1,3:4")).untagged[0]).toBe("* SORT 3 1 4")
  const size = Number(/RFC822.SIZE (\d+)/.exec((await client.say("FETCH 4 RFC822.SIZE")).untagged[0]!)![1])
  expect([await found(`LARGER ${size}`), await found(`LARGER ${size - 1}`)]).toEqual(["* SEARCH", "* SEARCH 4"])
  // A change in the folder counts like one of the message.
  await client.say("STORE 2 +FLAGS (\\Deleted)")
  const [, modseq] = /MODSEQ \((\d+)\)/.exec((await client.say("FETCH 2 MODSEQ")).untagged.at(-1)!)!
  expect(await found(`MODSEQ ${modseq}`)).toBe(`* SEARCH 2 (MODSEQ ${modseq})`)
  expect([await found(`4 SMALLER ${size}`), await found(`4 SMALLER ${size + 1}`)]).toEqual(["* SEARCH", "* SEARCH 4"])
  client.close()
})
