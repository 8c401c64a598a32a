/**
 * What the server answers to every form of every command, in every state of a session. The files in `transcripts/` hold
 * the answers; `vitest run test/mail/imap/transcripts -u` writes them anew after an intended change.
 */
import * as Parser from "@svc/mail-gateway/mail/imap/protocol/Parser"
import * as Dates from "@svc/mail-gateway/mail/imap/protocol/Dates"
import * as MailboxName from "@svc/mail-gateway/mail/imap/protocol/MailboxName"
import * as Sets from "@svc/mail-gateway/mail/imap/protocol/Sets"
import * as Strings from "@svc/mail-gateway/mail/imap/protocol/Strings"
import { expect, it } from "vitest"
import { append, login, message, open, type Options } from "./Sessions.ts"

const inFile = (name: string, lines: ReadonlyArray<string>) =>
  expect(`${lines.join("\n").replaceAll("\r\n", "\n").toWellFormed()}\n`).toMatchFileSnapshot(`transcripts/${name}.txt`)

const many = (count: number, text: string) => Array.from({ length: count }, () => text).join(" ")

const searchKeys = [
  "ALL",
  "answered DELETED Draft FLAGGED SEEN RECENT NEW OLD",
  "UNANSWERED UNDELETED UNDRAFT UNFLAGGED UNSEEN",
  "UNRECENT",
  "KEYWORD $Forwarded UNKEYWORD Word",
  'BEFORE 1-Feb-2026 ON 02-Feb-2026 SINCE "3-Feb-2026" SENTBEFORE 1-feb-2026 SENTON 29-Feb-2024 SENTSINCE 31-Dec-2025',
  ...["29-Feb-2025", "0-Jan-2026", "32-Jan-2026", "1-Foo-2026", "1-Jan-26", "001-Jan-2026"].map((day) => `ON ${day}`),
  "FROM a TO b CC c BCC d SUBJECT e BODY f TEXT g",
  'SUBJECT ""',
  `TEXT ${"x".repeat(1000)}`,
  `TEXT ${"x".repeat(1001)}`,
  'HEADER X-Name "some text" HEADER Subject ""',
  "HEADER X-Name",
  "LARGER 1 SMALLER 9007199254740991 OLDER 2 YOUNGER 3",
  "LARGER 9007199254740992",
  "OLDER 4294967296",
  "LARGER x",
  "NOT SEEN NOT (SEEN DRAFT) OR SEEN (DRAFT 1) OR 1:2 UID 3",
  "NOT",
  "OR SEEN",
  "UID 1:*,7 UID $ $ *",
  "UID 0",
  'MODSEQ 5 MODSEQ "/flags/\\\\draft" all 6',
  "MODSEQ x",
  "EMAILID Mabc THREADID Tdef",
  "WORDS",
  "(SEEN)",
  "(SEEN",
  "SEEN)",
  "()",
  "SEEN ",
  "SEEN  DRAFT",
  many(500, "ALL"),
  many(501, "ALL"),
]

