/**
 * Encodes and decodes frames, without I/O. The writer collects the frames of one turn in a slab; payloads up to 2 KB
 * are copied and larger ones are passed by reference. The reader accepts chunks of any size and passes DATA on as it
 * arrives.
 */
import { frame, headerBytes, limits } from "./Manifest.ts"
import { passed } from "./YoungGenerationGc.ts"

/** The peer violated the protocol. The link must be closed. */
export class ProtocolError extends Error {}

const copiedUpTo = 2048
const slabBytes = 64 * 1024
const empty = Buffer.alloc(0)

export class FrameWriter {
  private slab = Buffer.allocUnsafeSlow(slabBytes)
  private used = 0
  private from = 0
  private chunks: Array<Buffer> = []

  add(type: number, streamId: number, payload: Buffer): void {
    const length = payload.length
    const copied = length <= copiedUpTo
    const room = headerBytes + (copied ? length : 0)
    if (this.used + room > slabBytes) {
      this.cut()
      this.slab = Buffer.allocUnsafeSlow(slabBytes)
      this.used = this.from = 0
    }
    const at = this.used
    this.used += room
    const slab = this.slab
    slab[at] = type
    slab[at + 1] = length >>> 16
    slab[at + 2] = length >>> 8
    slab[at + 3] = length
    slab.writeUInt32BE(streamId, at + 4)
    if (copied) payload.copy(slab, at + headerBytes)
    else {
      this.cut()
      this.chunks.push(payload)
      passed(length)
    }
  }

  /** Returns all frames added since the last call, in order. */
  take(): ReadonlyArray<Buffer> {
    this.cut()
    const chunks = this.chunks
    if (chunks.length > 0) this.chunks = []
    return chunks
  }

  private cut(): void {
    if (this.used === this.from) return
    this.chunks.push(this.slab.subarray(this.from, this.used))
    this.from = this.used
  }
}

/** Receives decoded frames. */
interface FrameEvents {
  /** Receives a part of a DATA frame. */
  readonly data: (streamId: number, piece: Buffer) => void
  /** Receives any other frame completely. */
  readonly control: (type: number, streamId: number, payload: Buffer) => void
}

export class FrameReader {
  private readonly events: FrameEvents
  private readonly head = Buffer.alloc(headerBytes)
  private headFilled = 0
  private need = 0
  private type = 0
  private streamId = 0
  private parts: Array<Buffer> = []
  private stopped = false

  constructor(events: FrameEvents) {
    this.events = events
  }

  /** Stops reading; the rest of the current chunk is dropped. */
  stop(): void {
    this.stopped = true
  }

  /** Decodes a chunk. Throws {@link ProtocolError}. */
  feed(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && !this.stopped) {
      if (this.need > 0) {
        const taken = Math.min(this.need, chunk.length - at)
        const piece = chunk.subarray(at, at + taken)
        at += taken
        this.need -= taken
        if (this.type === frame.data) this.events.data(this.streamId, piece)
        else {
          this.parts.push(piece)
          if (this.need === 0) {
            const payload = this.parts.length === 1 ? this.parts[0]! : Buffer.concat(this.parts)
            this.parts = []
            this.events.control(this.type, this.streamId, payload)
          }
        }
        continue
      }
      const missing = headerBytes - this.headFilled
      const taken = Math.min(missing, chunk.length - at)
      chunk.copy(this.head, this.headFilled, at, at + taken)
      this.headFilled += taken
      at += taken
      if (this.headFilled < headerBytes) return
      this.headFilled = 0
      this.begin()
    }
  }

  private begin(): void {
    const head = this.head
    const length = head.readUIntBE(1, 3)
    this.type = head[0]!
    this.streamId = head.readUInt32BE(4)
    if (this.streamId > 0x7fff_ffff) throw new ProtocolError("a stream id with its high bit set")
    if (length > (this.type === frame.data ? limits.dataBytes : limits.controlBytes)) {
      throw new ProtocolError(`a frame of type ${this.type} with ${length} bytes`)
    }
    if (length > 0) this.need = length
    else if (this.type !== frame.data) this.events.control(this.type, this.streamId, empty)
  }
}
