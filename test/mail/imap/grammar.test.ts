/**
 * What a client may write and what it gets, by the grammar of RFC 9051: every character of a token, every item of FETCH,
 * every limit at its edge. The messages have other UIDs than sequence numbers, and no two of their values are equal.
 */
import { limits, Malformed, Reader } from "@svc/mail-gateway/mail/imap/protocol/Reader"
import * as SearchKeys from "@svc/mail-gateway/mail/imap/protocol/SearchKeys"
import * as Sets from "@svc/mail-gateway/mail/imap/protocol/Sets"
import { toPublic } from "@svc/domain/Ids"
import { describe, expect, it } from "vitest"
import { append, login, message, open } from "./Sessions.ts"

const reader = (text: string) => new Reader([{ text }])
const visible = Array.from({ length: 0x7f - 0x20 }, (_, at) => String.fromCharCode(0x20 + at))

describe("The characters of", () => {
  /** RFC 9051 section 9: atom-specials without control characters, of which no token has any. */
  const atomSpecials = '(){ %*"\\]'
  const without = (chars: string) => visible.filter((char) => !chars.includes(char))
  const tokens: ReadonlyArray<readonly [string, (one: Reader) => unknown, ReadonlyArray<string>]> = [
    ["an atom", (one) => one.atom(), without(atomSpecials)],
    ["an astring", (one) => one.astring(), without(atomSpecials.replace("]", ""))],
    ["a pattern of LIST", (one) => one.pattern(), without(atomSpecials.replace(/[\]%*]/g, ""))],
    ["a tag", (one) => one.tag(), without(`${atomSpecials.replace("]", "")}+`)],
  ]
  it.each(tokens)("%s are those of the grammar", (_, read, allowed) => {
    const taken = visible.filter((char) => {
      const one = reader(`a${char}b`)
      read(one)
      return one.isDone
    })
    expect(taken).toEqual(allowed)
  })

  it("a quoted string are all, with escaped quotes and backslashes", () => {
    for (const char of visible) {
      const escaped = char === '"' || char === "\\" ? `\\${char}` : char
      expect(reader(`"a${escaped}b"`).string().toString(), char).toBe(`a${char}b`)
    }
    for (const wrong of ['"a', '"a\\b"', '"a\nb"', "a"]) expect(() => reader(wrong).string(), wrong).toThrow(Malformed)
  })
})

describe("A search", () => {
  const read = (text: string) => SearchKeys.keys(reader(text))
  const day = "2026-02-01"

  it.each([
    ["BEFORE 1-Feb-2026", { _tag: "Day", of: "received", is: "before", day }],
    ["ON 1-Feb-2026", { _tag: "Day", of: "received", is: "on", day }],
    ["SINCE 1-Feb-2026", { _tag: "Day", of: "received", is: "since", day }],
    ["SENTBEFORE 1-Feb-2026", { _tag: "Day", of: "sent", is: "before", day }],
    ["SENTON 1-Feb-2026", { _tag: "Day", of: "sent", is: "on", day }],
    ["SENTSINCE 1-Feb-2026", { _tag: "Day", of: "sent", is: "since", day }],
    ["OLD", { _tag: "Not", key: { _tag: "Recent" } }],
    ["OLDER 7", { _tag: "Age", is: "older", seconds: 7 }],
    ["YOUNGER 7", { _tag: "Age", is: "younger", seconds: 7 }],
    ["LARGER 7", { _tag: "Size", is: "larger", bytes: 7 }],
    ["SMALLER 7", { _tag: "Size", is: "smaller", bytes: 7 }],
    ["EMAILID a", { _tag: "Id", of: "email", id: "a" }],
    ["THREADID a", { _tag: "Id", of: "thread", id: "a" }],
    ["UID $", { _tag: "Saved" }],
  ])("for %s is parsed", (text, key) => {
    expect(read(text)).toEqual(key)
  })

  it("has at most 500 keys and texts of at most 1,000 bytes", () => {
    const all = (count: number) => Array.from({ length: count }, () => "ALL").join(" ")
    expect(() => read(all(500))).not.toThrow()
    expect(() => read(all(501))).toThrow(Malformed)
    expect(() => read(`TEXT ${"a".repeat(1_000)}`)).not.toThrow()
    expect(() => read(`TEXT ${"a".repeat(1_001)}`)).toThrow(Malformed)
  })
})

