/**
 * The library's connection extended by BDAT (RFC 3030). A message in chunks is passed to `onData` like one sent by
 * DATA, with the same limits and the same replies. The library does not know such transactions; the fields of this
 * class hold their state.
 *
 * | event                                       | response                                              |
 * |---------------------------------------------|-------------------------------------------------------|
 * | a chunk                                     | 250; held in memory, without any promise              |
 * | the last chunk                              | as after DATA                                         |
 * | a chunk that exceeds the size limit         | 552; the transaction is over                          |
 * | a chunk without recipients or after the end | 503, after its bytes were skipped                     |
 * | DATA, MAIL or RCPT between chunks           | 503                                                   |
 * | RSET, HELO, EHLO between chunks             | 250; the chunks are discarded                         |
 * | a chunk of unreadable size                  | 501, and the connection is closed: the next command cannot be found |
 */
import { PassThrough } from "node:stream"
import type { SMTPServerDataStream } from "smtp-server"
import { SMTPConnection } from "smtp-server/lib/smtp-connection.js"
import { SMTPStream } from "smtp-server/lib/smtp-stream.js"
import * as TurnBudget from "@svc/cluster/net/TurnBudget"
import { Reply, replies } from "./Replies.ts"

/** Beyond this number chunks must have this average size, since each costs a reply. */
const flood = { fromChunks: 1_000, bytesPerChunk: 512 }

/** A message whose chunks are arriving. */
interface Message {
  readonly stream: SMTPServerDataStream
  bytes: number
  chunks: number
  /** Continues with the client's commands. Set when the message is complete. */
  next?: () => void
}

type Handler = SMTPConnection["handler_DATA"]

/**
 * The library's command parser, extended to pass on a given number of raw bytes (RFC 3030 section 2). Because bytes are
 * counted, no content is ever parsed as a command and no command as content.
 */
type Done = Parameters<SMTPStream["_write"]>[2]

interface Chunk {
  /** The bytes still to come. */
  left: number
  /** Receives the next bytes and calls `next` for more. */
  readonly take: (bytes: Buffer, next: () => void) => void
  /** Called after the last byte; `next` continues with the commands. */
  readonly end: (next: () => void) => void
}

/** Parses `BDAT size [LAST]`. Returns undefined if invalid, in which case the end of the chunk is unknown. */
export const read = (command: string): { readonly size: number; readonly isLast: boolean } | undefined => {
  const [, size, last] = /^BDAT +(\d{1,15})( +LAST)? *$/i.exec(command) ?? []
  return size === undefined ? undefined : { size: Number(size), isLast: last !== undefined }
}

export class ChunkStream extends SMTPStream {
  #chunk: Chunk | undefined

  /** Passes the next bytes to `chunk`, then parses commands again. */
  chunk(chunk: Chunk): void {
    this.#chunk = chunk
    // Stops the library from searching for commands.
    this._dataMode = true
  }

  override _feedDataStream(bytes: Buffer, done: Done): void {
    const chunk = this.#chunk
    if (chunk === undefined) return super._feedDataStream(bytes, done)
    const own = bytes.subarray(0, chunk.left)
    chunk.left -= own.length
    chunk.take(own, () => {
      if (chunk.left > 0) return done()
      this.#chunk = undefined
      this._dataMode = false
      const rest = bytes.subarray(own.length)
      // Deferred, so that a series of one-byte chunks neither grows the stack nor blocks other connections.
      chunk.end(() => setImmediate(() => this._write(rest, "buffer", done)))
    })
  }
}

export class ChunkingConnection extends SMTPConnection {
  #message: Message | undefined

  // Creates the parser like the library, but of a different class.
  override _createParser(): SMTPStream {
    const parser = new ChunkStream({ maxCommandLength: this._server.options.maxCommandLength })
    // The library yields after 100 pipelined commands of a connection, which adds up over a hundred connections.
    parser.oncommand = (command, callback) =>
      this._onCommand(command, () => {
        if (TurnBudget.isSpent()) setImmediate(() => callback?.())
        else callback?.()
      })
    parser.on("error", (error) => this.send(421, `Error: ${error.message}`))
    return parser
  }

