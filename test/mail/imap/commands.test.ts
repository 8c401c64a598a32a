/** What commands return and change, in sessions of a Mailbox in memory. */
import { Unavailable } from "@svc/domain/problems/Problem"
import * as IdleNotifier from "@svc/mail-gateway/mail/imap/session/IdleNotifier"
import type { Store } from "@svc/mail-gateway/mail/imap/session/Store"
import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import * as MemoryStore from "./MemoryStore.ts"
import { append, login, open, type Options } from "./Sessions.ts"

/** Sends the commands of one session, and returns what it said to those after the first. */
const said = async (commands: ReadonlyArray<string>, options?: Options) => {
  const session = await open(options)
  await session.feed(Buffer.from(login))
  session.forget()
  await session.feed(Buffer.from(commands.map((command) => command.replace(/\r?\n?$/, "\r\n")).join("")))
  return session.said()
}
const letters = ["a", "b", "c", "d"].map((tag) => append(tag))

describe("FETCH", () => {
  it("marks only messages as read that it returns with CHANGEDSINCE", async () => {
    const text = await said([
      ...letters.slice(0, 2),
      "d SELECT INBOX",
      "e STORE 1:2 FLAGS ()",
      "f STORE 2 +FLAGS (\\Flagged)",
      "g FETCH 1:2 (BODY[TEXT]) (CHANGEDSINCE 4)",
      "h FETCH 1 FLAGS",
    ])
    expect(text.match(/\* \d FETCH \(.*BODY\[TEXT\]/g)).toEqual([expect.stringMatching(/^\* 2 /)])
    expect(text).toMatch(/g OK .*\r\n\* 1 FETCH \(FLAGS \(\\Recent\)\)\r\nh OK/)
  })

  it("returns an item once that is requested and implied, and content without NUL as a plain literal", async () => {
    const text = await said([
      letters[0]!,
      "b SELECT INBOX",
      "c UID FETCH 1 (UID MODSEQ RFC822.SIZE) (CHANGEDSINCE 1)",
      "d FETCH 1 (BINARY.PEEK[1])",
      "e FETCH 1 (BINARY.SIZE[] BINARY.PEEK[])",
      "f FETCH 1 RFC822.SIZE (CHANGEDSINCE 1)",
      "g FETCH 1 (BINARY.PEEK[1]<1.2> BODY.PEEK[1]<1.2> BODY.PEEK[1]<9.2>)",
    ])
    expect(text).toContain("(BINARY[1]<1> {2}\r\nex BODY[1]<1> {2}\r\nex BODY[1]<9> {0}\r\n)\r\ng OK")
    expect(text).toMatch(/\* 1 FETCH \(MODSEQ \(2\) RFC822\.SIZE \d+\)\r\nf OK/)
    expect(text).toMatch(/\* 1 FETCH \(UID 1 MODSEQ \(2\) RFC822\.SIZE \d+\)\r\nc OK/)
    expect(text).toContain("* 1 FETCH (BINARY[1] {4}\r\ntext)\r\nd OK")
    const [, size, length] = /\(BINARY\.SIZE\[\] (\d+) BINARY\[\] \{(\d+)\}\r\n/.exec(text)!
    expect(size).toBe(length)
  })

  it("reports removed messages of its range with VANISHED, without those that the session still knows", async () => {
    const store = MemoryStore.make()
    const setUp = [...letters, "e SELECT INBOX", "f STORE 1,3 +FLAGS (\\Deleted)", "g EXPUNGE"]
    await said(setUp, { store })
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}a ENABLE QRESYNC\r\nb SELECT INBOX\r\n`))
    const other = await open({ store })
    await other.feed(Buffer.from(`${login}a SELECT INBOX\r\nb STORE 2 +FLAGS (\\Deleted)\r\nc EXPUNGE\r\n`))
    session.forget()
    const vanished = async (set: string) => {
      await session.feed(Buffer.from(`d UID FETCH ${set} FLAGS (CHANGEDSINCE 1 VANISHED)\r\n`))
      const lines = session.said().split("\r\n")
      session.forget()
      return lines.filter((line) => line.includes("(EARLIER)"))
    }
    expect(await vanished("1:4")).toEqual(["* VANISHED (EARLIER) 1,3"])
    expect(await vanished("2:3")).toEqual(["* VANISHED (EARLIER) 3"])
    expect(await vanished("2")).toEqual([])
    // The star is the highest UID that was assigned, although its message is removed.
    await other.feed(Buffer.from(`${append("d")}e STORE 2 +FLAGS (\\Deleted)\r\nf EXPUNGE\r\n`))
    await session.feed(Buffer.from("e NOOP\r\n"))
    session.forget()
    expect(await vanished("5:*")).toEqual(["* VANISHED (EARLIER) 5"])
  })

  it("returns a removed message by its number, and says that it was removed", async () => {
    const store = MemoryStore.make()
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}${letters.join("")}e SELECT INBOX\r\n`))
    await said(["a SELECT INBOX", "b STORE 2 +FLAGS (\\Deleted)", "c EXPUNGE"], { store })
    await session.feed(Buffer.from("f FETCH 2 RFC822.SIZE\r\ng FETCH 1:2 UID\r\nh FETCH 3 UID\r\n"))
    expect(session.said()).toMatch(/\* 2 FETCH \(UID 2\)\r\ng OK \[EXPUNGEISSUED\] [^]*\r\nh OK FETCH/)
  })

  it("returns NIL for a message that is removed before its bytes are sent, and disconnects if it is removed meanwhile", async () => {
    const memory = MemoryStore.make()
    /** Has the bytes only for the first reads. */
    const removed = (reads: number, more: Partial<Store> = {}): Store => {
      let left = reads
      return { ...memory, ...more, bytes: (...range) => (left-- > 0 ? memory.bytes(...range) : Stream.empty) }
    }
    await said([letters[0]!], { store: memory })
    const fetch = async (item: string, store: Store) => {
      const session = await open({ store })
      await session.feed(Buffer.from(`${login}b SELECT INBOX\r\n`))
      session.forget()
      const turn = await session.feed(Buffer.from(`c FETCH 1 ${item}\r\n`))
      return [turn._tag, session.said()]
    }
    expect(await fetch("BODY.PEEK[]", removed(0))).toEqual([
      "More",
      "* 1 FETCH (BODY[] NIL)\r\nc OK FETCH completed.\r\n",
    ])
    expect(await fetch("BINARY.PEEK[1]", removed(1))).toEqual(["Close", expect.not.stringMatching(/\nc /)])
    const large: Store["stored"] = (...of) => Stream.map(memory.stored(...of), (one) => ({ ...one, size: 600_000 }))
    expect(await fetch("BODY.PEEK[]", removed(0, { stored: large }))).toEqual([
      "Close",
      expect.not.stringMatching(/\nc /),
    ])
  })
})

