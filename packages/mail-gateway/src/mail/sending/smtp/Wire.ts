/**
 * A connection to a mail server that sends commands and receives replies, each with a timeout. A server that neither
 * replies nor closes is disconnected. After any failure the connection is unusable.
 */
import { connect as connectPlain, type Socket } from "node:net"
import { connect as connectTls, type ConnectionOptions, TLSSocket } from "node:tls"
import { Effect, Schema } from "effect"
import { NotSmtp, type Reply, reader } from "./Reply.ts"

/** The connection has ended; `message` says how. */
export class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String }) {}

export interface Address {
  /** An IP address, or the host name that the operator configured. */
  readonly host: string
  readonly port: number
}

const describe = (error: Error): string => {
  const code = "code" in error ? String(error.code) : ""
  const known: Readonly<Record<string, string>> = {
    ECONNREFUSED: "The server refuses connections",
    ECONNRESET: "The server closed the connection",
    EPIPE: "The server closed the connection",
    EHOSTUNREACH: "The server cannot be reached",
    ENETUNREACH: "The server cannot be reached",
    ETIMEDOUT: "The connection timed out",
    ENOTFOUND: "The server's name does not resolve",
  }
  return known[code] ?? (error.message || code || "The connection broke")
}

const timedOut = (millis: number) => new Broken({ message: `The server did not respond for ${millis / 1_000} s` })

