/** Mail senders: a regular one (nodemailer), a raw SMTP conversation, and messages as a gateway forwards them. */
import { connect } from "node:net"
import { makeUuidV7 } from "@svc/domain/Ids"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { Clock, Effect } from "effect"
import { createTransport, type SendMailOptions } from "nodemailer"

export const send = async (port: number, message: SendMailOptions, from = "127.0.0.1") => {
  const transport = createTransport({ host: "127.0.0.1", port, localAddress: from, tls: { rejectUnauthorized: false } })
  try {
    return await transport.sendMail(message)
  } finally {
    transport.close()
  }
}

/** Sends each line after the reply to the previous one, and returns all replies. `first` is sent immediately. */
export const converse = (
  port: number,
  commands: ReadonlyArray<string | Buffer>,
  first?: string | Buffer,
  from = "127.0.0.1",
): Promise<ReadonlyArray<string>> =>
  new Promise((resolve, reject) => {
    const replies: Array<string> = []
    const socket = connect({ port, host: "127.0.0.1", localAddress: from })
    let text = ""
    let next = 0
    if (first !== undefined) socket.write(first)
    socket.setTimeout(20_000, () => socket.destroy(new Error(`no reply after: ${replies.at(-1)}`)))
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      // A reply is complete with a line `250 …` (not `250-…`).
      for (let end = /^\d{3} .*\r\n/m.exec(text); end !== null; end = /^\d{3} .*\r\n/m.exec(text)) {
        replies.push(text.slice(0, end.index + end[0].length).trim())
        text = text.slice(end.index + end[0].length)
        if (next < commands.length) socket.write(commands[next++]!)
        else socket.end()
      }
    })
    socket.on("close", () => resolve(replies))
    socket.on("error", (error) => (replies.length > 0 ? resolve(replies) : reject(error)))
  })

/** Sends each line after the reply to the previous one, then waits for the connection to break. */
export const conversation = (port: number, lines: ReadonlyArray<string>) => {
  const finished = Promise.withResolvers<void>()
  const broke = Promise.withResolvers<string>()
  const remaining = [...lines]
  let text = ""
  const socket = connect(port, "127.0.0.1")
  socket.on("data", (chunk) => {
    text += chunk.toString()
    const line = /^\d{3} .*\r\n$/m.test(text) ? remaining.shift() : undefined
    if (line === undefined) return
    text = ""
    socket.write(line, () => remaining.length === 0 && finished.resolve())
  })
  socket.on("error", () => {})
  socket.on("close", () => broke.resolve(text))
  return {
    /** Resolves when the last line has been sent. */
    allSent: finished.promise,
    /** Resolves to the reply to the last line when the connection breaks. */
    broke: broke.promise,
  }
}

/** Returns the commands up to DATA for one recipient. */
export const upToData = (to: string, from = "sender@example.org") => [
  "EHLO client.example.org\r\n",
  `MAIL FROM:<${from}>\r\n`,
  `RCPT TO:<${to}>\r\n`,
  "DATA\r\n",
]

let number = 0

/** Returns a new message for an Identity's actor; `part` overrides members. */
export const receivedMail = Effect.fnUntraced(function* (part: Partial<ReceivedMail> = {}) {
  const from = { address: "Grace@Example.org", name: "Grace" }
  const mail: ReceivedMail = {
    message_id: yield* makeUuidV7,
    envelope_from: "grace@example.org",
    recipient: "ada@mail.localhost",
    tag: null,
    sha256: new TextEncoder().encode(`message ${number++}`),
    size: 1_000,
    received_at: new Date(yield* Clock.currentTimeMillis),
    origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: null },
    from,
    to: [{ address: "ada@mail.localhost", name: null }],
    cc: [],
    bcc: [],
    reply_to: [],
    subject: "hello",
    snippet: "hello",
    message_id_header: null,
    in_reply_to: null,
    references: [],
    attachments: [],
    content: { raw: new Uint8Array([1]), text: "hello", html: null, headers: [], search_text: "hello" },
    ...part,
  }
  return mail
})
