/** Reads the agent's answer to an upgrade: whether the connection changes its protocol is told by its first final status. */

/** An answer whose status is not known after this many bytes is no answer to an upgrade. */
const answerBytes = 64 * 1024

/** The status of the first final answer in what arrived so far; undefined while that is not known. */
const finalStatus = (text: string): number | undefined => {
  let rest = text
  while (true) {
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(rest)?.[1]
    if (status === undefined) return undefined
    if (status === "101" || !status.startsWith("1")) return Number(status)
    const end = rest.indexOf("\r\n\r\n")
    if (end < 0) return undefined
    rest = rest.slice(end + 4)
  }
}

export class UpgradeResponse {
  private text = ""

  /** Whether the upgrade was accepted; undefined while that is not known. */
  feed(bytes: Buffer): boolean | undefined {
    this.text += bytes.toString("latin1")
    const status = finalStatus(this.text)
    if (status === undefined && this.text.length < answerBytes) return undefined
    return status === 101
  }
}
