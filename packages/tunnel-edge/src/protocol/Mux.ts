/**
 * Multiplexes streams over one carrier, without I/O. Bytes arrive through {@link Mux.receive}; the frames of one turn
 * ({@link FrameWriter}) leave through the {@link Carrier} together. Each {@link MuxStream} has its own window, so that
 * a stalled reader blocks only its stream. If the carrier is the bottleneck, streams take turns. Does not use Effect,
 * because it runs per chunk.
 */
import { FrameReader, FrameWriter, ProtocolError } from "./Frames.ts"
import { firstIgnorable, frame, limits, type ResetCode, reset } from "./Manifest.ts"
import { type Carrying, MuxStream } from "./MuxStream.ts"
import { outsideOf, passed } from "./YoungGenerationGc.ts"

export { ProtocolError } from "./Frames.ts"
export type { MuxStream } from "./MuxStream.ts"

/** Writes frames to the link. */
interface Carrier {
  /** Writes the chunks. Returns false if no more may be written until {@link Mux.drained} is called. */
  readonly write: (chunks: ReadonlyArray<Buffer>) => boolean
}

interface MuxEvents {
  /** The peer has opened a stream. */
  readonly open: (stream: MuxStream, kind: number, flags: number, meta: Buffer) => void
  /** The peer has sent HELLO, GOAWAY or STATUS. */
  readonly control: (type: number, payload: Buffer) => void
}

/**
 * Lower bound of the round-trip time in milliseconds, since a busy peer takes this long for a turn of its event loop.
 */
const shortestRoundTrip = 1

export class Mux implements Carrying {
  readonly streams = new Map<number, MuxStream>()
  /** Whether frames arrived since the keep-alive last checked. */
  heard = true
  queued = 0
  /** Shortest observed round-trip time in milliseconds. */
  roundTrip = 1_000
  private readonly carrier: Carrier
  private readonly events: MuxEvents
  private nextId: number
  private readonly peerIsOdd: boolean
  private lastPeerId = 0
  private ended = false

  private scheduled = false
  blocked = false
  /** When the carrier became blocked, by `performance.now()`. */
  blockedSince = 0
  private readonly waiting = new Set<MuxStream>()
  /** Callbacks of the pings in flight, in order. Pongs arrive in the same order. */
  private readonly pings: Array<(() => void) | undefined> = []

  private readonly writer = new FrameWriter()
  private readonly reader = new FrameReader({
    data: (id, piece) => this.data(id, piece),
    control: (type, id, payload) => this.control(type, id, payload),
  })

  /** `opensOdd` is true for the side that faces the public. */
  constructor(carrier: Carrier, opensOdd: boolean, events: MuxEvents) {
    this.carrier = carrier
    this.events = events
    this.nextId = opensOdd ? 1 : 2
    this.peerIsOdd = !opensOdd
  }

  /** Opens a stream, or returns undefined if the link has reached its limit. */
  open(kind: number, flags: number, meta: Buffer): MuxStream | undefined {
    if (this.ended || this.streams.size >= limits.streams || this.nextId > 0x7fff_fffd) return undefined
    const stream = new MuxStream(this, this.nextId)
    this.nextId += 2
    this.streams.set(stream.id, stream)
    this.send(frame.open, stream.id, Buffer.concat([Buffer.from([kind, flags]), meta]))
    return stream
  }

  send(type: number, streamId: number, payload: Buffer): void {
    this.writer.add(type, streamId, payload)
    if (!this.scheduled) {
      this.scheduled = true
      setImmediate(this.flush)
    }
  }

  /**
   * Sends a ping, which also measures the round-trip time. `answered` is called when the peer has processed everything
   * sent before, or when the link is closed.
   */
  ping(answered?: () => void): void {
    if (this.ended) return answered?.()
    this.pings.push(answered)
    const payload = Buffer.allocUnsafe(8)
    payload.writeDoubleBE(performance.now())
    this.send(frame.ping, 0, payload)
  }