/** The text of commands; `{…}` at the end of a piece announces the next one as a literal. */
const commands: ReadonlyArray<string> = [
  "",
  " ",
  "(",
  "NOOP",
  "noop",
  "NOOP x",
  "NOOP ",
  "CAPABILITY",
  "LOGOUT",
  "STARTTLS",
  "CHECK",
  "CLOSE",
  "UNSELECT",
  "IDLE",
  "NAMESPACE",
  "WORDS",
  "constructor",
  "UID NOOP",
  "UID",
  "ID NIL",
  "ID nil",
  'ID ("name" "x" "version" NIL)',
  "ID ()",
  "ID",
  "ID x",
  "LOGIN ada x",
  'LOGIN "a b" "c\\"d"',
  "LOGIN ada",
  "LOGIN ada x y",
  "AUTHENTICATE plain",
  "AUTHENTICATE PLAIN =",
  "AUTHENTICATE PLAIN AGFkYQB4",
  "AUTHENTICATE PLAIN a b",
  "AUTHENTICATE",
  "ENABLE CONDSTORE",
  "ENABLE condstore QRESYNC WORDS",
  "ENABLE",
  "COMPRESS DEFLATE",
  "COMPRESS",
  ...["SELECT", "EXAMINE"].flatMap((name) => [
    `${name} INBOX`,
    `${name} inbox/a`,
    `${name} "a b"`,
    `${name} &AOk-`,
    `${name} &AOk`,
    `${name}`,
    `${name} a b`,
    `${name} a (CONDSTORE)`,
    `${name} a (QRESYNC (1 2))`,
    `${name} a (QRESYNC (4294967295 9223372036854775807))`,
    `${name} a (QRESYNC (1 2 3:4,*))`,
    `${name} a (QRESYNC (1 2 3:4 (1,2 3,4)))`,
    `${name} a (QRESYNC (1 2 (1,2 3,4)))`,
    `${name} a (QRESYNC (1 2 $))`,
    `${name} a (QRESYNC (1 2 ($ 1)))`,
    `${name} a (QRESYNC (1 2 (1 $)))`,
    `${name} a (QRESYNC (1 2 (1)))`,
    `${name} a (QRESYNC (1))`,
    `${name} a (QRESYNC 1 2)`,
    `${name} a (QRESYNC (1 2)`,
    `${name} a (CONDSTORE QRESYNC (1 2))`,
    `${name} a (WORDS)`,
    `${name} a ()`,
  ]),
  "CREATE a/b/",
  "CREATE a (USE (\\Archive))",
  "CREATE a (USE (\\Archive \\Sent))",
  "CREATE a (USE \\Archive)",
  "CREATE a (WORDS (\\Archive))",
  "CREATE",
  ...["DELETE", "SUBSCRIBE", "UNSUBSCRIBE", "GETQUOTAROOT"].flatMap((name) => [`${name} a`, `${name}`, `${name} a b`]),
  'GETQUOTA ""',
  "GETQUOTA a",
  "GETQUOTA",
  "RENAME a b",
  "RENAME a",
  'LIST "" *',
  'LIST "" %',
  'LIST a/ "b c"',
  'LIST "" ("a" b% c*)',
  'LIST (SUBSCRIBED) "" *',
  'LIST (SUBSCRIBED REMOTE RECURSIVEMATCH SPECIAL-USE) "" *',
  'LIST (SPECIAL-USE RECURSIVEMATCH) "" *',
  'LIST (RECURSIVEMATCH) "" *',
  'LIST (REMOTE RECURSIVEMATCH) "" *',
  'LIST () "" *',
  'LIST (WORDS) "" *',
  'LIST "" * RETURN (SUBSCRIBED CHILDREN SPECIAL-USE STATUS (MESSAGES UIDNEXT))',
  'LIST "" * RETURN ()',
  'LIST "" * RETURN (WORDS)',
  'LIST "" * RETURN (STATUS)',
  'LIST "" * RETURN (STATUS ())',
  'LIST "" * WORDS (CHILDREN)',
  'LIST "" ()',
  'LIST ""',
  `LIST "" (${many(10, "a")})`,
  `LIST "" (${many(11, "a")})`,
  `LIST "" ${"*".repeat(10)}`,
  `LIST "" ${"%".repeat(11)}`,
  `LIST "" ${"a".repeat(500)}`,
  `LIST "" ${"a".repeat(501)}`,
  'LSUB "" *',
  "LSUB a/ b%",
  `LSUB "" ${"*".repeat(11)}`,
  'LSUB ""',
  "STATUS a (MESSAGES RECENT UIDNEXT UIDVALIDITY UNSEEN DELETED SIZE HIGHESTMODSEQ MAILBOXID APPENDLIMIT)",
  "STATUS a (WORDS)",
  "STATUS a ()",
  "STATUS a MESSAGES",
  "STATUS a",
  "APPEND a {1}x",
  "APPEND a ~{1}x",
  "APPEND a (\\Seen $x) {1}x",
  'APPEND a () " 1-Feb-2026 10:00:00 +0130" {1}x',
  'APPEND a "01-Feb-2026 10:00:00 +0130" {1}x',
  'APPEND a "1-Feb-2026 10:00:00 +0130" {1}x',
  "APPEND a UTF8 (~{1}x)",
  "APPEND a UTF8 (~{1}x",
  "APPEND a UTF8 ~{1}x",
  "APPEND a (\\Recent) {1}x",
  'APPEND a "x"',
  "APPEND a x",
  "APPEND a {1}x y",
  "EXPUNGE",
  "EXPUNGE 1",
  "UID EXPUNGE 1:2",
  "UID EXPUNGE",
  ...searchKeys.map((key) => `SEARCH ${key}`),
  "SEARCH",
  "UID SEARCH SEEN",
  "SEARCH CHARSET utf-8 SEEN",
  "SEARCH CHARSET",
  "SEARCH RETURN () SEEN",
  "SEARCH RETURN (MIN MAX COUNT ALL SAVE) SEEN",
  "SEARCH RETURN (WORDS) SEEN",
  "SEARCH RETURN (MIN) CHARSET US-ASCII SEEN",
  "SEARCH RETURN (MIN)",
  "SORT (ARRIVAL CC DATE FROM SIZE SUBJECT TO DISPLAYFROM DISPLAYTO) UTF-8 ALL",
  "UID SORT (REVERSE DATE SUBJECT) us-ascii SEEN",
  "SORT RETURN (COUNT) (DATE) UTF-8 ALL",
  "SORT (WORDS) UTF-8 ALL",
  "SORT (REVERSE) UTF-8 ALL",
  "SORT () UTF-8 ALL",
  "SORT (DATE) UTF-8",
  `SORT (${many(20, "DATE")}) UTF-8 ALL`,
  `SORT (${many(21, "DATE")}) UTF-8 ALL`,
  "THREAD REFERENCES UTF-8 ALL",
  "UID THREAD orderedsubject us-ascii SEEN",
  "THREAD REFERENCES",
  "FETCH 1 FLAGS",
  "UID FETCH $ (FLAGS UID)",
  "FETCH 1:* (FLAGS) (CHANGEDSINCE 5)",
  "UID FETCH 1 (FLAGS) (CHANGEDSINCE 5 VANISHED)",
  "UID FETCH 1 (FLAGS) (VANISHED)",
  "FETCH 1 (FLAGS) (CHANGEDSINCE 5 VANISHED)",
  "FETCH 1 (FLAGS) (WORDS)",
  "FETCH 1 (FLAGS) (CHANGEDSINCE)",
  "FETCH 1",
  "FETCH",
  ...[
    "ALL",
    "FAST",
    "FULL",
    "BODY",
    "BODY[]",
    "BODY.PEEK[]<1.2>",
    "BODY.PEEK[]<1>",
    "BODY[1.2.HEADER]",
    "BODY[1.MIME]",
    "BODY[HEADER.FIELDS (A b)]",
    "BODY[1.HEADER.FIELDS.NOT (A)]",
    "BODY[TEXT]",
    "BINARY[1.2]<3.4>",
    "BINARY.PEEK[]",
    "BINARY.SIZE[1]",
    "BINARY.SIZE[1]<1.2>",
    "(RFC822 RFC822.HEADER RFC822.TEXT RFC822.SIZE)",
    "(ENVELOPE BODYSTRUCTURE INTERNALDATE MODSEQ EMAILID THREADID PREVIEW)",
    "PREVIEW (LAZY)",
    "(PREVIEW (LAZY) UID)",
    "(FAST)",
    "BODY[]<1.4294967296>",
    "BODY[4294967296]",
    `(${many(21, "UID")})`,
  ].map((items) => `FETCH 1 ${items}`),
  "STORE 1 FLAGS (\\Seen)",
  "UID STORE 1:2,4 +FLAGS.SILENT \\Seen \\Draft word",
  "STORE $ -FLAGS ()",
  "STORE 1 (UNCHANGEDSINCE 7) FLAGS (\\Seen)",
  "STORE 1 (WORDS 7) FLAGS (\\Seen)",
  "STORE 1 () FLAGS (\\Seen)",
  "STORE 1 WORDS (\\Seen)",
  "STORE 1 FLAGS",
  "STORE 1 FLAGS (\\*)",
  `STORE 1 FLAGS (${"k".repeat(200)})`,
  `STORE 1 FLAGS (${"k".repeat(201)})`,
  "COPY 1 a",
  "UID COPY $ inbox",
  "MOVE 1:2 a",
  "UID MOVE * a",
  "COPY 1",
  "MOVE",
]

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
  const names = [
    "",
    "a",
    "INBOX",
    "inbox",
    "InBox/Sub",
    "a/inbox",
    "a&b",
    "é",
    "a/é/b",
    "日本語",
    "😀",
    "a*",
    "a%",
    "a//b",
    "/a",
    "a/",
    "a/ /b",
    "a\u0007",
    "a\u2028",
    "\ud800",
    "~peter/mail/台北/日本語",
    many(10, "a").replaceAll(" ", "/"),
    many(11, "a").replaceAll(" ", "/"),
    "a".repeat(255),
    "a".repeat(256),
    `${"é".repeat(127)}a`,
    "é".repeat(128),
  ]
  const encoded = [
    "&",
    "&-",
    "&AOk-",
    "&AOk",
    "&AGE-",
    "&AOkA6Q-",
    "&AOl-",
    "&2AA-",
    "&2D3eAA-",
    "a&-b",
    "&jbk-&jbk-",
    "&*-",
    "é",
  ]
  const patterns = [
    "*",
    "%",
    "a*",
    "a%",
    "a/%",
    "%/b",
    "*b",
    "a*b",
    "a%b",
    "INBOX",
    "inbox/%",
    "",
    "a/*/c",
    "%%",
    "*%*",
    "a",
  ]
  const listed = ["INBOX", "INBOX/x", "a", "a/b", "a/b/c", "ab", "axb"]
  const days = [
    "1-Jan-2026",
    "01-jan-2026",
    "31-DEC-1999",
    "29-Feb-2024",
    "29-Feb-2023",
    "31-Apr-2026",
    "0-Jan-2026",
    "1-Xxx-2026",
    "1-Jan-0099",
    "x",
  ]
  const times = [
    " 1-Jan-2026 00:00:00 +0000",
    "01-Jan-2026 23:59:60 -1130",
    "31-Dec-2025 23:59:59 +1400",
    "29-Feb-2024 12:30:01 -0001",
    "01-Jan-2026 24:00:00 +0000",
    "01-Jan-2026 00:60:00 +0000",
    "01-Jan-2026 00:00:61 +0000",
    "01-Jan-2026 00:00:00 +2400",
    "01-Jan-2026 00:00:00 +0060",
    "32-Jan-2026 00:00:00 +0000",
    "1-Jan-2026 00:00:00 +0000",
    "01-Jan-2026 00:00:00 0000",
  ]
  const sets = [
    "1",
    "1:3",
    "3:1",
    "*",
    "1:*",
    "*:*",
    "1,3,2",
    "1:3,2:5,9",
    "1,2,3",
    "5:7,1:2,4",
    "0",
    "1:0",
    "",
    ",",
    "1,",
    "1:",
    "4294967295",
    "4294967296",
    "01",
    "00000000001",
    "1 2",
    "9:*",
  ]
  const pairs: ReadonlyArray<readonly [Sets.Ranges, Sets.Ranges]> = [
    [[[1, 9]], []],
    [[[1, 9]], [[1, 9]]],
    [[[1, 9]], [[1, 1]]],
    [[[1, 9]], [[9, 9]]],
    [[[1, 9]], [[0, 20]]],
    [
      [[1, 9]],
      [
        [3, 4],
        [6, 6],
      ],
    ],
    [
      [
        [1, 3],
        [5, 7],
      ],
      [[2, 5]],
    ],
    [
      [
        [1, 3],
        [5, 7],
        [9, 9],
      ],
      [
        [1, 2],
        [7, 9],
      ],
    ],
    [
      [[5, 7]],
      [
        [1, 2],
        [4, 5],
        [7, 8],
      ],
    ],
  ]
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

