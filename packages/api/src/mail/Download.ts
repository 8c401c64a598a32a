/**
 * Bytes that somebody sent, given out so that no browser takes them for ours: always to be saved, with a name that is only
 * a name, their type as it was said where it is harmless. One range of them where that is asked for (RFC 9110 section 14).
 */

/** The letters of a token that any reader of `filename` understands (RFC 6266 appendix D). */
const plain = /[^\w .()+,=@-]/g
/** RFC 8187: percent-encoded UTF-8, but for `attr-char`. */
const extended = (name: string) =>
  encodeURIComponent(name).replace(/['()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`)

const longest = 150

/**
 * No path, no control character, and none that turns the direction of writing, by which `gpj.exe` reads `exe.jpg`; neither
 * hidden nor only dots. Of a long name the end is kept, which says what it is.
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

/** `Content-Disposition` (RFC 6266): a name of ASCII for old readers where it differs, and the name itself. */
export const disposition = (filename: string | null): string => {
  const name = filename === null ? "" : safeName(filename)
  if (name === "") return "attachment"
  const ascii = name.replace(plain, "_")
  return ascii === name
    ? `attachment; filename="${ascii}"`
    : `attachment; filename="${ascii}"; filename*=UTF-8''${extended(name)}`
}

/** Headers that keep a browser from showing what somebody sent as a page of ours. */
export const harmless = (filename: string | null) => ({
  "content-disposition": disposition(filename),
  "content-security-policy": "sandbox; default-src 'none'",
})

/** Types that a reader might run, whoever asked for them, are only bytes. */
const active =
  /^(?:text\/(?:html|xml|css|.*script.*|cache-manifest|x-component)|image\/svg\b|application\/(?:.*xml.*|.*script.*|.*flash.*|.*java.*|x-.*exe.*|wasm|hta|pdf\+.*)|multipart\/|message\/|model\/)/

export const safeType = (type: string): string => (active.test(type) ? "application/octet-stream" : type)

export interface Range {
  /** Offsets, `end` being the first byte that is not in it. */
  readonly start: number
  readonly end: number
}

/**
 * The one range of a `Range` header: undefined where everything is to be given (no header, another unit, several ranges,
 * something unreadable: section 14.2 lets a server ignore those), "none" where no byte is in it.
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
