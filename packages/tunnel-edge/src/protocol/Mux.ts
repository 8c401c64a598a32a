/**
 * Many streams over one carrier, without I/O: bytes come in by {@link Mux.receive}, frames ({@link FrameWriter}) go out
 * through the {@link Carrier}, those of one turn of the event loop at once. Each {@link MuxStream} has a window of its
 * own, so that a reader which stalls holds back only its stream; where the carrier is what holds them back, they take
 * turns. No Effect in here: this runs per chunk.
 */
import { FrameReader, FrameWriter, ProtocolError } from "./Frames.ts"
import { firstIgnorable, frame, limits, type ResetCode, reset } from "./Manifest.ts"
import { type Carrying, MuxStream } from "./MuxStream.ts"
import { outsideOf, passed } from "./YoungGenerationGc.ts"

export { ProtocolError } from "./Frames.ts"
export type { MuxStream } from "./MuxStream.ts"

/** Where frames go. */
export interface Carrier {
  /** Takes the chunks; false: no more until {@link Mux.drained} is called. */
  readonly write: (chunks: ReadonlyArray<Buffer>) => boolean
}

export interface MuxEvents {
  /** The peer opened a stream. */
  readonly open: (stream: MuxStream, kind: number, flags: number, meta: Buffer) => void
  /** HELLO, GOAWAY or STATUS. */
  readonly control: (type: number, payload: Buffer) => void
}

/** Milliseconds; a busy peer takes that long to turn its event loop, however near it is. */
const shortestRoundTrip = 1

export class Mux implements Carrying {
  readonly streams = new Map<number, MuxStream>()
  /** Frames came in since the keeper looked last. */
  heard = true
  queued = 0
  /** Milliseconds to the peer and back, the shortest seen. */
  roundTrip = 1_000
  private readonly carrier: Carrier
  private readonly events: MuxEvents
  private nextId: number
  private readonly peerIsOdd: boolean
  private lastPeerId = 0
  private ended = false

  private scheduled = false
  blocked = false
  /** Since when, in milliseconds of the process's clock. */
  blockedSince = 0
  private readonly waiting = new Set<MuxStream>()
  /** Pongs come in the order of the pings: who waits for each of those that are in flight, if anybody does. */
  private readonly pings: Array<(() => void) | undefined> = []

  private readonly writer = new FrameWriter()
  private readonly reader = new FrameReader({
    data: (id, piece) => this.data(id, piece),
    control: (type, id, payload) => this.control(type, id, payload),
  })

  /** The side that faces the public opens streams of odd ids. */
  constructor(carrier: Carrier, opensOdd: boolean, events: MuxEvents) {
    this.carrier = carrier
    this.events = events
    this.nextId = opensOdd ? 1 : 2
    this.peerIsOdd = !opensOdd
  }

  /** Opens a stream, or undefined when the link carries as many as it may. */
  open(kind: number, flags: number, meta: Buffer): MuxStream | undefined {
    if (this.ended || this.streams.size >= limits.streams || this.nextId > 0x7fff_fffd) return undefined
    const stream = new MuxStream(this, this.nextId)
    this.nextId += 2
    this.streams.set(stream.id, stream)
    this.send(frame.open, stream.id, Buffer.concat([Buffer.from([kind, flags]), meta]))
    return stream
  }

  send(type: number, streamId: number, payload: Buffer): void {
    if (this.ended) return
    this.writer.add(type, streamId, payload)
    if (!this.scheduled) {
      this.scheduled = true
      setImmediate(this.flush)
    }
  }

  /**
   * Asks for a sign of life, and how long it takes. `answered` runs when the peer has taken all that was sent before, or when
   * the link is gone.
   */
  ping(answered?: () => void): void {
    if (this.ended) return answered?.()
    this.pings.push(answered)
    const payload = Buffer.allocUnsafe(8)
    payload.writeDoubleBE(performance.now())
    this.send(frame.ping, 0, payload)
  }

  /** The carrier takes more again. */
  drained(): void {
    this.blocked = false
    const turn = [...this.waiting]
    this.waiting.clear()
    for (const stream of turn) stream.pump()
  }

  /** The link is gone: every stream ends as reset. */
  close(code: ResetCode = reset.link_lost): void {
    if (this.ended) return
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
    // Nothing holds the carrier back, only the turn: it comes round in the next one.
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

  /** Takes bytes as they arrive, in pieces of any size. Throws {@link ProtocolError}. */
  receive(chunk: Buffer): void {
    this.heard = true
    passed(outsideOf(chunk))
    this.reader.feed(chunk)
  }

  private data(id: number, piece: Buffer): void {
    const stream = this.streams.get(id)
    if (stream === undefined) {
      // Of a stream that was just reset some is still under way; of one that never was, nothing can be.
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
