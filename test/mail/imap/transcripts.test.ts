/**
 * Records the responses to every form of every command, in every state of a session. The files in `transcripts/` hold
 * the answers; `vitest run test/mail/imap/transcripts -u` writes them anew after an intended change.
 */
import * as Parser from "@svc/mail-gateway/mail/imap/protocol/Parser"
import * as Dates from "@svc/mail-gateway/mail/imap/protocol/Dates"
import * as MailboxName from "@svc/mail-gateway/mail/imap/protocol/MailboxName"
import * as Sets from "@svc/mail-gateway/mail/imap/protocol/Sets"
import * as Strings from "@svc/mail-gateway/mail/imap/protocol/Strings"
import { expect, it } from "vitest"
import { append, login, message, open } from "./Sessions.ts"
import { commands } from "./transcripts/Commands.ts"
import { everywhere, states } from "./transcripts/States.ts"
import { days, encoded, listed, names, pairs, patterns, sets, times } from "./transcripts/Values.ts"

const inFile = (name: string, lines: ReadonlyArray<string>) =>
  expect(`${lines.join("\n").replaceAll("\r\n", "\n").toWellFormed()}\n`).toMatchFileSnapshot(`transcripts/${name}.txt`)

const parsed = (text: string, utf8 = false) => {
  const [, before, binary, size, rest] = /^(.*?)(~?)\{(\d+)\}([^]*)$/.exec(text) ?? []
  const bytes = Number(size ?? 0)
  const segments =
    before === undefined || rest === undefined
      ? [{ text: `t ${text}` }]
      : [
          {
            text: `t ${before}`,
            literal: { bytes: Buffer.from(rest.slice(0, bytes)), binary: binary === "~", aside: false },
          },
          { text: rest.slice(bytes) },
        ]
  const command = Parser.parse(segments, utf8)
  const shown = JSON.stringify(command._tag === "Command" ? command.action : command, (_, value: unknown) =>
    value instanceof Set ? [...value] : value,
  )
  return shown.length > 1_500 ? `${shown.slice(0, 200)}… (${shown.length})` : shown
}
const short = (text: string) => (text.length > 300 ? `${text.slice(0, 60)}… (${text.length})` : text)

it("every form of a command is parsed to its action", async () => {
  await inFile("actions", [
    ...commands.flatMap((text) => [short(text), `  ${parsed(text)}`]),
    ...["SELECT é", "SELECT &AOk-", "SELECT a&b", 'LIST "é" é*'].flatMap((text) => {
      const bytes = Buffer.from(text).toString("latin1")
      return [text, `  ${parsed(bytes)}`, `  ${parsed(bytes, true)}`]
    }),
  ])
})

it("names, dates, sets and strings are read and written exactly", async () => {
  const ranges = (set: string) => {
    const found = Sets.read(set)
    return found === undefined
      ? "invalid"
      : `${JSON.stringify(found)} ${JSON.stringify(Sets.resolve(found, 7))} ${Sets.count(Sets.resolve(found, 7))}`
  }
  await inFile("values", [
    ...names.map(
      (name) =>
        `name ${short(JSON.stringify(name))}: ${MailboxName.isValid(name)} ${short(MailboxName.canonical(name))} ${short(MailboxName.encode(name))} ${short(String(MailboxName.decode(MailboxName.encode(name))))} ${short(MailboxName.parents(name).join("|"))}`,
    ),
    ...encoded.map((name) => `encoded ${name}: ${JSON.stringify(MailboxName.decode(name))}`),
    ...patterns.map((pattern) => `pattern ${pattern}: ${listed.filter(MailboxName.matcher(pattern)).join(" ")}`),
    ...days.map((day) => `day ${day}: ${Dates.day(day)}`),
    ...times.map((time) => {
      const found = Dates.time(time)
      return `time ${time}: ${found === undefined ? "invalid" : `${found.at.toISOString()} ${found.zone} ${Dates.write(found)}`}`
    }),
    ...sets.map((set) => `set ${set}: ${ranges(set)}`),
    ...pairs.map(
      ([one, other]) => `${Sets.write(one)} without ${Sets.write(other)}: ${Sets.write(Sets.without(one, other))}`,
    ),
    ...[0, 1, 3, 4, 5, 7, 8, 9, 10].map(
      (number) =>
        `${number} in 1:3,5:7,9: ${Sets.has(
          [
            [1, 3],
            [5, 7],
            [9, 9],
          ],
          number,
        )}`,
    ),
    `numbers ${Sets.writeInOrder([1, 2, 3, 5, 4, 6, 7, 9])}`,
    ...[
      "",
      "a",
      "a b",
      'a"b\\',
      "é",
      "a\r\nb",
      "NIL",
      "nil",
      "a]",
      "[a",
      "(",
      "x".repeat(1_000),
      "x".repeat(1_001),
    ].map(
      (text) =>
        `text ${short(JSON.stringify(text))}: ${short(JSON.stringify(Strings.string(text)))} ${short(JSON.stringify(Strings.astring(text)))} ${short(JSON.stringify(Strings.human(text)))}`,
    ),
    `text ${Strings.nstring(null)} ${Strings.nstring(undefined)} ${Strings.nstring("")} ${Strings.human("é".repeat(3) + "x".repeat(500)).length}`,
  ])
})