  /** The carrier accepts writes again. */
  drained(): void {
    this.blocked = false
    const turn = [...this.waiting]
    this.waiting.clear()
    for (const stream of turn) stream.pump()
  }

  /** Closes the link and resets every stream. */
  close(code: ResetCode = reset.link_lost): void {
    this.flush()
    this.ended = true
    this.reader.stop()
    for (const stream of this.streams.values()) stream.ended(code)
    this.streams.clear()
    this.waiting.clear()
    for (const answered of this.pings.splice(0)) answered?.()
  }

  forget(id: number): void {
    this.streams.delete(id)
  }

  wait(stream: MuxStream): void {
    this.waiting.add(stream)
    // The carrier is not blocked; the stream has only used up its share of this turn.
    if (!this.blocked) setImmediate(() => void (this.waiting.delete(stream) && stream.pump()))
  }

  private readonly flush = (): void => {
    this.scheduled = false
    const chunks = this.writer.take()
    if (chunks.length === 0 || this.ended) return
    if (this.carrier.write(chunks) || this.blocked) return
    this.blocked = true
    this.blockedSince = performance.now()
  }

  /** Decodes a chunk of any size. Throws {@link ProtocolError}. */
  receive(chunk: Buffer): void {
    this.heard = true
    passed(outsideOf(chunk))
    this.reader.feed(chunk)
  }

  private data(id: number, piece: Buffer): void {
    const stream = this.streams.get(id)
    if (stream === undefined) {
      // A stream that was just reset may still have data in flight; a stream that was never opened cannot.
      if (!this.wasOpened(id)) throw new ProtocolError("data of a stream that was never opened")
      return
    }
    stream.received(piece)
  }

  private wasOpened(id: number): boolean {
    return (id % 2 === 1) === this.peerIsOdd ? id <= this.lastPeerId : id < this.nextId
  }

  private control(type: number, id: number, payload: Buffer): void {
    switch (type) {
      case frame.hello:
      case frame.goaway:
      case frame.status:
        return this.events.control(type, payload)
      case frame.ping:
        if (payload.length !== 8) throw new ProtocolError("a ping that is not 8 bytes")
        return this.send(frame.pong, 0, payload)
      case frame.pong:
        if (payload.length !== 8) throw new ProtocolError("a pong that is not 8 bytes")
        this.ponged(performance.now() - payload.readDoubleBE(0))
        return this.pings.shift()?.()
      case frame.open:
        return this.opened(id, payload)
      case frame.fin:
        return this.streams.get(id)?.finished()
      case frame.reset: {
        const stream = this.streams.get(id)
        if (stream === undefined) return
        this.streams.delete(id)
        return stream.ended(payload.length >= 2 ? (payload.readUInt16BE(0) as ResetCode) : reset.internal)
      }
      case frame.window: {
        if (payload.length !== 4) throw new ProtocolError("a window that is not 4 bytes")
        return this.streams.get(id)?.credited(payload.readUInt32BE(0))
      }
      default:
        if (type < firstIgnorable) throw new ProtocolError(`a frame of unknown type ${type}`)
    }
  }

  private ponged(millis: number): void {
    if (millis < this.roundTrip) this.roundTrip = Math.max(shortestRoundTrip, millis)
  }

  private opened(id: number, payload: Buffer): void {
    if ((id % 2 === 1) !== this.peerIsOdd || id <= this.lastPeerId)
      throw new ProtocolError(`stream ${id} cannot be opened`)
    if (payload.length < 2) throw new ProtocolError("an open without its kind")
    this.lastPeerId = id
    const stream = new MuxStream(this, id)
    if (this.streams.size >= limits.streams) return stream.reset(reset.overloaded)
    this.streams.set(id, stream)
    this.events.open(stream, payload[0]!, payload[1]!, payload.subarray(2))
  }
}
