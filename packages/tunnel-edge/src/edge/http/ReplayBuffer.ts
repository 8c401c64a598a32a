/** What went to the agent before its first answer, to be sent again where the way led nowhere. */

/** A request is sent again over another way while it is no longer than this. */
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

  /** Whether everything that went out is here. */
  get isWhole(): boolean {
    return this.sent !== undefined
  }

  /** Everything that went out; nothing is kept from here on. */
  take(): ReadonlyArray<Buffer> {
    const sent = this.sent ?? []
    this.sent = undefined
    return sent
  }
}