it("every command is answered in every state", async () => {
  const lines: Array<string> = []
  for (const command of everywhere) {
    lines.push(`# ${command.replaceAll("\r\n", " ⏎ ")}`)
    const answers = new Map<string, Array<string>>()
    for (const [state, { before, options }] of Object.entries(states)) {
      const session = await open(options)
      await session.feed(Buffer.from(before))
      session.forget()
      const { _tag } = await session.feed(Buffer.from(`z ${command}\r\n`, "latin1"))
      const said = `${session.said().replaceAll("\r\n", "\n").replace(/^/gm, "  ").trimEnd()}${_tag === "More" ? "" : `\n  → ${_tag}`}`
      answers.set(said, [...(answers.get(said) ?? []), state])
      await session.close()
    }
    for (const [said, where] of answers) lines.push(`${where.join(", ")}:`, said)
  }
  await inFile("states", lines)
})

it("every exchange of a login is answered", async () => {
  const base64 = (text: string) => Buffer.from(text).toString("base64")
  const exchanges = [
    ["PLAIN", base64("\0ada\0x")],
    ["PLAIN", base64("ada\0ada\0x")],
    ["PLAIN", base64("ADA\0ada\0x")],
    ["PLAIN", base64("eve\0ada\0x")],
    ["PLAIN", base64("ada\0x")],
    ["PLAIN", base64("\0ada\0x\0y")],
    ["PLAIN", base64("")],
    ["PLAIN", "*"],
    ["PLAIN", "not base64!"],
    ["PLAIN", "A".repeat(8_192)],
    ["PLAIN", "A".repeat(8_196)],
    ["LOGIN", base64("ada"), base64("x")],
    ["LOGIN", base64("eve"), base64("x")],
    ["LOGIN", "*"],
    ["LOGIN", base64("ada"), "*"],
    ["LOGIN", base64("ada"), "!"],
    ["OAUTHBEARER", base64("n,a=ada,\x01host=h\x01auth=Bearer token\x01\x01")],
    ["OAUTHBEARER", base64("n,,\x01auth=bearer token\x01\x01")],
    ["OAUTHBEARER", base64("n,a=ad=2Ca=3D,\x01auth=Bearer token\x01\x01")],
    ["OAUTHBEARER", base64("n,a=ada,\x01host=h\x01\x01")],
    ["OAUTHBEARER", base64("n,a=ada,\x01auth=Basic token\x01\x01")],
    ["CRAM-MD5"],
  ]
  const lines: Array<string> = []
  for (const [mechanism, ...answers] of exchanges) {
    const users: Array<string> = []
    const session = await open({ onLogin: (user, password) => void users.push(`${user} with ${password}`) })
    for (const line of [`z AUTHENTICATE ${mechanism}`, ...answers]) await session.feed(Buffer.from(`${line}\r\n`))
    await session.feed(Buffer.from("y NOOP\r\n"))
    const said = session.said().replace(/\[CAPABILITY[^\]]*\]/, "[CAPABILITY]")
    lines.push(`# ${mechanism} ${answers.map(short).join(" ")}`, ...users, said.trimEnd())
    await session.close()
  }
  await inFile("logins", lines)
})

