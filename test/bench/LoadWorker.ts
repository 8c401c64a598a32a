/**
 * The load generator for machines without wrk: raw sockets in a thread, each with one request in flight. Parses as
 * little of a response as possible, so that the server is what is measured.
 */
import { connect, type Socket } from "node:net"
import { parentPort } from "node:worker_threads"
import { type Call, filled, letter, type Load, type Order, percentileOf } from "./LoadOrder.ts"

/** The conversation of a connection: it sends the next request after a complete response. */
interface Conversation {
  readonly socket: Socket
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>
}

interface Tally {
  readonly waits: Array<number>
  wrong: number
  readonly over: () => boolean
}

const opened = (port: number, hear: (socket: Socket, chunk: string) => void): Conversation => {
  const socket = connect(port, "127.0.0.1").setNoDelay(true).setEncoding("latin1")
  socket.on("data", (chunk: string) => hear(socket, chunk))
  socket.on("error", () => {})
  return { socket, closed: new Promise((resolve) => socket.once("close", () => resolve())) }
}

/** Returns the bytes of a call, computed once if they are constant. */
const bytesOf = (call: Call): ((worker: number, n: number) => string) => {
  const { host = "127.0.0.1", ...headers } = call.headers ?? {}
  const make = (worker: number, n: number) => {
    const body = filled(call.body ?? "", worker, n)
    const lines = Object.entries({
      host,
      ...headers,
      ...(call.body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    return `${call.method} ${filled(call.path, worker, n)} HTTP/1.1\r\n${lines.join("")}\r\n${body}`
  }
  if (`${call.path}${call.body ?? ""}` !== filled(`${call.path}${call.body ?? ""}`, 0, 0)) return make
  const constant = make(0, 0)
  return () => constant
}

/** Returns whether a response is complete. */
const isWhole = (answer: string): boolean => {
  const end = answer.indexOf("\r\n\r\n")
  if (end < 0) return false
  const head = answer.slice(0, end)
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return answer.endsWith("\r\n0\r\n\r\n")
  return answer.length >= end + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
}

const http = ({ port, call }: Order & { kind: "http" }, worker: number, tally: Tally): Conversation => {
  const bytes = bytesOf(call)
  let answer = ""
  let sent = 0
  let n = 0
  const ask = (socket: Socket) => {
    if (tally.over()) return socket.destroy()
    answer = ""
    sent = performance.now()
    socket.write(bytes(worker, n++))
  }
  const conversation = opened(port, (socket, chunk) => {
    answer += chunk
    if (!isWhole(answer)) return
    const status = Number(answer.slice(9, 12))
    tally.waits.push(performance.now() - sent)
    if (call.status === undefined ? status < 200 || status > 299 : status !== call.status) tally.wrong++
    ask(socket)
  })
  conversation.socket.once("connect", () => ask(conversation.socket))
  return conversation
}

/** Index of the next Mailbox, if there are more Mailboxes than connections; it continues across slices. */
let turn = 0

const smtp = (
  { port, recipients, connections }: Order & { kind: "smtp" },
  worker: number,
  tally: Tally,
): Conversation => {
  const recipientOf = () => recipients[(recipients.length > connections ? turn++ : worker) % recipients.length]!
  let to = ""
  let reply = ""
  let sent = 0
  let n = 0
  let step = -1
  const commands = [
    () => "EHLO bench.example.org\r\n",
    () => "MAIL FROM:<bench@example.org>\r\n",
    () => `RCPT TO:<${(to = recipientOf())}>\r\n`,
    () => "DATA\r\n",
    () => `${letter(to, `${worker}.${n++}`)}\r\n.\r\n`,
  ]
  return opened(port, (socket, chunk) => {
    reply += chunk
    if (!/^\d{3} .*\r\n$/m.test(reply)) return
    const refused = Number(reply.slice(0, 3)) >= 400
    reply = ""
    if (refused) {
      tally.wrong++
      socket.destroy()
      return
    }
    if (step === 4) tally.waits.push(performance.now() - sent)
    step = step === 4 ? 1 : step + 1
    if (step === 1) {
      if (tally.over()) return socket.destroy()
      sent = performance.now()
    }
    socket.write(commands[step]!())
  })
}

/** Drives the load for a time over new connections. */
export const drive = async (order: Order, seconds: number): Promise<Load> => {
  const start = performance.now()
  const end = start + seconds * 1000
  const tally: Tally = { waits: [], wrong: 0, over: () => performance.now() >= end }
  const conversations = Array.from({ length: order.connections }, (_, worker) =>
    order.kind === "http" ? http(order, worker, tally) : smtp(order, worker, tally),
  )
  // A server that does not respond must not block the bench.
  const timer = setTimeout(
    () => {
      for (const { socket } of conversations) {
        if (!socket.destroyed) tally.wrong++
        socket.destroy()
      }
    },
    seconds * 1000 + 10_000,
  )
  await Promise.all(conversations.map(({ closed }) => closed))
  clearTimeout(timer)
  const took = (performance.now() - start) / 1000
  const sorted = tally.waits.toSorted((a, b) => a - b)
  return {
    done: sorted.length,
    wrong: tally.wrong,
    seconds: took,
    p50: percentileOf(sorted, 0.5),
    p99: percentileOf(sorted, 0.99),
  }
}

parentPort?.on("message", ({ order, seconds }: { readonly order: Order; readonly seconds: number }) => {
  void drive(order, seconds).then((load) => parentPort!.postMessage(load))
})
