/**
 * The library's command parser, extended to pass on a given number of raw bytes (RFC 3030 section 2). Because bytes are
 * counted, no content is ever parsed as a command and no command as content.
 */
import { SMTPStream } from "smtp-server/lib/smtp-stream.js"

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