it("the limits of commands are exact", async () => {
  const outcome = async (before: string, text: string) => {
    const session = await open()
    await session.feed(Buffer.from(before))
    session.forget()
    // In pieces, as they arrive.
    const bytes = Buffer.from(text, "latin1")
    let ended = "More"
    for (let at = 0; at < bytes.length && ended === "More"; at += 30_000)
      ended = (await session.feed(bytes.subarray(at, at + 30_000)))._tag
    const said = session
      .said()
      .replace(/^\* ID .*\r\n/gm, "")
      .replace(/\r\n/g, " ⏎ ")
    await session.close()
    return `${short(said)}${ended === "More" ? "" : ` → ${ended}`}`
  }
  const line = (length: number) => `z SEARCH TEXT ${"x".repeat(length - "z SEARCH TEXT \r\n".length)}\r\n`
  const literals = (count: number, size: number, sign = "+") =>
    `z ID (${Array.from({ length: count }, () => `{${size}${sign}}\r\n${"x".repeat(size)}`).join(" ")})\r\n`
  const cases: Readonly<Record<string, string>> = {
    "line of 65,536 bytes": `${line(65_536)}y NOOP\r\n`,
    "line of 65,537 bytes": `${line(65_537)}y NOOP\r\n`,
    "line that is too long and announces a literal": `${line(70_000).trimEnd()} {3+}\r\nabc\r\ny NOOP\r\n`,
    "line that is too long and announces a waiting literal": `${line(70_000).trimEnd()} {3}\r\ny NOOP\r\n`,
    "line that is too long and announces a large literal": `${line(70_000).trimEnd()} {999999999+}\r\n`,
    "passed bytes 98,304": `${line(98_304)}y NOOP\r\n`,
    "passed bytes 1,048,576": `${line(1_048_576)}y NOOP\r\n`,
    "passed bytes 1,114,113": `${line(1_114_113)}y NOOP\r\n`,
    "60 literals": `${literals(60, 1)}y NOOP\r\n`,
    "61 literals": `${literals(61, 1)}y NOOP\r\n`,
    "200 literals": `${literals(200, 1)}y NOOP\r\n`,
    "201 literals": `${literals(201, 1)}y NOOP\r\n`,
    "literal of 1,024 bytes": `${literals(1, 1_024)}y NOOP\r\n`,
    "literal of 1,025 bytes": `${literals(1, 1_025)}y NOOP\r\n`,
    "literal of 16,384 bytes": `${literals(1, 16_384)}y NOOP\r\n`,
    "literal of 16,385 bytes": `${literals(1, 16_385)}y NOOP\r\n`,
    "literal of 65,536 bytes that is passed": `${literals(1, 65_536)}y NOOP\r\n`,
    "literal of 65,537 bytes that is passed": `${literals(1, 65_537)}y NOOP\r\n`,
    "waiting literal": "z ID ({1}\r\nx NIL)\r\ny NOOP\r\n",
    "waiting literal that is too large": "z ID ({99999}\r\ny NOOP\r\n",
    "empty literal": "z ID ({0+}\r\n NIL)\r\ny NOOP\r\n",
    "append of 100,000 bytes": `z APPEND INBOX {100000+}\r\n${"x".repeat(100_000)}\r\ny NOOP\r\n`,
    "append of 100,001 bytes": `z APPEND INBOX {100001+}\r\n${"x".repeat(100_001)}\r\ny NOOP\r\n`,
    "append with 65,537 bytes": `z APPEND INBOX {65537+}\r\n${"x".repeat(65_537)}\r\ny NOOP\r\n`,
    "line without CR": "z NOOP\ny NOOP\n",
    "tag of 200 characters": `${"t".repeat(200)} NOOP\r\n`,
    "mistakes 3": `${"z WORDS\r\n".repeat(3)}y NOOP\r\n`,
    "mistakes 4": `${"z WORDS\r\n".repeat(4)}y NOOP\r\n`,
    "mistakes 3 and 3": `${"z WORDS\r\n".repeat(3)}y NOOP\r\n${"z WORDS\r\n".repeat(3)}x NOOP\r\n`,
    "mistakes 20": `${"z WORDS\r\n".repeat(20)}y NOOP\r\n`,
  }
  const lines: Array<string> = []
  for (const [name, text] of Object.entries(cases))
    lines.push(`# ${name}`, `before login: ${await outcome("", text)}`, `logged in: ${await outcome(login, text)}`)
  const session = await open()
  const text = "x".repeat(10_000)
  await session.feed(
    Buffer.from(`${login}${`b APPEND INBOX {${text.length}+}\r\n${text}\r\n`.repeat(5)}c SELECT INBOX\r\n`),
  )
  session.forget()
  await session.feed(Buffer.from("d FETCH 1:5 BODY.PEEK[]\r\n"))
  const broken = await open({ brokenAt: 70_000 })
  for (
    let at = 0, bytes = Buffer.from(`${login}b APPEND INBOX {90000+}\r\n${"x".repeat(90_000)}\r\nc NOOP\r\n`);
    at < bytes.length;
    at += 30_000
  )
    await broken.feed(bytes.subarray(at, at + 30_000))
  lines.push(
    "# a large message that cannot be stored",
    broken
      .said()
      .replace(/\[CAPABILITY[^\]]*\]/, "")
      .trimEnd(),
  )
  lines.push("# five messages of 10,000 bytes", `are sent in pieces of ${session.pieces().join(", ")} bytes`)
  await inFile("limits", lines)
})

