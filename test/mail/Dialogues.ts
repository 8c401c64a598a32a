/** Dialogues with the SMTP server and the submission server: each command and limit, in each state of a session. */
import { converse } from "../harness/Mail.ts"

type Line = string | readonly [shown: string, sent: string]

const line = (command: string) => `${command}\r\n`
const content = (...lines: ReadonlyArray<string>): Line => {
  const text = `${lines.join("\r\n")}\r\n.\r\n`
  return [
    text.length > 200
      ? `${text.slice(0, 60).replaceAll("\r\n", " ⏎ ")}… (${text.length})`
      : text.trimEnd().replaceAll("\r\n", " ⏎ "),
    text,
  ]
}
const chunk = (text: string, last = ""): Line => [
  `BDAT ${text.length}${last} (${text.replaceAll("\r\n", " ⏎ ").slice(0, 60)})`,
  `BDAT ${text.length}${last}\r\n${text}`,
]

const shownOf = (one: Line) => (typeof one === "string" ? one : one[0])
const sentOf = (one: Line) => (typeof one === "string" ? line(one) : one[1])

/**
 * Holds a dialogue and returns it with the replies. Message ids are left out, a series of commands with the same
 * reply takes one line, and the extensions are only listed where they are asked for first.
 */
export const held = async (port: number, dialogue: ReadonlyArray<Line>): Promise<ReadonlyArray<string>> => {
  const replies = await converse(port, dialogue.map(sentOf))
  const shown = (reply = "closed") =>
    reply
      .replace(/msg_\w+/g, "msg_…")
      .replace(/\[127\.0\.0\.1\]/g, "[client]")
      .replaceAll("\r\n", " ⏎ ")
      .replace(/^250-.*$/, (all) => (shownOf(dialogue[0]!) === "HELO" ? all : "250-…"))
  const lines: Array<string> = [`S: ${shown(replies[0])}`]
  for (const [at, one] of dialogue.entries()) {
    const pair = [
      `C: ${shownOf(one).replaceAll("\0", "␀").replaceAll("\r", "␍").replaceAll("\n", "␊")}`,
      `S: ${shown(replies[at + 1])}`,
    ]
    if (dialogue.length > 30 && shown(replies[at]) === shown(replies[at + 1])) lines.splice(-2, 2, ...pair)
    else lines.push(...pair)
  }
  return lines
}

const from = "MAIL FROM:<a@x.example>"
const letter = (...fields: ReadonlyArray<string>) => content("From: a@x.example", ...fields, "", "text")
const received = (count: number) => Array.from({ length: count }, () => "Received: from a by b; now")
const long = "x".repeat(900)