/** Folders a/b, Archive and Trash; subscriptions; four messages, of which the second is deleted and gone. */
const prepared = [
  login,
  ..."bcde".split("").map((tag) => append(tag)),
  "f CREATE a/b\r\ng CREATE Archive (USE (\\Archive))\r\nh SUBSCRIBE a/b\r\ni SUBSCRIBE gone/x\r\nj SUBSCRIBE INBOX\r\nj SUBSCRIBE Archive/2026\r\n",
  "k SELECT INBOX\r\nl STORE 2 +FLAGS.SILENT (\\Deleted)\r\nm EXPUNGE\r\nn STORE 1 -FLAGS.SILENT (\\Seen)\r\no STORE 3 +FLAGS.SILENT (\\Flagged word)\r\np UNSELECT\r\n",
].join("")

const states: Readonly<Record<string, { readonly before: string; readonly options?: Options }>> = {
  "before TLS": { before: "", options: { secure: false, allowsPlain: false } },
  "before login": { before: "" },
  "logged in": { before: prepared },
  selected: { before: `${prepared}q SELECT INBOX\r\n` },
  "read only": { before: `${prepared}q EXAMINE INBOX\r\n` },
  IMAP4rev2: { before: `${prepared}q ENABLE IMAP4rev2\r\nr SELECT INBOX\r\n` },
  QRESYNC: { before: `${prepared}q ENABLE QRESYNC\r\nr SELECT INBOX\r\n` },
}