describe("SORT and SEARCH", () => {
  it("return the first and last message of a sort as MIN and MAX, and save them", async () => {
    const store = { ...MemoryStore.make(), sorted: () => Effect.succeed([2, 4, 1, 3]) }
    const text = await said(
      [
        ...letters,
        "f SELECT INBOX",
        "g SORT RETURN (MIN MAX ALL) (SUBJECT) UTF-8 ALL",
        "h UID SORT RETURN (MIN MAX SAVE) (SUBJECT) UTF-8 ALL",
        "i SEARCH $",
      ],
      { store },
    )
    expect(text).toContain('* ESEARCH (TAG "g") MIN 2 MAX 3 ALL 2,4,1,3\r\n')
    expect(text).toContain('* ESEARCH (TAG "h") UID MIN 2 MAX 3\r\n')
    expect(text).toContain("* SEARCH 2 3\r\n")
  })

  it("resolve the star to the last UID or the last number, and refuse to order more than 50,000 messages", async () => {
    const removal = ["f SELECT INBOX", "g STORE 1 +FLAGS (\\Deleted)", "h EXPUNGE"]
    const text = await said([...letters, ...removal, "i SEARCH UID *", "j SEARCH *"])
    expect(text).toMatch(/\* SEARCH 3\r\ni OK .*\r\n\* SEARCH 3\r\nj OK/)
    const ordered = (count: number) => {
      const memory = MemoryStore.make()
      const uids = Array.from({ length: count }, (_, n) => n + 1)
      const open: Store["open"] = (of) => Effect.map(memory.open(of), (one) => ({ ...one, uids, uidNext: count + 1 }))
      const search = () => Effect.succeed({ uids, modseqs: uids })
      const commands = ["a SELECT INBOX", "b SORT (SUBJECT) UTF-8 ALL", "c THREAD REFERENCES UTF-8 ALL"]
      return said(commands, { store: { ...memory, open, search } })
    }
    expect(await ordered(50_000)).toMatch(/\nb OK [^]*\nc OK /)
    expect(await ordered(50_001)).toMatch(/\nb NO \[LIMIT\] .*\r\nc NO \[LIMIT\] /)
  })

  it("keep the saved result if a search fails that saves nothing, and lose it otherwise", async () => {
    const text = await said([
      ...letters,
      "f SELECT INBOX",
      "g SEARCH RETURN (SAVE) 2:3",
      "h SEARCH CHARSET KOI8-R ALL",
      "i SEARCH $",
      "j SEARCH RETURN (SAVE) CHARSET KOI8-R ALL",
      "k SEARCH $",
    ])
    expect(text).toMatch(/h NO \[BADCHARSET .*\r\n\* SEARCH 2 3\r\ni OK [^]*j NO .*\r\n\* SEARCH\r\nk OK/)
  })
})

describe("SELECT", () => {
  it("reports nothing as vanished if nothing is gone since the client's MODSEQ", async () => {
    const text = await said([...letters, "e ENABLE QRESYNC", "f SELECT INBOX (QRESYNC (1 4))"])
    expect(text).not.toContain("VANISHED")
    expect(text).toMatch(/\* 4 FETCH \(UID 4 FLAGS \(.*\) MODSEQ \(5\)\)\r\nf OK/)
  })
})

describe("SELECT with CONDSTORE", () => {
  it("adds the MODSEQ to the responses of later commands", async () => {
    const stored = (select: string) => said([letters[0]!, select, "c STORE 1 +FLAGS (\\Flagged)"])
    expect(await stored("b SELECT INBOX (CONDSTORE)")).toMatch(/\* 1 FETCH \(MODSEQ \(3\) FLAGS .*\r\nc OK/)
    expect(await stored("b SELECT INBOX")).not.toMatch(/ MODSEQ \(/)
  })
})

describe("Any command", () => {
  it("reports the changes of which the Mailbox has notified the session", async () => {
    let notify = () => {}
    const store: Store = { ...MemoryStore.make(), watch: (heard) => Effect.sync(() => void (notify = heard)) }
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}b SELECT INBOX\r\n`))
    const heard = notify
    await said([letters[0]!], { store })
    session.forget()
    heard()
    await session.feed(Buffer.from("c STATUS Sent (MESSAGES)\r\n"))
    expect(session.said()).toMatch(/\* 1 EXISTS\r\n[^]*c OK/)
  })
})

describe("APPEND, MOVE and NOOP", () => {
  it("succeed if the changes of the folder cannot be read afterwards, and report them later", async () => {
    const memory = MemoryStore.make()
    const failing = Effect.fail(new Unavailable({ detail: "away", retry_after_seconds: 1 }))
    let away: "changes" | "claim" | undefined
    const store: Store = {
      ...memory,
      changes: (...of) => (away === "changes" ? failing : memory.changes(...of)),
      claim: (...of) => (away === "claim" ? failing : memory.claim(...of)),
    }
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}${letters.join("")}e SELECT INBOX\r\n`))
    const reply = async (commands: string, without?: typeof away) => {
      session.forget()
      away = without
      await session.feed(Buffer.from(commands))
      return session.said()
    }
    expect(await reply(append("f"), "changes")).toMatch(/^f OK \[APPENDUID 1 5\]/)
    expect(await reply("g MOVE 1 Sent\r\n", "changes")).toMatch(/^\* OK \[COPYUID 2 1 1\] Moved\r\ng OK/)
    expect(await reply("h NOOP\r\n", "changes")).toMatch(/^h NO \[UNAVAILABLE\]/)
    expect(await reply("i NOOP\r\n", "claim")).toMatch(/^\* 1 EXPUNGE\r\ni NO \[UNAVAILABLE\]/)
    expect(await reply("j STATUS Sent (MESSAGES)\r\n")).toMatch(/^[^]*\* 4 EXISTS\r\n\* 4 RECENT\r\n[^]*j OK/)
    expect(await reply("k NOOP\r\n")).toBe("k OK NOOP completed.\r\n")
    expect(await reply(append("l"))).toMatch(/^\* 5 EXISTS\r\n\* 5 RECENT\r\n[^]*l OK/)
  })
})

