/** Parses replies of a mail server (RFC 5321 section 4.2) incrementally. No I/O. */

export interface Reply {
  readonly code: number
  /** The enhanced status code (RFC 2034) of the first line, or null if it has none. */
  readonly status: string | null
  /** The text of each line, without codes. */
  readonly lines: ReadonlyArray<string>
}

/** Lines have at most 512 bytes (section 4.5.3.1.5). Replies beyond these limits are invalid. */
const limits = { line: 4_096, lines: 200 }

export class NotSmtp extends Error {}

const enhanced = /^([245]\.\d{1,3}\.\d{1,3})(?: |$)/

/** Replaces control characters and line breaks by spaces. */
export const plain = (text: string): string => text.replace(/[\p{Cc}\s]+/gu, " ").trim()

/** Returns the text in one line of at most 500 characters, without the enhanced code. */
export const textOf = ({ lines }: Reply): string =>
  plain(lines.map((line) => line.replace(enhanced, "")).join(" ")).slice(0, 500)

/** Returns a parser. `push` throws {@link NotSmtp} on invalid input. */
export const reader = () => {
  let buffered = ""
  let lines: Array<string> = []
  return {
    /** Returns whether an incomplete reply is buffered. */
    isIncomplete: () => buffered !== "" || lines.length > 0,
    push: (chunk: Buffer): ReadonlyArray<Reply> => {
      const replies: Array<Reply> = []
      buffered += chunk.toString("latin1")
      let at = 0
      for (let end = buffered.indexOf("\n", at); end >= 0; end = buffered.indexOf("\n", at)) {
        const line = buffered.slice(at, end).replace(/\r$/, "")
        at = end + 1
        const [, code, more, text] = /^([2-5]\d\d)(?!\d)([- ]?)(.*)$/.exec(line) ?? []
        if (code === undefined || text === undefined || line.length > limits.line)
          throw new NotSmtp("not an SMTP reply")
        lines.push(text)
        if (lines.length > limits.lines) throw new NotSmtp("the reply is too long")
        if (more === "-") continue
        replies.push({ code: Number(code), status: enhanced.exec(lines[0]!)?.[1] ?? null, lines })
        lines = []
      }
      buffered = buffered.slice(at)
      if (buffered.length > limits.line) throw new NotSmtp("a line is too long")
      return replies
    },
  }
}
