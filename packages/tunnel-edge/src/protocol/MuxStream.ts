/**
 * One stream of a {@link Mux}: its bytes in both directions, and the windows of credit that hold each back. A reader
 * renews the window when the next hop took the bytes; one that the window slows down widens it.
 */
import { ProtocolError } from "./Frames.ts"
import { frame, limits, type ResetCode, reset } from "./Manifest.ts"

/** What a stream asks of the mux that carries it. */
export interface Carrying {
  /** The carrier takes nothing now. */
  readonly blocked: boolean
  /** Bytes that all streams hold back. */
  queued: number
  /** Milliseconds to the peer and back, the shortest seen. */
  readonly roundTrip: number
  readonly send: (type: number, streamId: number, payload: Buffer) => void
  /** Calls {@link MuxStream.pump} when it is this stream's turn. */
  readonly wait: (stream: MuxStream) => void
  /** Nothing more comes for a stream that has ended. */
  readonly forget: (id: number) => void
}

/** What one stream may write before it is another one's turn. */
const quantum = limits.dataBytes
const empty = Buffer.alloc(0)

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
  private readonly mux: Carrying
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

  constructor(mux: Carrying, id: number) {
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
    this.mux.forget(this.id)
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
    this.mux.forget(this.id)
    this.dead = true
  }

  private die(): void {
    this.dead = true
    for (const bytes of this.queue) this.mux.queued -= bytes.length
    this.queue = []
  }
}
