/**
 * Extracts the base subject that identifies a thread (RFC 5256 section 2.1): without `Re:`, `Fwd:`, list names and
 * `(fwd)`.
 */

/** Only the first characters of a subject are compared. */
const most = 500

/** Maximum number of prefixes that are removed. */
const deepest = 20

const trailer = /(?:\(fwd\)|\s)+$/i
const leader = /^(?:\[[^[\]]{0,200}\]\s*)*(?:re|fwd?)\s*(?:\[[^[\]]{0,200}\]\s*)?:/i
const blob = /^\[[^[\]]{0,200}\]\s*/

interface BaseSubject {
  readonly text: string
  /** Whether a removed part marks the message as a reply or a forward. */
  readonly isReply: boolean
}

export const of = (subject: string): BaseSubject => {
  let text = subject.slice(0, most).replace(/\s+/g, " ").trim()
  let isReply = false
  for (let taken = 0; ; taken++) {
    const before = text
    const end = text.replace(trailer, "")
    if (/\(fwd\)/i.test(text.slice(end.length))) isReply = true
    text = end.trimStart()
    if (leader.test(text)) {
      text = text.replace(leader, "").trimStart()
      isReply = true
    } else {
      const rest = text.replace(blob, "")
      if (rest !== "") text = rest
    }
    const forwarded = /^\[fwd:(.*)\]$/i.exec(text)?.[1]
    if (forwarded !== undefined) {
      text = forwarded.trim()
      isReply = true
    }
    if (text === before || taken === deepest) return { text: text.toUpperCase(), isReply }
  }
}
