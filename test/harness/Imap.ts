/** A minimal IMAP client that sends commands and returns everything up to the tagged response. */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { createInflateRaw } from "node:zlib"
import { patience } from "./Eventually.ts"

export interface Reply {
  /** `OK …`, `NO …` or `BAD …`. */
  readonly tagged: string
  /** Untagged lines, including their literals. */
  readonly untagged: ReadonlyArray<string>
}

export interface Connecting {
  readonly tls?: boolean
  readonly host?: string
  readonly localAddress?: string
}

export class ImapClient {
  readonly #socket: Socket
  #text = ""
  #closed = false
  #tags = 0
  #waiting: (() => void) | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    const wake = () => this.#waiting?.()
    socket.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("latin1")
      wake()
    })
    socket.on("close", () => {
      this.#closed = true
      wake()
    })
    socket.on("error", () => {})
  }

  static async connect(port: number, options: Connecting = {}) {
    const { host = "127.0.0.1", localAddress } = options
    const socket =
      options.tls === true
        ? connectTls({ port, host, rejectUnauthorized: false })
        : connect({ port, host, ...(localAddress === undefined ? {} : { localAddress }) })
    const client = new ImapClient(socket)
    await client.line()
    return client
  }

  static async login(port: number, user: string, password: string, options: Connecting = {}) {
    const client = await ImapClient.connect(port, options)
    const reply = await client.say(`LOGIN "${user}" "${password}"`)
    if (!reply.tagged.startsWith("OK")) throw new Error(`login: ${reply.tagged}`)
    return client
  }

  get isClosed(): boolean {
    return this.#closed
  }

  write(bytes: string | Uint8Array): void {
    this.#socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes)
  }

  /** Returns the next line including literals, or undefined after the connection has ended. */
  async line(seconds = patience / 1000): Promise<string | undefined> {
    const deadline = Date.now() + seconds * 1000
    while (true) {
      const line = this.#take()
      if (line !== undefined) return line
      if (this.#closed) return undefined
      if (Date.now() > deadline) throw new Error(`no line; held: ${this.#text.slice(0, 200)}`)
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
        setTimeout(resolve, 200)
      })
    }
  }

  #take(): string | undefined {
    let from = 0
    while (true) {
      const end = this.#text.indexOf("\r\n", from)
      if (end < 0) return undefined
      const size = /\{(\d+)\}$/.exec(this.#text.slice(from, end))?.[1]
      if (size === undefined) {
        const line = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        return line
      }
      from = end + 2 + Number(size)
      if (this.#text.length < from) return undefined
    }
  }

  /** Sends a command; `literals` are sent when the server requests them. */
  async say(command: string, ...literals: ReadonlyArray<string | Uint8Array>): Promise<Reply> {
    const tag = `t${this.#tags++}`
    this.write(`${tag} ${command}\r\n`)
    const remaining = [...literals]
    const untagged: Array<string> = []
    while (true) {
      const line = await this.line()
      if (line === undefined) return { tagged: "CLOSED", untagged }
      if (line.startsWith("+")) {
        const literal = remaining.shift()
        if (literal === undefined) throw new Error(`asked for more: ${command}`)
        this.write(literal)
        this.write("\r\n")
      } else if (line.startsWith(`${tag} `)) return { tagged: line.slice(tag.length + 1), untagged }
      else untagged.push(line)
    }
  }

  append(folder: string, message: string, flags = ""): Promise<Reply> {
    const bytes = Buffer.from(message.replace(/\r?\n/g, "\r\n"))
    return this.say(`APPEND ${folder} ${flags === "" ? "" : `(${flags}) `}{${bytes.length}}`, bytes)
  }

  /** Returns the socket for use by another client. */
  release(): Socket {
    this.#socket.removeAllListeners("data")
    return this.#socket
  }

  /** Decompresses all further input (RFC 4978). */
  inflate(): void {
    const inflated = createInflateRaw()
    this.#socket.removeAllListeners("data")
    inflated.on("data", (chunk: Buffer) => {
      this.#text += chunk.toString("latin1")
      this.#waiting?.()
    })
    this.#socket.on("data", (chunk: Buffer) => void inflated.write(chunk))
  }

  close(): void {
    this.#socket.destroy()
  }
}