/** Dialogues with the SMTP server; `to` is the address of a Mailbox, `large` one of a Mailbox for large messages. */
export const smtp = (to: string, limit: number): Readonly<Record<string, ReadonlyArray<Line>>> => {
  const rcpt = `RCPT TO:<${to}>`
  const upTo = ["EHLO client.example", from, rcpt]
  const sized = (bytes: number): Line => {
    const head = "From: a@x.example\r\n\r\n"
    const lines = Math.floor((bytes - head.length) / 902)
    const rest = bytes - head.length - lines * 902 - 2
    return [`a message of ${bytes} bytes`, `${head}${`${long}\r\n`.repeat(lines)}${"y".repeat(rest)}\r\n.\r\n`]
  }
  return {
    greeting: [
      "HELO",
      "EHLO",
      "HELO client.example",
      "EHLO client.example",
      "EHLO [127.0.0.1]",
      "NOOP",
      "NOOP words",
      "RSET",
      "HELP",
      "VRFY a",
      "EXPN a",
      "WORDS",
      "",
      "AUTH PLAIN",
      "LHLO x",
      "QUIT",
    ],
    "before the greeting": [from, rcpt, "DATA", chunk("x"), "NOOP", "RSET", "STARTTLS words", "QUIT"],
    "too many unknown commands": Array.from({ length: 11 }, () => "WORDS"),
    senders: [
      "EHLO x",
      "MAIL",
      "MAIL FROM:a@x.example",
      "MAIL FROM:<>",
      "RSET",
      "MAIL FROM:<a@x.example> SIZE=1000 BODY=8BITMIME",
      from,
      "RSET",
      "mail from:<a@x.example>",
      "RSET",
      `MAIL FROM:<a@x.example> SIZE=${limit}`,
      "RSET",
      `MAIL FROM:<a@x.example> SIZE=${limit + 1}`,
      "RSET",
      "MAIL FROM:<a@x.example> SIZE=words",
      "RSET",
      "MAIL FROM:<a@x.example> BODY=7BIT",
      "RSET",
      "MAIL FROM:<a@x.example> BODY=WORDS",
      "RSET",
      "MAIL FROM:<a@x.example> SMTPUTF8",
      "RSET",
      "MAIL FROM:<a@x.example> WORDS=x",
      "RSET",
      "MAIL FROM:<a@x.example> AUTH=<>",
      "RSET",
      ["MAIL FROM:<ä@x.example>", "MAIL FROM:<ä@x.example>\r\n"],
      ["MAIL FROM:<ä@x.example> SMTPUTF8", "MAIL FROM:<ä@x.example> SMTPUTF8\r\n"],
      "RSET",
      'MAIL FROM:<"a b"@x.example>',
      "RSET",
      'MAIL FROM:<"a@x.example>',
      "RSET",
      "MAIL FROM:<@relay:a@x.example>",
      "QUIT",
    ],
    recipients: [
      "EHLO x",
      rcpt,
      from,
      "RCPT",
      "RCPT TO:x",
      "RCPT TO:<>",
      rcpt,
      rcpt.toUpperCase(),
      rcpt.replace("@", "+Some+Tag@"),
      rcpt.replace("@", "+@"),
      `RCPT TO:<"${to.split("@")[0]}"@mail.localhost>`,
      "RCPT TO:<postmaster>",
      "RCPT TO:<Abuse@mail.localhost>",
      "RCPT TO:<a@elsewhere.example>",
      "RCPT TO:<nobodyhere@mail.localhost>",
      "RCPT TO:<no_such@mail.localhost>",
      `${rcpt} NOTIFY=NEVER`,
      `${rcpt} WORDS`,
      "QUIT",
    ],
    "too many recipients": ["EHLO x", from, ...Array.from({ length: 101 }, (_, at) => rcpt.replace("@", `+${at}@`))],
    "data out of order": ["EHLO x", "DATA", from, "DATA", rcpt, "DATA words", from, "QUIT"],
    "a message": [...upTo, "DATA", letter(), "DATA", from, "QUIT"],
    "a message without recipients after a reset": [...upTo, "RSET", "DATA", "QUIT"],
    "a message with dots": [...upTo, "DATA", content("From: a@x.example", "", "..", "..two"), "QUIT"],
    "a message for the operator": ["EHLO x", from, "RCPT TO:<postmaster@mail.localhost>", "DATA", letter(), "QUIT"],
    "100 hops": [...upTo, "DATA", letter(...received(100)), "QUIT"],
    "101 hops": [...upTo, "DATA", letter(...received(101)), "QUIT"],
    NUL: [...upTo, "DATA", content("From: a@x.example", "", "a\0b"), "NOOP", "QUIT"],
    "a bare line feed": [...upTo, "DATA", content("From: a@x.example", "", "a\nb"), "NOOP"],
    "a bare carriage return": [...upTo, "DATA", content("From: a@x.example", "", "a\rb"), "NOOP"],
    "a header of 2,000 lines": [...upTo, "DATA", letter(...Array.from({ length: 1_999 }, () => "A: b")), "QUIT"],
    "a header of 2,001 lines": [...upTo, "DATA", letter(...Array.from({ length: 2_000 }, () => "A: b")), "QUIT"],
    "a message of the maximum size": [...upTo, "DATA", sized(limit), "QUIT"],
    "a message above the maximum size": [...upTo, "DATA", sized(limit + 1), "NOOP", "QUIT"],
    chunks: [...upTo, chunk("From: a@x.example\r\n"), chunk("\r\ntext\r\n", " LAST"), chunk("x", " LAST"), "QUIT"],
    "an empty last chunk": [...upTo, chunk("From: a@x.example\r\n\r\ntext\r\n"), "BDAT 0 LAST", "QUIT"],
    "chunks and other commands": [
      ...upTo,
      chunk("From: a@x.example\r\n"),
      "DATA",
      rcpt,
      from,
      "NOOP",
      "RSET",
      chunk("x", " LAST"),
      "QUIT",
    ],
    "chunks before recipients": ["EHLO x", chunk("x"), from, chunk("x", " LAST"), "QUIT"],
    "chunks without a size": [...upTo, "BDAT words", "NOOP"],
    "chunks with too much after them": [...upTo, "BDAT 1 WORDS", "NOOP"],
    "a chunk that is far too large": [...upTo, `BDAT ${2 * limit + 1}`, "NOOP"],
    "chunks with a bare line feed": [...upTo, chunk("From: a@x.example\r\n\r\na\nb\r\n", " LAST"), "NOOP"],
    "chunks without a line break at the end": [...upTo, chunk("From: a@x.example\r\n\r\na", " LAST"), "QUIT"],
  }
}

