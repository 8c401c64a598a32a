/**
 * Conditional changes and resynchronization (RFC 7162). In every test the first message is gone before the client looks,
 * so that no UID equals its sequence number, and messages are missing below UIDNEXT.
 */
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { ImapClient } from "../../harness/Imap.ts"
import { sharedService, type TestService } from "../../harness/Service.ts"

let service: TestService
let token: string
beforeAll(async () => {
  service = await sharedService()
  token = (await signUp(service.base)).session
})

const letter = (n: number) => `Subject: letter ${n}\r\n\r\ntext\r\n`

/** A client in INBOX with the messages of UID 2, 3 and 5 as numbers 1, 2 and 3, and a second client for other changes. */
const open = async () => {
  const { handle, secrets } = await makeIdentity(service.base, token)
  const { username, password } = secrets.imap
  const login = () => ImapClient.login(service.imapPort, username, password)
  const [client, other] = [await login(), await login()]
  for (let n = 1; n <= 6; n++) await other.append("INBOX", letter(n))
  await other.say("SELECT INBOX (CONDSTORE)")
  await other.say("UID STORE 1,4,6 +FLAGS.SILENT (\\Deleted)")
  await other.say("EXPUNGE")
  await client.say("SELECT INBOX (CONDSTORE)")
  const modseqs = async () =>
    Object.fromEntries(
      (await client.say("UID FETCH 1:* (MODSEQ)")).untagged.map((line) => {
        const [, uid, modseq] = /UID (\d+) MODSEQ \((\d+)\)/.exec(line)!
        return [uid, Number(modseq)]
      }),
    )
  const highest = async () => {
    const { untagged } = await client.say("STATUS INBOX (HIGHESTMODSEQ)")
    return Number(/HIGHESTMODSEQ (\d+)/.exec(untagged[0]!)![1])
  }
  const close = () => {
    client.close()
    other.close()
  }
  /** Changes the flag of a message through the API. */
  const flagByApi = async (subject: string) => {
    const path = `/api/identities/${handle}/messages`
    const { messages } = (await call(service.base, "GET", path, { token })).body
    const { id } = messages.find((one: { subject: string }) => one.subject === subject)
    expect((await call(service.base, "PATCH", `${path}/${id}`, { token, body: { flagged: true } })).status).toBe(200)
  }
  return { client, other, login, modseqs, highest, flagByApi, close }
}

describe("STORE with UNCHANGEDSINCE", () => {
  it("returns modified messages by sequence number and does not change them", async () => {
    const { client, other, highest, close } = await open()
    const before = await highest()
    await other.say("UID STORE 3 +FLAGS (\\Flagged)")
    const stored = await client.say(`STORE 1:3 (UNCHANGEDSINCE ${before}) +FLAGS (\\Answered)`)
    expect(stored.tagged).toMatch(/^OK \[MODIFIED 2\] /)
    const flags = (await client.say("UID FETCH 2:5 (FLAGS)")).untagged
    expect(flags.map((line) => /UID (\d+)/.exec(line)![1] + (line.includes("\\Answered") ? " answered" : ""))).toEqual([
      "2 answered",
      "3",
      "5 answered",
    ])
    close()
  })

  it("returns modified messages by UID in UID STORE", async () => {
    const { client, other, highest, close } = await open()
    const before = await highest()
    await other.say("UID STORE 3,5 +FLAGS (\\Flagged)")
    const stored = await client.say(`UID STORE 2:5 (UNCHANGEDSINCE ${before}) +FLAGS (\\Answered)`)
    expect(stored.tagged).toMatch(/^OK \[MODIFIED 3,5\] /)
    close()
  })

  it("changes a message with the given MODSEQ, but not one with a MODSEQ higher by one", async () => {
    const { client, modseqs, close } = await open()
    const at = (await modseqs())["5"]!
    expect((await client.say(`UID STORE 5 (UNCHANGEDSINCE ${at}) +FLAGS (\\Seen)`)).tagged).toMatch(/^OK STORE/)
    expect((await client.say(`UID STORE 5 (UNCHANGEDSINCE ${at}) +FLAGS (\\Flagged)`)).tagged).toMatch(
      /^OK \[MODIFIED 5\] /,
    )
    close()
  })
})

