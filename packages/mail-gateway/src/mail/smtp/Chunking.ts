/**
 * The library's connection, which also takes a message in chunks (`BDAT`, RFC 3030) and hands it to `onData` like one that
 * came by DATA: the same limits while it comes in, the same reply when it is stored or refused. What it adds is told by the
 * fields here; the library knows a transaction in chunks as one that has not come to its DATA.
 *
 * | comes                                    | is answered                                                       |
 * |------------------------------------------|-------------------------------------------------------------------|
 * | a chunk                                  | 250, kept in memory; nothing is promised yet                      |
 * | the last chunk                           | as DATA is                                                        |
 * | one by which the message is too large    | 552, and the transaction is over                                  |
 * | one without recipients, or after its end | 503, when its bytes have been passed over                         |
 * | DATA, MAIL or RCPT between chunks        | 503                                                               |
 * | RSET, HELO, EHLO between chunks          | 250, and what came is forgotten                                   |
 * | one whose size cannot be read            | 501, and the connection is closed: where commands go on is unknown |
 */
import { PassThrough } from "node:stream"
import type { SMTPServerDataStream } from "smtp-server"
import { SMTPConnection } from "smtp-server/lib/smtp-connection.js"
import type { SMTPStream } from "smtp-server/lib/smtp-stream.js"
import * as TurnBudget from "@svc/cluster/net/TurnBudget"
import * as ChunkStream from "./ChunkStream.ts"
import { Reply, replies } from "./Replies.ts"

/** Chunks above which they must have so many bytes on average: each costs a reply. */
const flood = { fromChunks: 1_000, bytesPerChunk: 512 }

/** A message of which chunks have come. */
interface Message {
  readonly stream: SMTPServerDataStream
  bytes: number
  chunks: number
  /** Goes on with the client's commands; there is one once all of the message is in. */
  next?: () => void
}

type Handler = SMTPConnection["handler_DATA"]

export class ChunkingConnection extends SMTPConnection {
  #message: Message | undefined

  // As the library's, but for its class.
  override _createParser(): SMTPStream {
    const parser = new ChunkStream.ChunkStream({ maxCommandLength: this._server.options.maxCommandLength })
    // The library yields after 100 pipelined commands of one connection; a hundred connections add up.
    parser.oncommand = (command, callback) =>
      this._onCommand(command, () => {
        if (TurnBudget.isSpent()) setImmediate(() => callback?.())
        else callback?.()
      })
    parser.on("error", (error) => this.send(421, `Error: ${error.message}`))
    return parser
  }

  override send(code: number, data?: string | Array<string> | null, context?: string | false): void {
    // The one reply of several lines is that to EHLO.
    super.send(code, Array.isArray(data) && code === 250 ? [...data, "CHUNKING"] : data, context)
  }

  override _resetSession(): void {
    this.#forget()
    super._resetSession()
  }

  override _onClose(): void {
    this.#forget()
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
    if (!(parser instanceof ChunkStream.ChunkStream)) return callback()
    const chunk = ChunkStream.read(command.toString("latin1"))
    if (chunk === undefined) return this.#leave(501, "5.5.4 Expected BDAT size [LAST]", callback)
    const { size, isLast } = chunk
    const message = this.session.envelope.rcptTo.length === 0 ? undefined : (this.#message ??= this.#begin())
    // Nobody is read out who says beforehand that it is too much by far.
    if ((message?.bytes ?? 0) + size > 2 * Number(this._server.options.size)) {
      return this.#leave(replies.tooLarge.responseCode, replies.tooLarge.message, callback)
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

  /** All bytes of a chunk are in. */
  #received(message: Message, size: number, isLast: boolean, next: () => void): void {
    message.chunks++
    if (message.chunks > flood.fromChunks && message.bytes < message.chunks * flood.bytesPerChunk) {
      this.#leave(554, "5.6.0 The chunks are too small", next)
    } else if (isLast || this._isOversized(message.bytes)) {
      message.next = next
      // What the library knows a message by that is being decided on: until then the client may wait.
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

  #leave(code: number, text: string, callback: () => void): void {
    this.send(code, text)
    this.close()
    callback()
  }

  /** Nothing of it was stored, and nothing will be. */
  #forget(): void {
    const message = this.#message
    // One that is all there is decided on by whoever has it, with or without the client.
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
  const goOn = () => {
    stream.off("drain", goOn).off("close", goOn)
    next()
  }
  stream.on("drain", goOn).on("close", goOn)
}
