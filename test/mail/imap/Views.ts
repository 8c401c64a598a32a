/**
 * Validates the untagged responses of a session: it maintains the client's view and rejects impossible updates (RFC
 * 9051 sections 2.3.1 and 7.5).
 */
export class Views {
  /** UIDs by sequence number; 0 if unknown. */
  readonly uids: Array<number> = []
  readonly flags = new Map<number, string>()
  #modseq = new Map<number, number>()

  /** `byNumber`: the running command uses sequence numbers, so none may change. */
  hear(line: string, byNumber: boolean): void {
    const exists = /^\* (\d+) EXISTS$/.exec(line)
    if (exists !== null) {
      const count = Number(exists[1])
      if (count < this.uids.length) throw new Error(`EXISTS fell from ${this.uids.length} to ${count}`)
      while (this.uids.length < count) this.uids.push(0)
      return
    }
    const expunge = /^\* (\d+) EXPUNGE$/.exec(line)
    if (expunge !== null) {
      const number = Number(expunge[1])
      if (byNumber) throw new Error(`${line} while numbers are in use`)
      if (number < 1 || number > this.uids.length) throw new Error(`${line} of ${this.uids.length}`)
      this.uids.splice(number - 1, 1)
      return
    }
    const fetch = /^\* (\d+) FETCH \((.*)\)$/s.exec(line)
    if (fetch === null) return
    const number = Number(fetch[1])
    if (number < 1 || number > this.uids.length) throw new Error(`${line} of ${this.uids.length}`)
    const uid = Number(/\bUID (\d+)/.exec(fetch[2]!)?.[1] ?? 0)
    if (uid === 0) return
    this.#know(number, uid, line)
    const flags = /FLAGS \(([^)]*)\)/.exec(fetch[2]!)?.[1]
    const modseq = Number(/MODSEQ \((\d+)\)/.exec(fetch[2]!)?.[1] ?? 0)
    if (modseq > 0) {
      if (modseq < (this.#modseq.get(uid) ?? 0)) throw new Error(`MODSEQ of ${uid} fell: ${line}`)
      this.#modseq.set(uid, modseq)
    }
    if (flags !== undefined)
      this.flags.set(
        uid,
        flags
          .split(" ")
          .filter((flag) => flag !== "\\Recent")
          .sort()
          .join(" "),
      )
  }

  #know(number: number, uid: number, line: string) {
    const known = this.uids[number - 1]
    if (known !== 0 && known !== uid) throw new Error(`number ${number} was ${known}: ${line}`)
    this.uids[number - 1] = uid
    const before = this.uids.slice(0, number - 1).findLast((one) => one !== 0)
    const after = this.uids.slice(number).find((one) => one !== 0)
    if ((before !== undefined && before >= uid) || (after !== undefined && after <= uid)) {
      throw new Error(`UIDs out of order at ${line}`)
    }
  }
}