  override send(code: number, data?: string | Array<string> | null, context?: string | false): void {
    // The only multi-line 250 is the reply to EHLO.
    super.send(code, Array.isArray(data) && code === 250 ? [...data, "CHUNKING"] : data, context)
  }

  override _resetSession(): void {
    this.#discard()
    super._resetSession()
  }

  override _onClose(): void {
    this.#discard()
    super._onClose()
  }

  override handler_DATA(...command: Parameters<Handler>): void {
    if (this.#message === undefined) super.handler_DATA(...command)
    else this.#outOfOrder(...command)
  }

  override handler_RCPT(...command: Parameters<Handler>): void {
    if (this.#message === undefined) super.handler_RCPT(...command)
    else this.#outOfOrder(...command)
  }

  handler_BDAT(command: Buffer, callback: () => void): void {
    const parser = this._parser
    if (!(parser instanceof ChunkStream)) return callback()
    const chunk = read(command.toString("latin1"))
    if (chunk === undefined) return this.#disconnect(501, "5.5.4 Expected BDAT size [LAST]", callback)
    const { size, isLast } = chunk
    const message = this.session.envelope.rcptTo.length === 0 ? undefined : (this.#message ??= this.#begin())
    // Refuses a message that is announced as far too large, without reading it.
    if ((message?.bytes ?? 0) + size > 2 * Number(this._server.options.size)) {
      return this.#disconnect(replies.tooLarge.responseCode, replies.tooLarge.message, callback)
    }
    const end = (next: () => void) => {
      if (message !== undefined) return this.#received(message, size, isLast, next)
      this.send(503, "5.5.1 Expected MAIL and RCPT before BDAT")
      next()
    }
    if (size === 0) return end(callback)
    parser.chunk({
      left: size,
      take: (bytes, next) => (message === undefined ? next() : write(message, bytes, next)),
      end,
    })
    callback()
  }

  #begin(): Message {
    const stream: SMTPServerDataStream = Object.assign(new PassThrough(), { byteLength: 0, sizeExceeded: false })
    const message: Message = { stream, bytes: 0, chunks: 0 }
    this._server.onData(stream, this.session, (error, text) => {
      if (this.#message !== message) return
      this.#message = undefined
      this._dataStream = false
      if (this._isOversized(message.bytes)) this.send(replies.tooLarge.responseCode, replies.tooLarge.message)
      else if (error) this.send(error instanceof Reply ? error.responseCode : 450, error.message)
      else this.send(250, typeof text === "string" ? text : "OK: message queued", "DATA_OK")
      this._transactionCounter++
      this._unrecognizedCommands = 0
      this._resetSession()
      message.next?.()
    })
    return message
  }

  /** Handles the end of a chunk. */
  #received(message: Message, size: number, isLast: boolean, next: () => void): void {
    message.chunks++
    if (message.chunks > flood.fromChunks && message.bytes < message.chunks * flood.bytesPerChunk) {
      this.#disconnect(554, "5.6.0 The chunks are too small", next)
    } else if (isLast || this._isOversized(message.bytes)) {
      message.next = next
      // Tells the library that a message is being processed, so that the client does not time out.
      this._dataStream = message.stream
      message.stream.end()
    } else {
      this.send(250, `2.0.0 ${size} bytes received`)
      next()
    }
  }

  #outOfOrder(_command: Buffer, callback: () => void): void {
    this.send(503, "5.5.1 Expected BDAT")
    callback()
  }

  #disconnect(code: number, text: string, callback: () => void): void {
    this.send(code, text)
    this.close()
    callback()
  }

  /** Discards a message that was not completed. */
  #discard(): void {
    const message = this.#message
    // A complete message is processed even if the client disconnects.
    if (message === undefined || message.next !== undefined) return
    this.#message = undefined
    message.stream.destroy()
  }
}

const write = (message: Message, bytes: Buffer, next: () => void) => {
  const { stream } = message
  message.bytes += bytes.length
  stream.byteLength = message.bytes
  if (stream.destroyed || stream.write(bytes)) return next()
  const resume = () => {
    stream.off("drain", resume).off("close", resume)
    next()
  }
  stream.on("drain", resume).on("close", resume)
}