describe("STORE with .SILENT", () => {
  const of = (uid: number, lines: ReadonlyArray<string>) =>
    lines.filter((line) => line.includes(`UID ${uid} `)).map((line) => line.replace(/\d{2,}/g, "n"))

  it("returns the MODSEQ of stored messages, and the flags of those that others changed meanwhile", async () => {
    const { client, other, highest, close } = await open()
    const before = await highest()
    await other.say("UID STORE 3 +FLAGS (\\Flagged)")
    const { untagged } = await client.say(`UID STORE 2:5 (UNCHANGEDSINCE ${before}) +FLAGS.SILENT (\\Answered)`)
    expect(of(2, untagged)).toEqual(["* 1 FETCH (UID 2 MODSEQ (n))"])
    expect(of(3, untagged)).toEqual(["* 2 FETCH (UID 3 FLAGS (\\Flagged) MODSEQ (n))"])
    expect(of(5, untagged)).toEqual(["* 3 FETCH (UID 5 MODSEQ (n))"])
    close()
  })

  it("hides only its own change, not later ones", async () => {
    const { other, login, close } = await open()
    const client = await login()
    await client.say("SELECT INBOX")
    expect((await client.say("UID STORE 3 +FLAGS.SILENT (\\Answered)")).untagged).toEqual([])
    await other.say("UID STORE 3 +FLAGS (\\Flagged)")
    expect(of(3, (await client.say("NOOP")).untagged)).toEqual(["* 2 FETCH (UID 3 FLAGS (\\Answered \\Flagged))"])
    client.close()
    close()
  })
})

describe("FETCH with CHANGEDSINCE", () => {
  // Flags, sizes, structures and bytes are read in different ways.
  it.each(["FLAGS", "RFC822.SIZE", "ENVELOPE", "BODY.PEEK[HEADER.FIELDS (SUBJECT)]"])(
    "returns %s of messages that changed only in the folder, by COPY or \\Deleted",
    async (item) => {
      const { client, other, highest, close } = await open()
      const fetched = async (since: number) =>
        (await client.say(`UID FETCH 1:* (${item}) (CHANGEDSINCE ${since})`)).untagged
          // Changed flags are also sent separately.
          .filter((line) => line.includes(item.split(/[ .]/, 1)[0]!))
          .map((line) => /UID (\d+)/.exec(line)![1])
      const before = await highest()
      await other.say("UID STORE 3 +FLAGS.SILENT (\\Deleted)")
      expect(await fetched(before)).toEqual(["3"])
      await other.say("UID COPY 2 INBOX")
      await client.say("NOOP")
      expect(await fetched(before)).toEqual(["3", "7"])
      const after = await highest()
      expect(await fetched(after)).toEqual([])
      expect(await fetched(after - 1)).toEqual(["7"])
      close()
    },
  )
})

describe("The MODSEQ of a message", () => {
  it("increases with changes of the message, and with those in the folder: \\Deleted and COPY", async () => {
    const { client, other, modseqs, highest, flagByApi, close } = await open()
    const before = await highest()
    await other.say("UID STORE 3 +FLAGS.SILENT (\\Deleted)")
    await flagByApi("letter 5")
    await other.say("UID COPY 2 INBOX")
    // The flags of others' changes are sent before a response.
    await client.say("NOOP")
    const { 2: same, 3: deleted, 5: flagged, 7: copy } = await modseqs()
    expect([same! <= before, deleted! > before, flagged! > deleted!, copy! > flagged!]).toEqual([
      true,
      true,
      true,
      true,
    ])
    expect(copy).toBe(await highest())
    // Flags, messages and searches are read in different ways.
    const sizes = (await client.say("UID FETCH 1:* (RFC822.SIZE MODSEQ)")).untagged
    expect(sizes.map((line) => Number(/MODSEQ \((\d+)\)/.exec(line)![1]))).toEqual([same, deleted, flagged, copy])
    for (const [uid, modseq] of [
      [2, same],
      [3, deleted],
      [5, flagged],
      [7, copy],
    ])
      expect((await client.say(`UID SEARCH UID ${uid} MODSEQ 1`)).untagged).toEqual([
        `* SEARCH ${uid} (MODSEQ ${modseq})`,
      ])
    close()
  })
})

