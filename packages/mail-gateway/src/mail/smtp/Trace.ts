/** The trace fields we put on top of a message (RFC 5321 section 4.4, RFC 8601). */
import type { Header } from "@svc/domain/mail/Message"

/** Nothing a client says may break out of the line it is quoted in. */
const quoted = (text: string) => text.replace(/[^\x21-\x7e]/g, "").slice(0, 255)

/** What a client may call itself: a domain, or an address in brackets. Nothing in it may look like what we add. */
const named = (helo: string) => quoted(helo).replace(/[^\w.:[\]-]/g, "") || "unknown"

/** RFC 3848, RFC 6531 section 4.3. */
const protocolOf = (session: { readonly isExtended: boolean; readonly isUtf8: boolean; readonly secure: boolean }) =>
  `${session.isUtf8 ? "UTF8" : session.isExtended ? "E" : ""}SMTP${session.secure ? "S" : ""}`

export const received = (options: {
  readonly helo: string
  readonly ip: string
  readonly host: string
  readonly secure: boolean
  /** It began with EHLO; and the message was announced as one with addresses beyond ASCII. */
  readonly isExtended: boolean
  readonly isUtf8: boolean
  readonly id: string
  readonly at: Date
}): string =>
  `Received: from ${named(options.helo)} ([${quoted(options.ip)}])\r\n` +
  `\tby ${options.host} with ${protocolOf(options)} id ${quoted(options.id)};\r\n` +
  `\t${date(options.at)}`

/** The date that was written last: letters of one second have the same, and the platform takes long to write one. */
let last = { second: Number.NaN, date: "" }

/** RFC 5322 section 3.3. */
export const date = (at: Date): string => {
  const second = Math.floor(at.getTime() / 1000)
  if (second !== last.second) last = { second, date: at.toUTCString().replace("GMT", "+0000") }
  return last.date
}

/** Our fields on top of a message, and out of it what only we may write (RFC 8601 section 5): the pieces of what is left. */
export const stamp = (
  ours: ReadonlyArray<string>,
  raw: Buffer,
  cuts: ReadonlyArray<readonly [start: number, end: number]>,
): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = [Buffer.from(ours.map((field) => `${field}\r\n`).join(""))]
  let at = 0
  for (const [start, end] of cuts) {
    pieces.push(raw.subarray(at, start))
    at = end
  }
  return [...pieces, raw.subarray(at)]
}

/** Our fields as the message's headers list them. */
export const headers = (ours: ReadonlyArray<string>): ReadonlyArray<Header> =>
  ours.map((field) => {
    const colon = field.indexOf(":")
    return {
      name: field.slice(0, colon),
      value: field
        .slice(colon + 1)
        .replace(/\r\n/g, "")
        .trim(),
    }
  })