it("changes of others are sent to each kind of session as it expects them", async () => {
  const MemoryStore = await import("./MemoryStore.ts")
  const kinds = ["", "q ENABLE CONDSTORE\r\n", "q ENABLE QRESYNC\r\n", "q ENABLE IMAP4rev2\r\n"]
  const changes = [
    append("c"),
    "c STORE 1 +FLAGS (\\Flagged other)\r\n",
    "c STORE 2 +FLAGS (\\Deleted)\r\nd EXPUNGE\r\n",
    `c STORE 2 +FLAGS (\\Deleted)\r\nd EXPUNGE\r\n${append("e")}f STORE 1 -FLAGS (\\Seen)\r\n`,
    "c DELETE INBOX\r\n",
  ]
  const looks = [
    "z NOOP\r\n",
    "z FETCH 1 UID\r\ny NOOP\r\n",
    "z UID FETCH 1 UID\r\n",
    "z SEARCH ALL\r\ny CHECK\r\n",
    "z IDLE\r\nDONE\r\n",
    "z STORE 1 FLAGS.SILENT (\\Draft)\r\ny NOOP\r\n",
    "z CLOSE\r\n",
  ]
  const lines: Array<string> = []
  for (const kind of kinds)
    for (const change of changes)
      for (const look of looks) {
        const store = MemoryStore.make()
        const [one, other] = [await open({ store }), await open({ store })]
        await one.feed(Buffer.from(`${login}${append("b")}${append("b")}${append("b")}${kind}d SELECT INBOX\r\n`))
        await other.feed(Buffer.from(`${login}b SELECT INBOX\r\n${change}`))
        one.forget()
        await one.feed(Buffer.from(look))
        lines.push(
          `# ${kind.slice(2).trim() || "plain"} | ${change.replaceAll(message, "message").trim().replaceAll("\r\n", " ⏎ ")} | ${look.trim().replaceAll("\r\n", " ⏎ ")}`,
          one.said().trimEnd(),
        )
      }
  await inFile("changes", lines)
})
