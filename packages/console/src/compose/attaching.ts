/** Files as the API takes them: named, of a media type, in base64. */

export interface Attached {
  readonly filename: string
  readonly content_type: string
  readonly content_base64: string
}

/**
 * Bytes of all attachments together: a request with a message has at most 10 MiB, base64 makes four of three, and the text
 * wants room too.
 */
export const attachedAtMost = 7_000_000

/** RFC 4648 section 4: four characters for three bytes, the last ones filled up. */
export const sizeOf = ({ content_base64 }: Attached) => Math.floor((content_base64.replace(/=+$/, "").length * 3) / 4)

const mediaType = /^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,60}\/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,80}$/

/** The name and the type as the service takes them: one line, no parameters. */
export const described = (filename: string, type: string) => ({
  filename:
    filename
      .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
      .trim()
      .slice(0, 200) || "attachment",
  content_type: mediaType.exec(type.split(";", 1)[0]!.trim())?.[0] ?? "application/octet-stream",
})

/** The browser's own encoder: what it holds up is a thread of its own. */
export const attached = (content: Blob, filename: string, type: string): Promise<Attached> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener("load", () => {
      const url = String(reader.result)
      resolve({ ...described(filename, type), content_base64: url.slice(url.indexOf(",") + 1) })
    })
    reader.addEventListener("error", () => reject(reader.error ?? new Error("the file cannot be read")))
    reader.readAsDataURL(content)
  })