/** Dialogues with the submission server as an Identity. */
export const submission = (
  own: {
    readonly user: string
    readonly pass: string
    readonly key: string
    readonly address: string
    readonly allowed: string
  },
  limit: number,
): Readonly<Record<string, ReadonlyArray<Line>>> => {
  const base64 = (text: string) => Buffer.from(text).toString("base64")
  const plain: Line = ["AUTH PLAIN (password)", `AUTH PLAIN ${base64(`\0${own.user}\0${own.pass}`)}\r\n`]
  const secret = (shown: string, text: string): Line => [shown, `${base64(text)}\r\n`]
  const mail = `MAIL FROM:<${own.address}>`
  const rcpt = `RCPT TO:<${own.allowed}>`
  const upTo = ["EHLO laptop", plain, mail, rcpt]
  const written = (...fields: ReadonlyArray<string>) =>
    content(`From: ${own.address}`, `To: ${own.allowed}`, ...fields, "", "text")
  return {
    "before the login": ["EHLO laptop", mail, rcpt, "DATA", chunk("x"), "NOOP", "RSET", "HELP", "WORDS", "QUIT"],
    "too many commands before the login": Array.from({ length: 32 }, () => "NOOP"),
    logins: [
      "EHLO laptop",
      "AUTH",
      "AUTH WORDS",
      "AUTH PLAIN a b",
      "AUTH PLAIN !",
      ["AUTH PLAIN (for another)", `AUTH PLAIN ${base64(`eve\0${own.user}\0${own.pass}`)}\r\n`],
      "AUTH PLAIN",
      "*",
      "AUTH LOGIN",
      "*",
      "AUTH PLAIN",
      secret("(password)", `\0${own.user}\0${own.pass}`),
      plain,
      "QUIT",
    ],
    "a login in steps": [
      "EHLO laptop",
      "AUTH LOGIN",
      secret("(user)", own.user),
      secret("(password)", own.pass),
      "QUIT",
    ],
    "a login with the key": [
      "EHLO laptop",
      ["AUTH OAUTHBEARER (key)", `AUTH OAUTHBEARER ${base64(`n,,\x01auth=Bearer ${own.key}\x01\x01`)}\r\n`],
      mail,
      "QUIT",
    ],
    "a wrong password": [
      "EHLO laptop",
      ["AUTH PLAIN (wrong)", `AUTH PLAIN ${base64(`\0${own.user}\0wrong`)}\r\n`],
      mail,
      plain,
      "QUIT",
    ],
    senders: [
      "EHLO laptop",
      plain,
      "MAIL FROM:<>",
      "MAIL FROM:<eve@mail.localhost>",
      mail.replace("@mail", "+tag@mail"),
      mail.replace("mail.localhost", "x.example"),
      mail.toUpperCase(),
      "RSET",
      `${mail} AUTH=<>`,
      "RSET",
      `${mail} SIZE=${limit}`,
      "RSET",
      `${mail} SIZE=${limit + 1}`,
      "RSET",
      `${mail} WORDS=x`,
      "QUIT",
    ],
    recipients: [
      "EHLO laptop",
      plain,
      rcpt,
      mail,
      rcpt,
      `${rcpt} NOTIFY=NEVER`,
      "RCPT TO:<x>",
      "RCPT TO:<a@b@c.example>",
      "RCPT TO:<eve@evil.example>",
      "DATA",
      written(),
      "QUIT",
    ],
    "too many recipients": [
      "EHLO laptop",
      plain,
      mail,
      ...Array.from({ length: 51 }, (_, at) => `RCPT TO:<r${at}@x.example>`),
    ],
    "a message": [
      ...upTo,
      "DATA",
      written("Subject: one"),
      mail,
      rcpt,
      chunk(`From: ${own.address}\r\nTo: ${own.allowed}\r\nSubject: two\r\n\r\ntext\r\n`, " LAST"),
      "QUIT",
    ],
    "another author": [...upTo, "DATA", content("From: eve@mail.localhost", `To: ${own.allowed}`, "", "text"), "QUIT"],
    NUL: [...upTo, "DATA", content(`From: ${own.address}`, "", "a\0b"), "NOOP", "QUIT"],
    "a bare line feed": [...upTo, "DATA", content(`From: ${own.address}`, "", "a\nb"), "NOOP"],
    "101 hops": [...upTo, "DATA", written(...received(101)), "QUIT"],
    "a header of 2,001 lines": [...upTo, "DATA", written(...Array.from({ length: 2_000 }, () => "A: b")), "QUIT"],
    "a message above the maximum size": [
      ...upTo,
      "DATA",
      [`${limit + 1} bytes`, `From: ${own.address}\r\n\r\n${`${long}\r\n`.repeat(Math.ceil(limit / 902))}.\r\n`],
      "NOOP",
      "QUIT",
    ],
    "a message above twice the maximum size": [
      ...upTo,
      "DATA",
      [`${2 * limit + 1} bytes`, `From: ${own.address}\r\n\r\n${`${long}\r\n`.repeat(Math.ceil(limit / 451))}.\r\n`],
    ],
    "a signed message": [
      ...upTo,
      "DATA",
      content(
        `From: ${own.address}`,
        `To: ${own.allowed}`,
        "Content-Type: multipart/signed; boundary=b",
        "",
        "--b",
        "",
        "x",
        "--b--",
      ),
      "QUIT",
    ],
  }
}
