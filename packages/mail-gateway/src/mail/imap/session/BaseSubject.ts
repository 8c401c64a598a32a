/** What of a subject makes a conversation (RFC 5256 section 2.1): without `Re:`, `Fwd:`, list names and `(fwd)`. */

/** Characters that are looked at; the rest of a subject tells no conversations apart. */
const most = 500

/** Prefixes that are taken off. */
const deepest = 20

const trailer = /(?:\(fwd\)|\s)+$/i
const leader = /^(?:\[[^[\]]{0,200}\]\s*)*(?:re|fwd?)\s*(?:\[[^[\]]{0,200}\]\s*)?:/i
const blob = /^\[[^[\]]{0,200}\]\s*/

export interface BaseSubject {
  readonly text: string
  /** Whether something was taken off that says so: it answers, or was forwarded. */
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
