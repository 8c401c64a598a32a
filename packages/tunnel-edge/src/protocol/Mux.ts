/**
 * Many streams over one carrier, without I/O: bytes come in by {@link Mux.receive}, frames go out through the
 * {@link Carrier}. Every stream has a window of credit that its reader renews when the next hop took the bytes, so that
 * a reader which stalls holds back only its own stream; a reader that the window slows down widens it. Frames of one turn of the event loop are collected in a slab
 * and written at once; payloads are copied up to 2 KB and passed by reference above. No Effect in here: this runs per
 * chunk.
 */
import { firstIgnorable, frame, headerBytes, limits, type ResetCode, reset } from "./Manifest.ts"
import { passed } from "./Scavenge.ts"

/** Where frames go. */
export interface Carrier {
  /** Takes the chunks; false: no more until {@link Mux.drained} is called. */
  readonly write: (chunks: ReadonlyArray<Buffer>) => boolean
}

/** The peer broke the protocol; the link cannot go on. */
export class ProtocolError extends Error {}

export interface MuxEvents {
  /** The peer opened a stream. */
  readonly open: (stream: MuxStream, kind: number, flags: number, meta: Buffer) => void
  /** HELLO, GOAWAY or STATUS. */
  readonly control: (type: number, payload: Buffer) => void
}

const copiedUpTo = 2048
const slabBytes = 64 * 1024
/** Milliseconds; a busy peer takes that long to turn its event loop, however near it is. */
const shortestRoundTrip = 1
/** What one stream may write before it is another one's turn. */
const quantum = limits.dataBytes
const empty = Buffer.alloc(0)

export class Mux {
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

  private slab = Buffer.allocUnsafeSlow(slabBytes)
  private slabUsed = 0
  private slabFrom = 0
  private chunks: Array<Buffer> = []
  private scheduled = false
  blocked = false
  /** Since when, in milliseconds of the process's clock. */
  blockedSince = 0
  private readonly waiting = new Set<MuxStream>()

