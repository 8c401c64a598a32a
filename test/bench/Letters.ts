/** Sends messages one after the other, for rows in which each result decides the next step. */
import { connect, type Socket } from "node:net"
import { letter } from "./LoadOrder.ts"

/** Opens an SMTP connection that sends messages one after the other. */
export const session = async (port: number) => {
  const socket: Socket = connect(port, "127.0.0.1")
  let waiting: ((reply: string) => void) | undefined
  let text = ""
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1")
    if (!/^\d{3} .*\r\n$/m.test(text)) return
    const reply = text
    text = ""
    waiting?.(reply)
  })
  const send = (line: string) => {
    const reply = new Promise<string>((resolve) => (waiting = resolve))
    socket.write(line)
    return reply
  }
  await new Promise<string>((resolve) => (waiting = resolve))
  await send("EHLO bench.example.org\r\n")
  return {
    send: async (to: string, data: string) => {
      await send("MAIL FROM:<bench@example.org>\r\n")
      await send(`RCPT TO:<${to}>\r\n`)
      await send("DATA\r\n")
      const reply = await send(`${data}\r\n.\r\n`)
      if (!reply.startsWith("250")) throw new Error(reply)
    },
    close: () => socket.destroy(),
  }
}

let number = 0
export const message = (to: string) => letter(to, String(number++))
