/**
 * The connection of a client: bytes are read on demand, and written no faster than the client reads. It can be upgraded
 * to TLS (STARTTLS) and to compression (RFC 4978).
 */
import type { Socket } from "node:net"
import type { Duplex, Readable, Writable } from "node:stream"
import { type SecureContext, TLSSocket } from "node:tls"
import * as zlib from "node:zlib"
import { Effect, Schema } from "effect"
import { Timing } from "../../../Timing.ts"

/** The client disconnected or stopped reading. */
class WireClosed extends Schema.TaggedError<WireClosed>()("WireClosed", {}) {}

const ended = Effect.fail(new WireClosed())

export class Wire {
  #stream: Duplex
  #in: Readable
  #out: Writable
  #deflate: zlib.DeflateRaw | undefined
  isClosed = false

  constructor(socket: Socket | TLSSocket) {
    this.#stream = socket
    this.#in = socket
    this.#out = socket
    this.#follow(socket)
  }

  /** Ignores connection errors; an unhandled error event would end the process. */
  #follow(stream: Duplex) {
    stream.on("error", () => stream.destroy())
    stream.once("close", () => {
      this.isClosed = true
    })
  }

  /** Reads the next bytes; undefined at the end. */
  readonly read: Effect.Effect<Buffer | undefined> = Effect.callback((resume) => {
    const source = this.#in
    const done = (chunk: Buffer | undefined) => {
      source.off("readable", look).off("end", end).off("close", end).off("error", end)
      resume(Effect.succeed(chunk))
    }
    const end = () => done(undefined)
    const look = () => {
      const chunk: Buffer | null = source.read()
      if (chunk !== null) done(chunk)
      else if (source.readableEnded || source.destroyed) end()
    }
    source.on("readable", look).once("end", end).once("close", end).once("error", end)
    look()
    return Effect.sync(() => source.off("readable", look).off("end", end).off("close", end).off("error", end))
  })

  /** Writes bytes and waits for a slow client; a client that does not read for too long is disconnected. */
  write(bytes: string | Uint8Array): Effect.Effect<void, WireClosed> {
    return Effect.suspend(() => {
      if (this.isClosed || this.#out.destroyed || this.#stream.destroyed) return ended
      const flows = this.#out.write(bytes)
      if (this.#deflate !== undefined) this.#deflate.flush(zlib.constants.Z_SYNC_FLUSH)
      return flows && this.#stream.writableLength < 256 * 1024 ? Effect.void : this.#drained
    })
  }

  readonly #drained: Effect.Effect<void, WireClosed> = Effect.callback((resume) => {
    const out = this.#out
    const stream = this.#stream
    const end = (outcome: Effect.Effect<void, WireClosed>) => {
      clearTimeout(late)
      out.off("drain", drain)
      stream.off("drain", drain).off("close", close)
      resume(outcome)
    }
    const drain = () => {
      if (stream.writableNeedDrain || out.writableNeedDrain) return
      end(Effect.void)
    }
    const close = () => end(ended)
    const late = setTimeout(() => {
      stream.destroy()
      end(ended)
    }, Timing.imapUnreadMillis)
    out.on("drain", drain)
    stream.on("drain", drain).once("close", close)
    drain()
  })

  /** Upgrades the connection to TLS; a failed handshake closes it. */
  secure(context: SecureContext): Effect.Effect<void, WireClosed> {
    return Effect.callback<void, WireClosed>((resume) => {
      const plain = this.#stream as Socket
      plain.removeAllListeners("readable")
      const encrypted = new TLSSocket(plain, { isServer: true, secureContext: context })
      this.#stream = encrypted
      this.#in = encrypted
      this.#out = encrypted
      this.#follow(encrypted)
      const late = setTimeout(() => encrypted.destroy(), Timing.imapHandshakeMillis)
      encrypted.once("secure", () => {
        clearTimeout(late)
        encrypted.off("close", close)
        resume(Effect.void)
      })
      const close = () => {
        clearTimeout(late)
        resume(ended)
      }
      encrypted.once("close", close)
    })
  }

  /** Upgrades the connection to compression; `rest` was received after the command. */
  compress(rest: Buffer): void {
    const stream = this.#stream
    const inflate = zlib.createInflateRaw()
    const deflate = zlib.createDeflateRaw({ memLevel: 6, windowBits: 13 })
    inflate.on("error", () => stream.destroy())
    deflate.on("error", () => stream.destroy())
    stream.once("close", () => {
      inflate.destroy()
      deflate.destroy()
    })
    stream.removeAllListeners("readable")
    if (rest.length > 0) inflate.write(rest)
    stream.pipe(inflate)
    deflate.pipe(stream)
    this.#in = inflate
    this.#out = deflate
    this.#deflate = deflate
  }

  /** Closes the connection after all output was sent. */
  readonly end: Effect.Effect<void> = Effect.sync(() => {
    const stream = this.#stream
    if (this.#out !== stream) this.#out.end()
    else stream.end()
    setTimeout(() => stream.destroy(), 2_000).unref()
  })
}
