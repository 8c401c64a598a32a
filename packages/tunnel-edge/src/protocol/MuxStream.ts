/**
 * One stream of a {@link Mux}: its bytes in both directions and the credit windows that limit them. A receiver returns
 * credit when the next hop has accepted the bytes, and widens a window that limits the throughput.
 */
import { ProtocolError } from "./Frames.ts"
import { frame, limits, type ResetCode, reset } from "./Manifest.ts"

/** The part of the mux that a stream uses. */
export interface Carrying {
  /** The carrier does not accept writes at the moment. */
  readonly blocked: boolean
  /** Bytes queued by all streams. */
  queued: number
  /** Shortest observed round-trip time in milliseconds. */
  readonly roundTrip: number
  readonly send: (type: number, streamId: number, payload: Buffer) => void
  /** Calls {@link MuxStream.pump} when it is this stream's turn. */
  readonly wait: (stream: MuxStream) => void
  /** Removes a stream that has ended. */
  readonly forget: (id: number) => void
}

/** Bytes that one stream may write before another takes its turn. */
const quantum = limits.dataBytes
const empty = Buffer.alloc(0)

/** One stream. Its owner sets the handlers in the turn in which it was created, before any data can arrive. */
export class MuxStream {
  readonly id: number
  /** Receives data; every byte must be acknowledged with {@link delivered}. */
  onData: (bytes: Buffer) => void = () => {}
  /** The peer has ended its side. */
  onEnd: () => void = () => {}
  /** The stream was reset by the peer or closed with its link. */
  onReset: (code: ResetCode) => void = () => {}
  /** The bytes that {@link write} queued have been sent. */
  onDrain: () => void = () => {}
  private readonly mux: Carrying
  private credit: number = limits.windowBytes
  private allowance: number = limits.windowBytes
  /** Bytes that the peer may have in flight. Grows while the window limits the throughput. */
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

  /** Sends or queues the bytes. Returns false if the caller should pause until {@link onDrain}. */
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

  /** Ends this side after all queued bytes are sent. */
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

  /** Acknowledges bytes that the next hop has accepted. */
  delivered(bytes: number): void {
    this.unreported += bytes
    if (this.unreported < this.window >> 2 || this.dead) return
    // The window is the bottleneck if the reader consumes a quarter of it within two round trips. The reader must have
    // consumed several windows first, because a stalled reader is also fast until its socket buffer is full.
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
