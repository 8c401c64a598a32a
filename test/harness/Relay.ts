/** A relay for the service's system mail that requires a password and can reject messages temporarily. */
import { SMTPServer } from "smtp-server"

export interface RelayedMail {
  readonly user: string
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly raw: string
}

export const startRelay = async (port: number) => {
  const received: Array<RelayedMail> = []
  let refuses: boolean | "large" = false
  let refused = 0
  const relay = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    onAuth: ({ username, password }, _, done) =>
      password === "secret" ? done(null, { user: username }) : done(new Error("no")),
    // Recipients of this name are rejected permanently (RFC 3463 X.1.1).
    onRcptTo: ({ address }, _, done) =>
      address.startsWith("nobody")
        ? done(Object.assign(new Error("5.1.1 no such user"), { responseCode: 550 }))
        : done(),
    onData: (stream, session, done) => {
      const chunks: Array<Buffer> = []
      stream.on("data", (chunk: Buffer) => chunks.push(chunk))
      stream.on("end", () => {
        if (refuses === true || (refuses === "large" && chunks.length > 100)) {
          refused++
          return done(Object.assign(new Error("later"), { responseCode: 451 }))
        }
        const { mailFrom, rcptTo } = session.envelope
        received.push({
          user: String(session.user),
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
        })
        done()
      })
    },
  })
  await new Promise<void>((resolve) => relay.listen(port, "127.0.0.1", resolve))
  return {
    taken: received,
    /** Sets which further mail is rejected: all, large messages, or none. */
    refuses: (value: boolean | "large") => void (refuses = value),
    refused: () => refused,
    stop: () => new Promise<void>((resolve) => relay.close(() => resolve())),
  }
}
