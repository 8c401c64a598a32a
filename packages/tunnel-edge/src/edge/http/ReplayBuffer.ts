/**
 * Buffers the bytes sent to the agent before its first response byte, so that they can be replayed over another route.
 */

/** Largest number of bytes that can be replayed. */
export const repeatableBytes = 64 * 1024

export class ReplayBuffer {
  private sent: Array<Buffer> | undefined = []
  private bytes = 0

  add(bytes: Buffer): void {
    if (this.sent === undefined) return
    this.bytes += bytes.length
    if (this.bytes > repeatableBytes) this.sent = undefined
    else this.sent.push(bytes)
  }

  /** Whether the buffer still contains everything that was sent. */
  get isWhole(): boolean {
    return this.sent !== undefined
  }

  /** Returns everything that was sent and stops buffering. */
  take(): ReadonlyArray<Buffer> {
    const sent = this.sent ?? []
    this.sent = undefined
    return sent
  }
}