describe("A limit of", () => {
  const read = (text: string, use: (one: Reader) => unknown) => () => use(reader(text))
  const list = (count: number) => `(${Array.from({ length: count }, () => "a").join(" ")})`
  it.each([
    ["a number", "4294967295", "4294967296", (one: Reader) => one.number()],
    ["a number with a smaller limit", "7", "8", (one: Reader) => one.number(7)],
    ["digits", "9".repeat(19), "9".repeat(20), (one: Reader) => one.modseq()],
    ["a tag", "a".repeat(200), "a".repeat(201), (one: Reader) => one.tag()],
    ["a list", list(limits.elements), list(limits.elements + 1), (one: Reader) => one.list(() => one.atom())],
  ] as const)("%s is exact", (_, within, beyond, use) => {
    expect(read(within, use)).not.toThrow()
    expect(read(beyond, use)).toThrow(Malformed)
  })

  it("elements and nesting is bounded", () => {
    expect(limits).toEqual({ depth: 20, elements: 2_000 })
    const set = (ranges: number) => Sets.read(Array.from({ length: ranges }, () => "1:2").join(","))
    expect([set(10_000)?.length, set(10_001)]).toEqual([10_000, undefined])
    expect(reader("9".repeat(19)).modseq()).toBe(Number.MAX_SAFE_INTEGER)
  })
})

/** Returns the response to a command in a folder whose messages 1 and 2 have the UIDs 2 and 3. */
const answer = async (command: string) => {
  const session = await open()
  await session.feed(
    Buffer.from(
      `${login}${append("b")}${append("c")}${append("d")}e SELECT INBOX\r\nf STORE 1 +FLAGS.SILENT (\\Deleted)\r\ng EXPUNGE\r\nh SELECT INBOX\r\n`,
    ),
  )
  session.forget()
  await session.feed(Buffer.from(`z ${command}\r\n`))
  return session.said()
}
const uuid = (variant: string, uid: number) => `00000000-0000-7000-${variant}-${String(uid).padStart(12, "0")}`
const [head = "", ...rest] = message.split(/(?<=\r\n\r\n)/)
const body = rest.join("")
const envelope =
  '(NIL "hello" (("A" NIL "a" "x.example")) (("A" NIL "a" "x.example")) (("A" NIL "a" "x.example")) NIL NIL NIL NIL NIL)'
const literal = (text: string) => `{${text.length}}\r\n${text}`
const text = '("text" "plain" NIL NIL NIL "7bit" 4 0'
const octets = '("application" "octet-stream" NIL NIL NIL "base64" 8'

