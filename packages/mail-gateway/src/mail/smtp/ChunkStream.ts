/**
 * The library's parser of what a client says, which can also be told to take so many bytes as they are (RFC 3030 section 2):
 * where they end is counted, so nothing in them is ever read as a command, and no command as part of them.
 */
import { SMTPStream } from "smtp-server/lib/smtp-stream.js"

type Done = Parameters<SMTPStream["_write"]>[2]

interface Chunk {
  /** Bytes that are still to come. */
  left: number
  /** Takes the next of them; `next` when it wants more. */
  readonly take: (bytes: Buffer, next: () => void) => void
  /** They are in; `next` goes on with the commands behind them. */
  readonly end: (next: () => void) => void
}

/** `BDAT size [LAST]`; undefined for what is none, so that nobody knows where its bytes end. */
export const read = (command: string): { readonly size: number; readonly isLast: boolean } | undefined => {
  const [, size, last] = /^BDAT +(\d{1,15})( +LAST)? *$/i.exec(command) ?? []
  return size === undefined ? undefined : { size: Number(size), isLast: last !== undefined }
}

export class ChunkStream extends SMTPStream {
  #chunk: Chunk | undefined

  /** The next bytes are a chunk; commands are read again behind it. */
  chunk(chunk: Chunk): void {
    this.#chunk = chunk
    // What the library asks before it looks for a command in what came.
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
      // Not within this call, or chunks of a byte would pile up on the stack and keep others waiting.
      chunk.end(() => setImmediate(() => this._write(rest, "buffer", done)))
    })
  }
}