export class Wire {
  #socket: Socket
  #reader = reader()
  readonly #replies: Array<Reply> = []
  #waiting: ((effect: Effect.Effect<Reply, Broken>) => void) | undefined
  #broken: Broken | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#listen(socket)
  }

  /** Connects, with implicit TLS if `tls` is given. */
  static readonly open = (address: Address, millis: number, tls?: ConnectionOptions): Effect.Effect<Wire, Broken> =>
    Effect.callback((resume) => {
      const socket =
        tls === undefined
          ? connectPlain({ ...address, noDelay: true })
          : connectTls({ ...tls, ...address, timeout: millis })
      const fail = (error: Broken) => {
        clearTimeout(late)
        socket.destroy()
        resume(Effect.fail(error))
      }
      const late = setTimeout(() => fail(timedOut(millis)), millis)
      const failed = (error: Error) => fail(new Broken({ message: describe(error) }))
      socket.once("error", failed)
      socket.once(tls === undefined ? "connect" : "secureConnect", () => {
        clearTimeout(late)
        socket.off("error", failed)
        socket.setTimeout(0)
        resume(Effect.succeed(new Wire(socket)))
      })
      return Effect.sync(() => {
        clearTimeout(late)
        socket.on("error", () => {}).destroy()
      })
    })

  get isOpen(): boolean {
    return this.#broken === undefined
  }

  get isSecure(): boolean {
    return this.#socket instanceof TLSSocket
  }

  /** The TLS socket, if TLS is active. */
  get tls(): TLSSocket | undefined {
    return this.#socket instanceof TLSSocket ? this.#socket : undefined
  }

  /** Whether the connection is open without unread or partial replies. */
  get isQuiet(): boolean {
    return this.isOpen && this.#replies.length === 0 && !this.#reader.isIncomplete()
  }

  /** Lets the process exit while the connection is idle. */
  rest(): void {
    this.#socket.unref()
  }
  wake(): void {
    this.#socket.ref()
  }

  close(message = "The connection was closed"): void {
    this.#break(new Broken({ message }))
  }

  /** Sends a final command and closes. */
  end(text: string): void {
    if (!this.isOpen) return
    this.#broken = new Broken({ message: "The connection was closed" })
    const socket = this.#socket
    socket.on("error", () => {}).end(text, "latin1")
    setTimeout(() => socket.destroy(), 1_000).unref()
  }

  /** Returns an unsolicited reply, if any. */
  unsolicited(): Reply | undefined {
    return this.#replies.shift()
  }

  readonly reply = (millis: number): Effect.Effect<Reply, Broken> =>
    Effect.callback((resume) => {
      const ready = this.#replies.shift()
      if (ready !== undefined) return resume(Effect.succeed(ready))
      if (this.#broken !== undefined) return resume(Effect.fail(this.#broken))
      const late = setTimeout(() => this.#break(timedOut(millis)), millis)
      this.#waiting = (effect) => {
        clearTimeout(late)
        this.#waiting = undefined
        resume(effect)
      }
      return Effect.sync(() => {
        clearTimeout(late)
        this.#waiting = undefined
        this.close()
      })
    })

  send(text: string): void {
    if (this.isOpen) this.#socket.write(text, "latin1")
  }

  /** Writes a block, and completes when the socket accepts more. */
  readonly write = (bytes: Uint8Array, millis: number): Effect.Effect<void, Broken> =>
    Effect.callback((resume) => {
      if (this.#broken !== undefined) return resume(Effect.fail(this.#broken))
      if (this.#socket.write(bytes)) return resume(Effect.void)
      const socket = this.#socket
      const late = setTimeout(() => {
        end()
        const error = new Broken({ message: `The server accepted no data for ${millis / 1_000} s` })
        this.#break(error)
        resume(Effect.fail(error))
      }, millis)
      const drained = () => {
        end()
        resume(Effect.void)
      }
      const closed = () => {
        end()
        resume(Effect.fail(this.#broken ?? new Broken({ message: "The connection broke" })))
      }
      const end = () => {
        clearTimeout(late)
        socket.off("drain", drained).off("close", closed)
      }
      socket.once("drain", drained).once("close", closed)
      return Effect.sync(() => {
        end()
        this.close()
      })
    })

  /** Starts TLS after STARTTLS was accepted. */
  readonly secure = (options: ConnectionOptions, millis: number): Effect.Effect<void, Broken> =>
    Effect.callback((resume) => {
      // Replies received in clear text must not be mistaken for replies under TLS.
      if (!this.isQuiet) this.close("The server sent data before TLS")
      if (this.#broken !== undefined) return resume(Effect.fail(this.#broken))
      const plain = this.#socket
      plain.removeAllListeners("data").removeAllListeners("close").removeAllListeners("error").removeAllListeners("end")
      const socket = connectTls({ ...options, socket: plain })
      this.#socket = socket
      const fail = (error: Broken) => {
        clearTimeout(late)
        this.#break(error)
        resume(Effect.fail(error))
      }
      const late = setTimeout(() => fail(timedOut(millis)), millis)
      plain.on("error", () => {})
      const failed = (error: Error) => fail(new Broken({ message: `TLS failed: ${describe(error)}` }))
      const closed = () => fail(new Broken({ message: "TLS failed: the server closed the connection" }))
      socket.once("error", failed).once("close", closed)
      socket.once("secureConnect", () => {
        clearTimeout(late)
        socket.off("error", failed).off("close", closed)
        this.#listen(socket)
        resume(Effect.void)
      })
      return Effect.sync(() => {
        clearTimeout(late)
        this.close()
      })
    })

  #listen(socket: Socket): void {
    this.#reader = reader()
    socket.on("data", (chunk: Buffer) => {
      try {
        // Queues all replies first, so that whoever is resumed also sees the following ones.
        this.#replies.push(...this.#reader.push(chunk))
        if (this.#waiting !== undefined) {
          const reply = this.#replies.shift()
          if (reply !== undefined) this.#waiting(Effect.succeed(reply))
        }
        // Disconnects a server that sends replies without end.
        if (this.#replies.length > 1_000) this.close("The server sent too many replies")
      } catch (error) {
        if (!(error instanceof NotSmtp)) throw error
        this.close(`The server does not speak SMTP: ${error.message}`)
      }
    })
    socket.on("error", (error) => this.#break(new Broken({ message: describe(error) })))
    socket.on("end", () => this.#break(new Broken({ message: "The server closed the connection" })))
    socket.on("close", () => this.#break(new Broken({ message: "The server closed the connection" })))
  }

  #break(error: Broken): void {
    if (this.#broken !== undefined) return
    this.#broken = error
    this.#socket.on("error", () => {}).destroy()
    this.#waiting?.(Effect.fail(error))
  }
}