describe("IDLE", () => {
  it("starts one more synchronization for all notifications during one", async () => {
    const ends: Array<() => void> = []
    const look = Effect.callback<boolean>((resume) => void ends.push(() => resume(Effect.succeed(true))))
    const notify = IdleNotifier.make((effect) => void Effect.runFork(effect), look)
    for (let count = 0; count < 3; count++) notify()
    await expect.poll(() => ends.length).toBe(1)
    ends[0]!()
    await expect.poll(() => ends.length).toBe(2)
    ends[1]!()
    await new Promise(setImmediate)
    expect(ends).toHaveLength(2)
    notify()
    await expect.poll(() => ends.length).toBe(3)
  })

  it("reports changes that could not be read at its beginning once they can be read", async () => {
    const memory = MemoryStore.make()
    let failures = 0
    const away = Effect.fail(new Unavailable({ detail: "away", retry_after_seconds: 1 }))
    const store: Store = { ...memory, changes: (...of) => (failures-- > 0 ? away : memory.changes(...of)) }
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}b SELECT INBOX\r\n`))
    await said([letters[0]!], { store })
    failures = 1
    await session.feed(Buffer.from("c IDLE\r\n"))
    await expect.poll(session.said).toMatch(/\+ idling\r\n\* 1 EXISTS\r\n/)
  })
})

describe("commands on folders", () => {
  it("list a folder with children as a folder, and no ancestors that do not match", async () => {
    const text = await said([
      "a CREATE x",
      "b CREATE x/y/z",
      'c LIST "" x*',
      "d SUBSCRIBE x/y/z",
      'e LSUB "" x/%',
      'f LSUB "" %',
    ])
    expect(text).toContain(
      '* LIST (\\HasChildren) "/" x\r\n* LIST (\\NonExistent \\Noselect \\HasChildren) "/" x/y\r\n',
    )
    expect(text).toContain('d OK SUBSCRIBE completed.\r\n* LSUB (\\Noselect) "/" x/y\r\ne OK')
    expect(text).toContain('* LSUB (\\Noselect) "/" x\r\nf OK')
  })

  it("list a folder for its children only if those are not listed themselves", async () => {
    const text = await said([
      "a CREATE x/y",
      "b CREATE x",
      "c SUBSCRIBE x/y",
      'd LIST (SUBSCRIBED RECURSIVEMATCH) "" *',
      'e LIST (SUBSCRIBED RECURSIVEMATCH) "" %',
    ])
    const [, all, top] = /c OK .*\r\n([^]*)d OK .*\r\n([^]*)e OK/.exec(text)!
    expect(all).toMatch(/^\* LIST \(\S+ \\Subscribed\) "\/" x\/y\r\n$/)
    expect(top).toBe('* LIST (\\HasChildren) "/" x ("CHILDINFO" ("SUBSCRIBED"))\r\n')
  })

  it("refuse an unknown special use, and close a selected folder that is deleted", async () => {
    const text = await said([
      "a CREATE x (USE (constructor))",
      "b CREATE x (USE (\\Junk \\Trash))",
      "c CREATE x",
      "d SELECT x",
      "e DELETE Sent",
      "f CHECK",
      "g FETCH 1:* FLAGS",
      "h DELETE x",
      "i FETCH 1:* FLAGS",
    ])
    expect(text).toMatch(/a (?:NO \[USEATTR\]|BAD)/)
    expect(text).toContain("b NO [USEATTR]")
    expect(text).toMatch(/g BAD No message /)
    expect(text).toMatch(/i BAD (?!No message )/)
  })

  it("report in IMAP4rev2 that the deletion of the selected folder closed it", async () => {
    const text = await said(["a ENABLE IMAP4rev2", "b CREATE x", "c SELECT x", "d DELETE x", "e CHECK"])
    expect(text).toMatch(/\* OK \[CLOSED\] .*\r\nd OK .*\r\ne BAD /)
  })

  it("refuse QRESYNC parameters of a client that has not enabled it", async () => {
    const text = await said(["a SELECT INBOX (QRESYNC (1 1))", "b ENABLE QRESYNC", "c SELECT INBOX (QRESYNC (1 1))"])
    expect(text).toMatch(/^a NO \[CLIENTBUG\] .*\r\n[^]*\r\nc OK /)
  })

  it("report all messages of a folder as removed that another session deletes", async () => {
    const store = MemoryStore.make()
    const session = await open({ store })
    await session.feed(Buffer.from(`${login}a CREATE x\r\n${append("b", "x")}c SELECT x\r\n`))
    await said(["a DELETE x"], { store })
    session.forget()
    await session.feed(Buffer.from("d NOOP\r\n"))
    expect(session.said()).toBe("* 1 EXPUNGE\r\nd OK NOOP completed.\r\n")
  })

  it("return no quota of a folder that does not exist", async () => {
    expect(await said(["a GETQUOTAROOT x"])).toMatch(/^a NO \[NONEXISTENT\] /)
  })

  it("show a subscription to a folder that does not exist as such, and remove one to any name", async () => {
    const text = await said(["a SUBSCRIBE gone", 'b LSUB "" gone', 'c LIST (SUBSCRIBED) "" gone', "d UNSUBSCRIBE a//b"])
    expect(text).toContain('* LSUB (\\Noselect) "/" gone\r\nb OK')
    expect(text).toMatch(/\* LIST \(\\NonExistent .*\\Subscribed\) "\/" gone\r\nc OK .*\r\nd OK /)
  })

  it("accept a name in Latin-1 that is not UTF-8, and keywords of up to 100 characters", async () => {
    const session = await open()
    await session.feed(Buffer.from(`${login}b CREATE "caf\u00e9"\r\nc LIST "" caf*\r\n`, "latin1"))
    expect(session.said()).toContain('"/" caf&AOk-\r\n')
    const keyword = (tag: string, length: number) => `${tag} STORE 1 +FLAGS (${"x".repeat(length)})`
    const text = await said([letters[0]!, "b SELECT INBOX", keyword("c", 100), keyword("d", 101)])
    expect(text).toMatch(/\nc OK [^]*\nd BAD One of the flags cannot be stored/)
  })

  it("permit no flags in a folder that was opened by EXAMINE", async () => {
    const text = await said(["a CREATE x", "c EXAMINE x", "d SELECT x"])
    expect(text).toMatch(/\[PERMANENTFLAGS \(\)\][^]*\r\nc OK [^]*\[PERMANENTFLAGS \(.+\\\*\)\][^]*\r\nd OK /)
  })
})