describe("FETCH", () => {
  it.each([
    ["UID", "UID 2"],
    ["FLAGS", "FLAGS (\\Seen)"],
    ["MODSEQ", "MODSEQ (3)"],
    ["INTERNALDATE", 'INTERNALDATE " 2-Jan-2024 04:34:02 +0130"'],
    ["RFC822.SIZE", `RFC822.SIZE ${message.length}`],
    ["EMAILID", `EMAILID (${toPublic("msg_", uuid("8000", 2))})`],
    ["THREADID", `THREADID (${toPublic("thr_", uuid("9000", 2))})`],
    ["PREVIEW", 'PREVIEW "Snippet 2"'],
    ["(PREVIEW (LAZY))", 'PREVIEW "Snippet 2"'],
    ["ENVELOPE", `ENVELOPE ${envelope}`],
    ["BODY", `BODY (${text})${octets}) "mixed")`],
    [
      "BODYSTRUCTURE",
      `BODYSTRUCTURE (${text} NIL NIL NIL NIL)${octets} NIL NIL NIL NIL) "mixed" ("boundary" "b") NIL NIL NIL)`,
    ],
    ["RFC822", `RFC822 ${literal(message)}`],
    ["RFC822.HEADER", `RFC822.HEADER ${literal(head)}`],
    ["RFC822.TEXT", `RFC822.TEXT ${literal(body)}`],
    ["BODY.PEEK[]", `BODY[] ${literal(message)}`],
    ["BODY[HEADER]", `BODY[HEADER] ${literal(head)}`],
    ["BODY[TEXT]", `BODY[TEXT] ${literal(body)}`],
    ["BODY[1]", `BODY[1] ${literal("text")}`],
    ["BODY[1.MIME]", `BODY[1.MIME] ${literal("Content-Type: text/plain\r\n\r\n")}`],
    ["BODY[3]", "BODY[3] NIL"],
    ["BODY[]<2.5>", `BODY[]<2> ${literal(message.slice(2, 7))}`],
    ["BODY[1]<3.1>", `BODY[1]<3> ${literal("t")}`],
    ["BODY[1]<4.1>", `BODY[1]<4> ${literal("")}`],
    ["BODY[HEADER.FIELDS (subject)]", `BODY[HEADER.FIELDS (SUBJECT)] ${literal("Subject: hello\r\n\r\n")}`],
    ['BODY[HEADER.FIELDS ("a b" Subject)]', `BODY[HEADER.FIELDS ("a b" SUBJECT)] ${literal("Subject: hello\r\n\r\n")}`],
    [
      "BODY[HEADER.FIELDS.NOT (From content-type)]",
      `BODY[HEADER.FIELDS.NOT (FROM CONTENT-TYPE)] ${literal("Subject: hello\r\n\r\n")}`,
    ],
    ["BINARY[2]", "BINARY[2] ~{4}\r\n\x00\x01\x02\x03"],
    ["BINARY.PEEK[2]<1.2>", "BINARY[2]<1> ~{2}\r\n\x01\x02"],
    ["BINARY.SIZE[2]", "BINARY.SIZE[2] 4"],
    ["BINARY.SIZE[1]", "BINARY.SIZE[1] 4"],
  ])("of %s answers the value of this message", async (item, value) => {
    expect(await answer(`FETCH 1 ${item}`)).toMatch(/^\* 1 FETCH \([^]*\)\r\nz OK /m)
    expect(await answer(`FETCH 1 ${item}`)).toContain(value)
    expect(await answer(`UID FETCH 2 ${item}`)).toContain("UID 2")
  })

  const fast = `FLAGS (\\Seen) INTERNALDATE " 2-Jan-2024 04:34:02 +0130" RFC822.SIZE ${message.length}`
  it.each([
    ["FAST", fast],
    ["ALL", `${fast} ENVELOPE ${envelope}`],
    ["FULL", `${fast} ENVELOPE ${envelope} BODY (${text})${octets}) "mixed")`],
    ["(UID RFC822.SIZE)", `UID 2 RFC822.SIZE ${message.length}`],
  ])("of %s has these items in this order", async (items, values) => {
    expect(await answer(`FETCH 1 ${items}`)).toBe(`* 1 FETCH (${values})\r\nz OK FETCH completed.\r\n`)
  })

  it.each([
    "BODY[]<0.0>",
    "BODY[]<5.0>",
    "BODY[]<.1>",
    "BODY[]<1.>",
    "BODY[]<1.1",
    "BODY[0]",
    "BODY[1.0]",
    "BODY[1.]",
    "BODY[MIME]",
    "BODY[HEADER.FIELDS ()]",
    "BODY[HEADER.FIELDS]",
    "BODY[WORDS]",
    "BODY[1",
    "BINARY[TEXT]",
    "BINARY[1.HEADER]",
    "BINARY.SIZE[1]<0.2>",
    "RFC822.WORDS",
    "WORDS",
    "(FLAGS WORDS)",
    "()",
    "(PREVIEW (NOW))",
    "PREVIEW (LAZY NOW)",
    "FLAG",
    "FULLY",
    `BODY[${Array.from({ length: 51 }, () => "1").join(".")}]`,
  ])("of %s is refused", async (item) => {
    expect(await answer(`FETCH 1 ${item}`)).toMatch(/^z BAD /)
  })

  it.each([
    ["1", [1]],
    ["2", [2]],
    ["1:2", [1, 2]],
    ["2:1", [1, 2]],
    ["*", [2]],
    ["1,*", [1, 2]],
    ["*:1", [1, 2]],
  ])("of the messages %s answers these", async (set, numbers) => {
    const found = [...(await answer(`FETCH ${set} UID`)).matchAll(/^\* (\d+) FETCH \(UID (\d+)\)/gm)]
    expect(found.map(([, number, uid]) => [Number(number), Number(uid)])).toEqual(numbers.map((n) => [n, n + 1]))
  })

  it.each([
    ["2", [2]],
    ["1:2", [2]],
    ["*", [3]],
    ["3:*", [3]],
    ["9:*", [3]],
    ["1", []],
    ["4:9", []],
  ])("of the UIDs %s answers these", async (set, uids) => {
    const found = [...(await answer(`UID FETCH ${set} FLAGS`)).matchAll(/^\* (\d+) FETCH .*UID (\d+)/gm)]
    expect(found.map(([, number, uid]) => [Number(number), Number(uid)])).toEqual(uids.map((uid) => [uid - 1, uid]))
  })

  it.each(["0", "3", "1:3", "1,,2", "1:", ":1", "a", "1;2", ""])("of the messages %j is refused", async (set) => {
    expect(await answer(`FETCH ${set} UID`)).toMatch(/^z BAD /)
  })
})

