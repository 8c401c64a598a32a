/**
 * Reads the agent's response to an upgrade. The first final status decides whether the connection changes its protocol.
 */

/** A response without a status in this many bytes counts as a rejected upgrade. */
const answerBytes = 64 * 1024

/** Returns the status of the first final response, or undefined if it is incomplete. */
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

  /** Returns whether the upgrade was accepted, or undefined if the status is not known yet. */
  feed(bytes: Buffer): boolean | undefined {
    this.text += bytes.toString("latin1")
    const status = finalStatus(this.text)
    if (status === undefined && this.text.length < answerBytes) return undefined
    return status === 101
  }
}