describe("SELECT with QRESYNC", () => {
  it("reports exactly the messages that changed or vanished since the client's MODSEQ", async () => {
    const { client, other, login, highest, close } = await open()
    const before = await highest()
    const [validity] = (await client.say("STATUS INBOX (UIDVALIDITY)")).untagged.map(
      (line) => /UIDVALIDITY (\d+)/.exec(line)![1],
    )
    await other.say("UID STORE 3 +FLAGS.SILENT (\\Deleted)")
    await other.say("EXPUNGE")
    await other.say("UID STORE 5 +FLAGS (\\Flagged)")
    const resumed = await login()
    await resumed.say("ENABLE QRESYNC")
    const { untagged, tagged } = await resumed.say(`SELECT INBOX (QRESYNC (${validity} ${before}))`)
    expect(tagged).toMatch(/^OK/)
    expect(untagged.filter((line) => line.includes("VANISHED"))).toEqual(["* VANISHED (EARLIER) 3"])
    expect(untagged.filter((line) => line.includes("FETCH"))).toEqual([
      expect.stringMatching(/^\* 2 FETCH \(UID 5 .*\\Flagged/),
    ])
    resumed.close()
    close()
  })

  it("reports changes of the messages that the client knows only", async () => {
    const { client, other, login, highest, close } = await open()
    const before = await highest()
    const [status] = (await client.say("STATUS INBOX (UIDVALIDITY)")).untagged
    const validity = /UIDVALIDITY (\d+)/.exec(status!)![1]
    await other.append("INBOX", letter(7))
    await other.say("UID STORE 2,5,7 +FLAGS (\\Flagged)")
    await other.say("UID STORE 3,7 +FLAGS.SILENT (\\Deleted)")
    await other.say("EXPUNGE")
    const resumed = await login()
    await resumed.say("ENABLE QRESYNC")
    const { untagged } = await resumed.say(`SELECT INBOX (QRESYNC (${validity} ${before} 2:3))`)
    expect(untagged.filter((line) => line.includes("VANISHED"))).toEqual(["* VANISHED (EARLIER) 3"])
    expect(untagged.filter((line) => line.includes("FETCH"))).toEqual([expect.stringMatching(/^\* 1 FETCH \(UID 2 /)])
    resumed.close()
    close()
  })

  it("reports a message that was moved away as vanished, like the session that has the folder open", async () => {
    const { client, other, login, highest, close } = await open()
    const before = await highest()
    const [status] = (await client.say("STATUS INBOX (UIDVALIDITY)")).untagged
    const validity = /UIDVALIDITY (\d+)/.exec(status!)![1]
    await other.say("UID MOVE 3 Trash")
    expect((await client.say("NOOP")).untagged).toContain("* 2 EXPUNGE")
    const resumed = await login()
    await resumed.say("ENABLE QRESYNC")
    const { untagged } = await resumed.say(`SELECT INBOX (QRESYNC (${validity} ${before}))`)
    expect(untagged).toContain("* VANISHED (EARLIER) 3")
    resumed.close()
    close()
  })

  it("reports no changes if UIDVALIDITY differs", async () => {
    const { login, close } = await open()
    const resumed = await login()
    await resumed.say("ENABLE QRESYNC")
    const { untagged } = await resumed.say("SELECT INBOX (QRESYNC (1 1))")
    expect(untagged.filter((line) => /VANISHED|FETCH/.test(line))).toEqual([])
    resumed.close()
    close()
  })
})

describe("EXPUNGE and CLOSE", () => {
  it("keep messages that were not reported to the client", async () => {
    const { client, other, close } = await open()
    await client.say("UID STORE 5 +FLAGS.SILENT (\\Deleted)")
    await other.append("INBOX", letter(7))
    await other.say("UID STORE 7 +FLAGS.SILENT (\\Deleted)")
    await client.say("EXPUNGE")
    expect((await other.say("UID SEARCH ALL")).untagged).toContain("* SEARCH 2 3 7")
    close()
  })

  it("remove nothing from a folder that was opened by EXAMINE", async () => {
    const { client, other, close } = await open()
    await other.say("UID STORE 3 +FLAGS.SILENT (\\Deleted)")
    await client.say("EXAMINE INBOX")
    expect((await client.say("EXPUNGE")).tagged).toMatch(/^NO/)
    expect((await client.say("CLOSE")).tagged).toMatch(/^OK/)
    expect((await other.say("UID SEARCH ALL")).untagged).toContain("* SEARCH 2 3 5")
    await client.say("SELECT INBOX")
    await client.say("CLOSE")
    expect((await other.say("UID SEARCH ALL")).untagged).toContain("* SEARCH 2 5")
    close()
  })
})

describe("commands that take sequence numbers", () => {
  it("interpret numbers as sequence numbers, and as UIDs in their UID forms", async () => {
    const { client, other, close } = await open()
    expect((await client.say("FETCH 2 (UID)")).untagged).toEqual(["* 2 FETCH (UID 3)"])
    expect((await client.say("UID FETCH 2 (UID)")).untagged).toEqual(["* 1 FETCH (UID 2)"])
    expect((await client.say("SEARCH UID 5")).untagged).toEqual(["* SEARCH 3"])
    expect((await client.say("UID SEARCH 3")).untagged).toEqual(["* SEARCH 5"])
    expect((await client.say("SORT (SUBJECT) UTF-8 ALL")).untagged).toEqual(["* SORT 1 2 3"])
    expect((await client.say("UID SORT (SUBJECT) UTF-8 ALL")).untagged).toEqual(["* SORT 2 3 5"])
    expect((await client.say("UID THREAD REFERENCES UTF-8 ALL")).untagged).toEqual(["* THREAD (2)(3)(5)"])
    expect((await client.say("COPY 2:3 Trash")).tagged).toMatch(/^OK \[COPYUID \d+ 3,5 1:2\]/)
    expect((await client.say("UID EXPUNGE 2:5")).untagged).toEqual([])
    expect((await client.say("MOVE 1 Junk")).untagged).toEqual([
      expect.stringMatching(/^\* OK \[COPYUID \d+ 2 1\]/),
      "* 1 EXPUNGE",
    ])
    await other.append("INBOX", `Message-ID: <plan@x.example>\r\n${letter(7)}`)
    await other.append("INBOX", `Message-ID: <reply@x.example>\r\nIn-Reply-To: <plan@x.example>\r\n${letter(8)}`)
    await other.append("INBOX", `References: <reply@x.example>\r\n${letter(9)}`)
    await client.say("NOOP")
    expect((await client.say("UID THREAD REFERENCES UTF-8 UID 7:9")).untagged).toContain("* THREAD (7 8 9)")
    close()
  })

  it("UID EXPUNGE removes only the given messages with \\Deleted", async () => {
    const { client, close } = await open()
    await client.say("UID STORE 2,5 +FLAGS.SILENT (\\Deleted)")
    expect((await client.say("UID EXPUNGE 3:5")).untagged).toEqual(["* 3 EXPUNGE"])
    expect((await client.say("UID SEARCH ALL")).untagged).toEqual(["* SEARCH 2 3"])
    close()
  })
})