const everywhere = [
  "NOOP",
  "CAPABILITY",
  "ID NIL",
  "LOGOUT",
  "STARTTLS",
  "LOGIN ada x",
  "LOGIN eve x",
  "AUTHENTICATE PLAIN AGFkYQB4",
  "AUTHENTICATE WORDS",
  "COMPRESS DEFLATE",
  "COMPRESS WORDS",
  "ENABLE CONDSTORE QRESYNC UTF8=ACCEPT IMAP4rev2 WORDS",
  "NAMESPACE",
  "IDLE\r\nDONE",
  "IDLE\r\nWORDS",
  "CHECK",
  "CLOSE",
  "UNSELECT",
  "SELECT INBOX",
  "SELECT INBOX (CONDSTORE)",
  "SELECT INBOX (QRESYNC (1 1))",
  "SELECT INBOX (QRESYNC (9 1))",
  "SELECT INBOX (QRESYNC (1 1 1:3))",
  "SELECT INBOX (QRESYNC (1 1 1:3 (1 1)))",
  "SELECT nowhere",
  "EXAMINE Sent",
  "CREATE new",
  "CREATE new/",
  "CREATE new (USE (\\Junk))",
  "CREATE new (USE (\\Words))",
  "CREATE new (USE (\\Junk \\Trash))",
  "CREATE Sent",
  "CREATE a//b",
  "DELETE Sent",
  "DELETE INBOX",
  "DELETE nowhere",
  "RENAME Sent new",
  "RENAME Sent a//b",
  "SUBSCRIBE new",
  "SUBSCRIBE a//b",
  "UNSUBSCRIBE a//b",
  'LIST "" ""',
  'LIST "" *',
  'LIST "" %',
  "LIST a/ %",
  'LIST "" ("" *)',
  'LIST (SUBSCRIBED) "" *',
  'LIST (SUBSCRIBED RECURSIVEMATCH) "" %',
  'LIST (SUBSCRIBED RECURSIVEMATCH) "" % RETURN (STATUS (MESSAGES))',
  'LIST (SPECIAL-USE) "" *',
  'LIST "" * RETURN (SUBSCRIBED CHILDREN)',
  'LIST "" * RETURN (SPECIAL-USE STATUS (MESSAGES UNSEEN))',
  'LSUB "" *',
  'LSUB "" %',
  "STATUS INBOX (MESSAGES RECENT UIDNEXT UIDVALIDITY UNSEEN SIZE)",
  "STATUS INBOX (HIGHESTMODSEQ MAILBOXID APPENDLIMIT)",
  "STORE 1 +FLAGS.SILENT (\\Deleted)\r\ny STATUS INBOX (DELETED UNSEEN)",
  "STATUS nowhere (MESSAGES)",
  'GETQUOTA ""',
  "GETQUOTA other",
  "GETQUOTAROOT INBOX",
  "GETQUOTAROOT nowhere",
  "APPEND INBOX {3+}\r\nx\r\n",
  "APPEND Sent (\\Seen \\Flagged) {3+}\r\nx\r\n",
  "APPEND nowhere {3+}\r\nx\r\n",
  "APPEND INBOX {0+}\r\n",
  "APPEND INBOX (\\Words) {3+}\r\nx\r\n",
  "EXPUNGE",
  "UID EXPUNGE 1:9",
  "STORE 1 +FLAGS (\\Deleted)\r\ny EXPUNGE",
  "STORE 1:2 +FLAGS (\\Deleted)\r\ny UID EXPUNGE 1",
  "STORE 1 +FLAGS (\\Deleted)\r\ny CLOSE\r\nx STATUS INBOX (MESSAGES)",
  "STORE 1 +FLAGS (\\Deleted)\r\ny UNSELECT\r\nx STATUS INBOX (MESSAGES)",
  "STORE 1 FLAGS (\\Flagged new)",
  "STORE 1 FLAGS.SILENT (\\Flagged new)\r\ny NOOP",
  "STORE 1 (UNCHANGEDSINCE 1) +FLAGS (\\Flagged)",
  "STORE 1:3 (UNCHANGEDSINCE 5) +FLAGS.SILENT (\\Flagged)",
  "STORE 9 FLAGS (\\Seen)",
  "STORE 1 FLAGS (\\Words)",
  "STORE 1 FLAGS (\\*)",
  "UID STORE 9 FLAGS (\\Seen)",
  "FETCH 1:* (UID FLAGS)",
  "FETCH 9 FLAGS",
  "UID FETCH 9 FLAGS",
  "UID FETCH 1:* (FLAGS) (CHANGEDSINCE 5)",
  "UID FETCH 1:* (FLAGS) (CHANGEDSINCE 1 VANISHED)",
  "FETCH 1 BODY[TEXT]<0.5>",
  "FETCH 1 (BODY.PEEK[1] RFC822.SIZE)",
  "SEARCH ALL",
  "SEARCH UNSEEN",
  "SEARCH KEYWORD none",
  "UID SEARCH RETURN () ALL",
  "SEARCH RETURN (MIN MAX) ALL",
  "SEARCH RETURN (SAVE) FLAGGED\r\ny FETCH $ UID\r\nx UID STORE $ +FLAGS (\\Draft)",
  "SEARCH RETURN (SAVE MIN) ALL\r\ny FETCH $ UID",
  "SEARCH RETURN (SAVE MAX) ALL\r\ny FETCH $ UID",
  "SEARCH RETURN (SAVE COUNT) ALL\r\ny SEARCH CHARSET x RETURN (SAVE) ALL\r\nx FETCH $ UID",
  "SEARCH RETURN (SAVE) ALL\r\ny SEARCH RETURN (SAVE) CHARSET latin1 ALL\r\nx FETCH $ UID",
  "SEARCH CHARSET latin1 ALL",
  "SEARCH MODSEQ 3",
  "UID SEARCH RETURN (ALL) MODSEQ 3",
  "SORT (DATE) UTF-8 ALL",
  "UID SORT RETURN (COUNT MIN) (REVERSE DATE) UTF-8 ALL",
  "SORT (DATE) latin1 ALL",
  "THREAD REFERENCES UTF-8 ALL",
  "UID THREAD ORDEREDSUBJECT UTF-8 ALL",
  "THREAD WORDS UTF-8 ALL",
  "THREAD REFERENCES latin1 ALL",
  "COPY 1 Sent",
  "COPY 1 INBOX",
  "UID COPY 9 Sent",
  "COPY 9 Sent",
  "COPY 1 nowhere",
  "MOVE 1 Sent",
  "UID MOVE 1:9 Sent",
  "UID MOVE 9 Sent",
  "WORDS",
]

it("every command is answered in every state", { timeout: 60_000 }, async () => {
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
