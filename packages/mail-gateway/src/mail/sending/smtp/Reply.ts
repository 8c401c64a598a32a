/** What a mail server answers (RFC 5321 section 4.2), read from the bytes as they come. No I/O. */

export interface Reply {
  readonly code: number
  /** The enhanced status code (RFC 2034) of its first line; null where there is none. */
  readonly status: string | null
  /** The text of each line, without codes. */
  readonly lines: ReadonlyArray<string>
}

/** Servers keep to 512 bytes a line (section 4.5.3.1.5); one that goes on beyond these is left. */
const limits = { line: 4_096, lines: 200 }

export class NotSmtp extends Error {}

const enhanced = /^([245]\.\d{1,3}\.\d{1,3})(?: |$)/

/** Control characters are nobody's to read, and lines are one. */
export const plain = (text: string): string => text.replace(/[\p{Cc}\s]+/gu, " ").trim()

/** The whole text, in one line, without the enhanced code; at most 500 characters. */
export const textOf = ({ lines }: Reply): string =>
  plain(lines.map((line) => line.replace(enhanced, "")).join(" ")).slice(0, 500)

/** Reads replies; throws {@link NotSmtp} for what is none. */
export const reader = () => {
  let rest = ""
  let lines: Array<string> = []
  return {
    /** Whether something stands there that is no whole reply yet. */
    isWithin: () => rest !== "" || lines.length > 0,
    push: (chunk: Buffer): ReadonlyArray<Reply> => {
      const replies: Array<Reply> = []
      rest += chunk.toString("latin1")
      let at = 0
      for (let end = rest.indexOf("\n", at); end >= 0; end = rest.indexOf("\n", at)) {
        const line = rest.slice(at, end).replace(/\r$/, "")
        at = end + 1
        const [, code, more, text] = /^([2-5]\d\d)([- ]?)(.*)$/.exec(line) ?? []
        if (code === undefined || text === undefined || line.length > limits.line) throw new NotSmtp("no reply of SMTP")
        lines.push(text)
        if (lines.length > limits.lines) throw new NotSmtp("a reply without an end")
        if (more === "-") continue
        replies.push({ code: Number(code), status: enhanced.exec(lines[0]!)?.[1] ?? null, lines })
        lines = []
      }
      rest = rest.slice(at)
      if (rest.length > limits.line) throw new NotSmtp("a line without an end")
      return replies
    },
  }
}
