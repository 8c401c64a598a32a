/** Trace fields that the service adds to a message (RFC 5321 section 4.4, RFC 8601). */
import type { Header } from "@svc/domain/mail/Message"

/** Removes characters with which a client could break out of its quoted line. */
const quoted = (text: string) => text.replace(/[^\x21-\x7e]/g, "").slice(0, 255)

/**
 * Returns the client's name: a domain or an address literal, without characters that could imitate the text around it.
 */
const named = (helo: string) => quoted(helo).replace(/[^\w.:[\]-]/g, "") || "unknown"

/** Returns the protocol name of RFC 3848 and RFC 6531 section 4.3. */
const protocolOf = (session: { readonly isExtended: boolean; readonly isUtf8: boolean; readonly secure: boolean }) =>
  `${session.isUtf8 ? "UTF8" : session.isExtended ? "E" : ""}SMTP${session.secure ? "S" : ""}`

export const received = (options: {
  readonly helo: string
  readonly ip: string
  readonly host: string
  readonly secure: boolean
  /** Whether the session started with EHLO, and whether the message was announced with SMTPUTF8. */
  readonly isExtended: boolean
  readonly isUtf8: boolean
  readonly id: string
  readonly at: Date
}): string =>
  `Received: from ${named(options.helo)} ([${quoted(options.ip)}])\r\n` +
  `\tby ${options.host} with ${protocolOf(options)} id ${quoted(options.id)};\r\n` +
  `\t${date(options.at)}`

/** Caches the last formatted date, because formatting is slow and most messages share a second. */
let last = { second: Number.NaN, date: "" }

/** Formats a date by RFC 5322 section 3.3. */
const date = (at: Date): string => {
  const second = Math.floor(at.getTime() / 1000)
  if (second !== last.second) last = { second, date: at.toUTCString().replace("GMT", "+0000") }
  return last.date
}

/** Adds the service's fields and removes forged ones (RFC 8601 section 5). Returns the pieces of the result. */
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

/** Returns the service's fields as parsed headers. */
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
