/** A test name server over UDP and TCP with configurable records, DNSSEC status and failures. */
import { createSocket } from "node:dgram"
import { createServer } from "node:net"
import type { Type } from "@svc/mail-gateway/mail/sending/dane/Message"
import { Effect } from "effect"

const types: Readonly<Record<number, Type>> = { 1: "A", 15: "MX", 28: "AAAA", 52: "TLSA" }
const codeOf = { A: 1, MX: 15, AAAA: 28, TLSA: 52 } as const

export interface Has {
  /** The data of its records. */
  readonly data?: ReadonlyArray<Uint8Array>
  readonly isSecure?: boolean
  readonly code?: number
  /** The target of an alias. */
  readonly alias?: string
  /** Whether UDP answers are truncated. */
  readonly isLong?: boolean
  /** Whether queries are not answered: by UDP, or by TCP, whose connection is closed. */
  readonly isSilent?: "udp" | "tcp"
  /** Whether an answer to another query, with another last byte, comes first. */
  readonly isSpoofed?: boolean
}

/** Records by `TYPE name`. Missing names do not exist, with an authentic answer. */
export type Names = Readonly<Record<string, Has>>

const nameOf = (name: string) =>
  Buffer.concat([
    ...name.split(".").map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, "latin1")),
    Buffer.from([0]),
  ])

export const a = (address: string) => Buffer.from(address.split(".").map(Number))
export const mx = (priority: number, exchange: string) =>
  Buffer.concat([Buffer.from([priority >> 8, priority & 0xff]), nameOf(exchange)])
export const tlsa = (usage: number, selector: number, matching: number, data: Uint8Array) =>
  Buffer.concat([Buffer.from([usage, selector, matching]), data])

/** The owner name is a compression pointer to the question. */
const record = (owner: Buffer, type: number, data: Uint8Array) =>
  Buffer.concat([owner, Buffer.from([0, type, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff]), data])

/** Returns the answers in their order. */
const answered = (question: Buffer, names: Names, isUdp: boolean): ReadonlyArray<Buffer> => {
  let at = 12
  const labels: Array<string> = []
  while (question[at]! > 0) {
    labels.push(question.toString("latin1", at + 1, at + 1 + question[at]!))
    at += question[at]! + 1
  }
  const type = types[question.readUInt16BE(at + 1)]!
  const has = names[`${type} ${labels.join(".")}`] ?? { code: 3 }
  const { data = [], isSecure = true, code = 0, alias, isLong = false, isSpoofed = false } = has
  if (has.isSilent === (isUdp ? "udp" : "tcp")) return []
  const isCut = isLong && isUdp
  const same = Buffer.from([0xc0, 12])
  const owner = alias === undefined ? same : nameOf(alias)
  const records = [
    ...(alias === undefined ? [] : [record(same, 5, nameOf(alias))]),
    ...data.map((one) => record(owner, codeOf[type], one)),
  ]
  const head = Buffer.alloc(12)
  question.copy(head, 0, 0, 2)
  head.writeUInt16BE(0x8180 | (isSecure ? 0x20 : 0) | (isCut ? 0x200 : 0) | code, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(isCut ? 0 : records.length, 6)
  const answer = Buffer.concat([head, question.subarray(12, at + 5), ...(isCut ? [] : records)])
  const other = Buffer.from(answer)
  other.writeUInt16BE(answer.readUInt16BE(0) ^ 1, 0)
  other[other.length - 1]! ^= 0xff
  return isSpoofed ? [other, answer] : [answer]
}

/** Returns the port it listens on. */
export const nameServer = (names: Names) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly stop: () => void }, "taken">((resume) => {
      const overTcp = createServer({ noDelay: true }, (socket) => {
        socket.on("error", () => {})
        socket.on("data", (chunk: Buffer) => {
          for (const answer of answered(chunk.subarray(2), names, false)) {
            socket.write(Buffer.from([answer.length >> 8, answer.length & 0xff]))
            socket.write(answer.subarray(0, -1))
            setTimeout(() => socket.end(answer.subarray(-1)), 5)
            return
          }
          socket.destroy()
        })
      })
      const overUdp = createSocket("udp4")
      overUdp.on("message", (question, { port, address }) => {
        for (const answer of answered(question, names, true)) overUdp.send(answer, port, address)
      })
      overTcp.listen(0, "127.0.0.1", () => {
        const address = overTcp.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const stop = () => {
          overTcp.close()
          overUdp.close()
        }
        // A port that is free for TCP may be in use for UDP.
        overUdp.once("error", () => {
          stop()
          resume(Effect.fail("taken"))
        })
        overUdp.bind(port, "127.0.0.1", () => resume(Effect.succeed({ port, stop })))
      })
    }).pipe(Effect.eventually),
    ({ stop }) => Effect.sync(stop),
  )