describe("STORE", () => {
  it.each([
    ["FLAGS (\\Flagged)", "\\Flagged"],
    ["+FLAGS (\\Flagged)", "\\Flagged \\Seen"],
    ["-FLAGS (\\Seen)", ""],
    ["FLAGS ()", ""],
    ["FLAGS (\\Recent)", ""],
    ["FLAGS \\Answered", "\\Answered"],
    ["+FLAGS (word Word)", "\\Seen word"],
    ["+FLAGS ($Forwarded \\Draft \\Deleted)", "$Forwarded \\Deleted \\Draft \\Seen"],
  ])("of %s leaves these flags", async (change, flags) => {
    const shown = await answer(`STORE 1 ${change}`)
    const [, found] = /^\* 1 FETCH \(.*?FLAGS \(([^)]*)\)/m.exec(shown) ?? []
    expect(found?.split(" ").sort().join(" ")).toBe(flags.split(" ").sort().join(" "))
    const uid = await answer(`UID STORE 2 ${change}`)
    expect(uid).toMatch(/^\* 1 FETCH \([^\r]*UID 2/m)
    expect(await answer(`STORE 1 ${change.replace("FLAGS", "FLAGS.SILENT")}`)).toMatch(/^z OK /m)
  })

  it.each(["FLAGS (\\Words)", "FLAGS.LOUD (\\Seen)", "=FLAGS (\\Seen)", "FLAGS", "+FLAGS (a%b)"])(
    "of %s is refused",
    async (change) => {
      expect(await answer(`STORE 1 ${change}`)).toMatch(/^z (BAD|NO) /)
    },
  )
})

describe("A command", () => {
  it.each([
    ["LOGIN a {1+}\r\n\0", /^z BAD /],
    ["SEARCH 1,,2", /^z BAD Invalid message set/],
    ["SEARCH UID 1:", /^z BAD /],
    ["UID NOOP", /^z BAD Unknown command UID NOOP/],
    ["constructor", /^z BAD Unknown command /],
    ["SEARCH SUBJECT {1+}\r\n\0", /^z BAD NUL in a string/],
    ["NOOP x", /^z BAD /],
  ])("%j is refused", async (command, expected) => {
    expect(await answer(command)).toMatch(expected)
  })
})

describe("A search", () => {
  const nested = (depth: number) => `${"(".repeat(depth)}ALL${")".repeat(depth)}`
  it("nests as deep as allowed", async () => {
    expect(await answer(`SEARCH ${nested(limits.depth - 1)}`)).toContain("* SEARCH 1 2\r\n")
    expect(await answer(`SEARCH ${nested(limits.depth + 2)}`)).toMatch(/^z BAD /)
  })

  it.each([
    ["SEARCH ALL", "* SEARCH 1 2"],
    ["UID SEARCH ALL", "* SEARCH 2 3"],
    ["SEARCH UID 2", "* SEARCH 1"],
    ["UID SEARCH 2", "* SEARCH 3"],
    ["SEARCH NOT 1", "* SEARCH 2"],
    ["SEARCH OR 1 UID 3", "* SEARCH 1 2"],
    ["SEARCH RETURN (MIN MAX COUNT ALL) ALL", '* ESEARCH (TAG "z") MIN 1 MAX 2 COUNT 2 ALL 1:2'],
    ["UID SEARCH RETURN (MIN MAX COUNT ALL) ALL", '* ESEARCH (TAG "z") UID MIN 2 MAX 3 COUNT 2 ALL 2:3'],
    ["SEARCH RETURN () UID 9", '* ESEARCH (TAG "z")'],
    ["SEARCH RETURN (COUNT) UID 9", '* ESEARCH (TAG "z") COUNT 0'],
  ])("%s answers in its numbers", async (command, line) => {
    expect((await answer(command)).split("\r\n")[0]).toBe(line)
  })
})
