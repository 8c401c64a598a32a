/** The trace fields we put on top of a message (RFC 5321 section 4.4, RFC 8601). */

/** Nothing a client says may break out of the line it is quoted in. */
const quoted = (text: string) => text.replace(/[^\x21-\x7e]/g, "").slice(0, 255)

export const received = (options: {
  readonly helo: string
  readonly ip: string
  readonly host: string
  readonly secure: boolean
  readonly id: string
  readonly at: Date
}): string =>
  `Received: from ${quoted(options.helo) || "unknown"} ([${quoted(options.ip)}])\r\n` +
  `\tby ${options.host} with ${options.secure ? "ESMTPS" : "ESMTP"} id ${quoted(options.id)};\r\n` +
  `\t${date(options.at)}`

/** RFC 5322 section 3.3. */
export const date = (at: Date): string => at.toUTCString().replace("GMT", "+0000")

/**
 * Where the header carries `Authentication-Results` in our name, only we may have written it: those are taken out
 * (RFC 8601 section 5). Answers the message unchanged, uncopied, where there are none.
 */
export const withoutOurResults = (raw: Buffer, host: string): Buffer => {
  const end = raw.indexOf("\r\n\r\n")
  const head = raw.subarray(0, end < 0 ? raw.length : end + 2).toString("latin1")
  if (!/^authentication-results:/im.test(head)) return raw
  const ours = new RegExp(`^\\s*"?${host.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}"?[\\s;]`, "i")
  const kept = head
    .split(/(?<=\r\n)(?![ \t])/)
    .filter((field) => !(/^authentication-results:/i.test(field) && ours.test(field.slice(field.indexOf(":") + 1))))
    .join("")
  return Buffer.concat([Buffer.from(kept, "latin1"), raw.subarray(Buffer.byteLength(head, "latin1"))])
}
