/** A relay that crashes on request: before the end of the content, before its 250, or right after it. */
import { createServer, type Socket } from "node:net"

/**
 * `before`: crashes before the content is complete. `in`: has the content and does not respond. `after`: sends the 250
 * and crashes.
 */
export type CrashPoint = "never" | "before" | "in" | "after"

export interface Copy {
  readonly subject: string
  readonly messageId: string
  /** Whether the sender cannot know that the message arrived. */
  readonly isInTheAir: boolean
  readonly at: number
}

export interface CrashingRelay {
  readonly port: number
  readonly copies: Array<Copy>
  /** Times at which content was requested (354). */
  readonly dataTimes: Array<number>
  /** Envelope senders in order of arrival. */
  readonly senders: Array<string>
  readonly stop: () => void
}

const field = (content: string, name: string) => new RegExp(`^${name}: (.*)\r$`, "im").exec(content)?.[1] ?? ""

/**
 * Starts the relay. `death` is called for each message; a reply takes `slowMillis`, and a reply to RCPT also waits for
 * `held`.
 */
export const startCrashingRelay = (
  death: () => CrashPoint,
  slowMillis = 0,
  held: () => Promise<void> | undefined = () => undefined,
): Promise<CrashingRelay> =>
  new Promise((resolve) => {
    const copies: Array<Copy> = []
    const dataTimes: Array<number> = []
    const senders: Array<string> = []
    const sockets = new Set<Socket>()
    const converse = (socket: Socket) => {
      sockets.add(socket)
      socket.on("error", () => {})
      socket.on("close", () => sockets.delete(socket))
      let text = ""
      let content = false
      let fate: CrashPoint = "never"
      const reply = (line: string) => void (socket.destroyed || socket.write(`${line}\r\n`))
      const take = (letter: string) => {
        const copy = {
          subject: field(letter, "Subject"),
          messageId: field(letter, "Message-ID"),
          at: performance.now(),
        }
        copies.push({ ...copy, isInTheAir: fate !== "never" })
        if (fate === "in") return socket.destroy()
        if (fate === "after") return socket.end("250 2.0.0 taken\r\n", () => socket.destroy())
        setTimeout(() => reply("250 2.0.0 taken"), slowMillis)
      }
      const command = (line: string) => {
        if (/^EHLO/i.test(line)) return reply("250-relay\r\n250-PIPELINING\r\n250 8BITMIME")
        const sender = /^MAIL FROM:<(.*?)>/i.exec(line)?.[1]
        if (sender !== undefined) senders.push(sender)
        if (/^DATA/i.test(line)) {
          dataTimes.push(performance.now())
          fate = death()
          content = true
          return reply("354 go on")
        }
        if (/^QUIT/i.test(line)) return socket.end("221 bye\r\n")
        const waits = /^RCPT/i.test(line) ? held() : undefined
        if (waits === undefined) reply("250 ok")
        else void waits.then(() => reply("250 ok"))
      }
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1")
        while (true) {
          const end = content ? text.indexOf("\r\n.\r\n") : text.indexOf("\r\n")
          if (content && fate === "before" && text.length > 0) return socket.destroy()
          if (end < 0) return
          const part = text.slice(0, end)
          text = text.slice(end + (content ? 5 : 2))
          if (content) {
            content = false
            take(`${part}\r\n`)
          } else command(part)
        }
      })
      reply("220 relay")
    }
    const server = createServer(converse)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const stop = () => {
        for (const socket of sockets) socket.destroy()
        server.close()
      }
      resolve({ port, copies, dataTimes: dataTimes, senders, stop })
    })
  })