  private readonly head = Buffer.alloc(headerBytes)
  private headFilled = 0
  private need = 0
  private type = 0
  private streamId = 0
  private parts: Array<Buffer> = []

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
    const length = payload.length
    const copied = length <= copiedUpTo
    const room = headerBytes + (copied ? length : 0)
    if (this.slabUsed + room > slabBytes) {
      this.cut()
      this.slab = Buffer.allocUnsafeSlow(slabBytes)
      this.slabUsed = this.slabFrom = 0
    }
    const at = this.slabUsed
    this.slabUsed += room
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
    if (!this.scheduled) {
      this.scheduled = true
      setImmediate(this.flush)
    }
  }

  /** Asks for a sign of life, and how long it takes. */
  ping(): void {
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
    for (const stream of this.streams.values()) stream.ended(code)
    this.streams.clear()
    this.waiting.clear()
  }

  /** @internal */
  wait(stream: MuxStream): void {
    this.waiting.add(stream)
    // Nothing holds the carrier back, only the turn: it comes round in the next one.
    if (!this.blocked) setImmediate(() => void (this.waiting.delete(stream) && stream.pump()))
  }

  private readonly flush = (): void => {
    this.scheduled = false
    this.cut()
    if (this.chunks.length === 0 || this.ended) return
    const chunks = this.chunks
    this.chunks = []
    if (this.carrier.write(chunks) || this.blocked) return
    this.blocked = true
    this.blockedSince = performance.now()
  }

  private cut(): void {
    if (this.slabUsed === this.slabFrom) return
    this.chunks.push(this.slab.subarray(this.slabFrom, this.slabUsed))
    this.slabFrom = this.slabUsed
  }

  /** Takes bytes as they arrive, in pieces of any size. Throws {@link ProtocolError}. */
  receive(chunk: Buffer): void {
    this.heard = true
    passed(chunk.length)
    let at = 0
    while (at < chunk.length && !this.ended) {
      if (this.need > 0) {
        const taken = Math.min(this.need, chunk.length - at)
        const piece = chunk.subarray(at, at + taken)
        at += taken
        this.need -= taken
        if (this.type === frame.data) this.data(piece)
        else {
          this.parts.push(piece)
          if (this.need === 0) {
            const payload = this.parts.length === 1 ? this.parts[0]! : Buffer.concat(this.parts)
            this.parts = []
            this.control(payload)
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
    else if (this.type !== frame.data) this.control(empty)
  }

  private data(piece: Buffer): void {
    const stream = this.streams.get(this.streamId)
    if (stream === undefined) {
      // Of a stream that was just reset some is still under way; of one that never was, nothing can be.
      if (!this.wasOpened(this.streamId)) throw new ProtocolError("data of a stream that was never opened")
      return
    }
    stream.received(piece)
  }

  private wasOpened(id: number): boolean {
    return (id % 2 === 1) === this.peerIsOdd ? id <= this.lastPeerId : id < this.nextId
  }

  private control(payload: Buffer): void {
    const id = this.streamId
    switch (this.type) {
      case frame.hello:
      case frame.goaway:
      case frame.status:
        return this.events.control(this.type, payload)
      case frame.ping:
        if (payload.length !== 8) throw new ProtocolError("a ping that is not 8 bytes")
        return this.send(frame.pong, 0, payload)
      case frame.pong:
        if (payload.length !== 8) throw new ProtocolError("a pong that is not 8 bytes")
        return this.ponged(performance.now() - payload.readDoubleBE(0))
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
        if (this.type < firstIgnorable) throw new ProtocolError(`a frame of unknown type ${this.type}`)
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

/** One stream. Its owner sets the handlers before anything can arrive, which is in a later turn. */
export class MuxStream {
  readonly id: number
  /** Bytes that arrived; each must be given back with {@link delivered}. */
  onData: (bytes: Buffer) => void = () => {}
  /** The peer has sent everything. */
  onEnd: () => void = () => {}
  /** The stream is gone, by the peer's reset or with its link. */
  onReset: (code: ResetCode) => void = () => {}
  /** What {@link write} refused to take at once is gone. */
  onDrain: () => void = () => {}
  private readonly mux: Mux
  private credit: number = limits.windowBytes
  private allowance: number = limits.windowBytes
  /** What the peer may have under way; grows while it is what holds the stream back. */
  private window: number = limits.windowBytes
  private unreported = 0
  private taken = 0
  private reportedAt = performance.now()
  private queue: Array<Buffer> = []
  private finishing = false
  private sentFin = false
  private gotFin = false
  private dead = false

  constructor(mux: Mux, id: number) {
    this.mux = mux
    this.id = id
  }

  get isOpen(): boolean {
    return !this.dead
  }

  /** False: pause until {@link onDrain}. The bytes are taken in any case. */
  write(bytes: Buffer): boolean {
    if (this.dead || bytes.length === 0) return true
    if (this.queue.length > 0 || this.mux.blocked || this.credit < bytes.length || bytes.length > limits.dataBytes) {
      this.queue.push(bytes)
      this.mux.queued += bytes.length
      if (this.mux.queued > limits.queuedBytes) {
        this.reset(reset.overloaded)
        this.onReset(reset.overloaded)
      } else if (this.queue.length === 1) this.pump()
      return this.queue.length === 0
    }
    this.credit -= bytes.length
    this.mux.send(frame.data, this.id, bytes)
    return true
  }

  /** Everything was written. */
  end(): void {
    if (this.dead || this.sentFin) return
    if (this.queue.length > 0) {
      this.finishing = true
      return
    }
    this.sentFin = true
    this.mux.send(frame.fin, this.id, empty)
    this.settle()
  }

  reset(code: ResetCode, text = ""): void {
    if (this.dead) return
    this.mux.streams.delete(this.id)
    const payload = Buffer.alloc(2 + Buffer.byteLength(text))
    payload.writeUInt16BE(code)
    payload.write(text, 2)
    this.mux.send(frame.reset, this.id, payload)
    this.die()
  }

  /** The next hop took this many of the bytes that arrived. */
  delivered(bytes: number): void {
    this.unreported += bytes
    if (this.unreported < this.window >> 2 || this.dead) return
    // A reader that takes a quarter of the window within two round trips is held back by the window itself. It has to
    // have taken several windows before, as one that stalls was quick as well until its socket was full.
    const now = performance.now()
    this.taken += this.unreported
    const held = now - this.reportedAt < 2 * this.mux.roundTrip && this.taken >= 8 * this.window
    const growth = held ? Math.min(this.window, limits.windowAtMost - this.window) : 0
    this.window += growth
    this.reportedAt = now
    const credit = this.unreported + growth
    const payload = Buffer.allocUnsafe(4)
    payload.writeUInt32BE(credit)
    this.allowance += credit
    this.unreported = 0
    this.mux.send(frame.window, this.id, payload)
  }

  /** @internal */
  pump(): void {
    let turn: number = quantum
    while (this.queue.length > 0) {
      if (this.dead || this.credit <= 0) return
      if (this.mux.blocked || turn <= 0) return this.mux.wait(this)
      const next = this.queue[0]!
      const size = Math.min(next.length, this.credit, limits.dataBytes)
      this.credit -= size
      turn -= size
      this.mux.queued -= size
      this.mux.send(frame.data, this.id, size === next.length ? next : next.subarray(0, size))
      if (size === next.length) this.queue.shift()
      else this.queue[0] = next.subarray(size)
    }
    if (this.finishing) {
      this.finishing = false
      this.end()
    }
    this.onDrain()
  }

  /** @internal */
  received(bytes: Buffer): void {
    if (this.gotFin) throw new ProtocolError("data after the end of its stream")
    this.allowance -= bytes.length
    if (this.allowance < 0) throw new ProtocolError("more data than the window allows")
    this.onData(bytes)
  }

  /** @internal */
  finished(): void {
    if (this.gotFin) throw new ProtocolError("a stream that ends twice")
    this.gotFin = true
    this.onEnd()
    this.settle()
  }

  /** @internal */
  credited(bytes: number): void {
    this.credit += bytes
    if (this.credit > limits.windowAtMost) throw new ProtocolError("more credit than was consumed")
    this.pump()
  }

  /** @internal */
  ended(code: ResetCode): void {
    if (this.dead) return
    this.die()
    this.onReset(code)
  }

  private settle(): void {
    if (!this.sentFin || !this.gotFin) return
    this.mux.streams.delete(this.id)
    this.dead = true
  }

  private die(): void {
    this.dead = true
    for (const bytes of this.queue) this.mux.queued -= bytes.length
    this.queue = []
  }
}
