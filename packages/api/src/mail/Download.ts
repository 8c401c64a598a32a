/**
 * Downloads of content from senders, so that browsers never treat it as content of this origin: always an attachment, with
 * a safe file name, and a harmless media type. Supports a single byte range (RFC 9110 section 14).
 */

/** Token characters that every parser of `filename` understands (RFC 6266 appendix D). */
const plain = /[^\w .()+,=@-]/g
/** RFC 8187: percent-encoded UTF-8, except `attr-char`. */
const extended = (name: string) =>
  encodeURIComponent(name).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)

const longest = 150

/**
 * Removes paths, control characters and bidirectional overrides, with which `gpj.exe` reads as `exe.jpg`, and hidden or
 * dot-only names. A long name keeps its end, because the end has the extension.
 */
export const safeName = (filename: string): string => {
  const name = filename
    .toWellFormed()
    .normalize("NFC")
    .replace(/[\\/:*?"<>|\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "_")
    .replace(/^[.\s]+|[.\s]+$/gu, "")
  const letters = Array.from(name)
  if (letters.length <= longest) return name
  const dot = name.lastIndexOf(".")
  const ending = dot > 0 && name.length - dot <= 12 ? Array.from(name.slice(dot)) : []
  return [...letters.slice(0, longest - ending.length), ...ending].join("")
}

/** Builds `Content-Disposition` (RFC 6266) with an ASCII fallback if the name needs one. */
export const disposition = (filename: string | null): string => {
  const name = filename === null ? "" : safeName(filename)
  if (name === "") return "attachment"
  const ascii = name.replace(plain, "_")
  return ascii === name
    ? `attachment; filename="${ascii}"`
    : `attachment; filename="${ascii}"; filename*=UTF-8''${extended(name)}`
}

/** Headers that keep a browser from rendering the content as a page of this origin. */
export const harmless = (filename: string | null) => ({
  "content-disposition": disposition(filename),
  "content-security-policy": "sandbox; default-src 'none'",
})

/** Types that a viewer might execute are served as bytes. */
const active =
  /^(?:text\/(?:html|xml|css|.*script.*|cache-manifest|x-component)|image\/svg\b|application\/(?:.*xml.*|.*script.*|.*flash.*|.*java.*|x-.*exe.*|wasm|hta|pdf\+.*)|multipart\/|message\/|model\/)/

export const safeType = (type: string): string => (active.test(type) ? "application/octet-stream" : type)

interface Range {
  /** Offsets; `end` is exclusive. */
  readonly start: number
  readonly end: number
}

/**
 * Parses a single `Range`: undefined if the whole content is returned (no header, another unit, several ranges, or
 * malformed; section 14.2 allows ignoring those), "none" if no byte is in the range.
 */
export const rangeOf = (header: string | undefined, size: number): Range | "none" | undefined => {
  const found = header === undefined ? null : /^bytes=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header)
  if (found === null) return undefined
  const [, first = "", last = ""] = found
  if (first === "" && last === "") return undefined
  if (first === "")
    return last === "0".repeat(last.length) || size === 0
      ? "none"
      : { start: Math.max(0, size - Number(last)), end: size }
  const start = Number(first)
  if (last !== "" && Number(last) < start) return undefined
  return start >= size ? "none" : { start, end: last === "" ? size : Math.min(size, Number(last) + 1) }
}
