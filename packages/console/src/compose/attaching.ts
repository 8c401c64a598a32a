/** Attachments in the form of the API: name, media type, base64 content. */

export interface Attached {
  readonly filename: string
  readonly content_type: string
  readonly content_base64: string
}

/**
 * Maximum size in bytes of all attachments: a request has at most 10 MiB, base64 adds a third, and the text needs space
 * too.
 */
export const attachedAtMost = 7_000_000
/** Maximum number of attachments, as the service accepts them. */
export const filesAtMost = 50

/** Returns the decoded size in bytes (RFC 4648 section 4). */
export const sizeOf = ({ content_base64 }: Attached) => Math.floor((content_base64.replace(/=+$/, "").length * 3) / 4)

/** Types of images that browsers show without running anything. */
const pictures = /^image\/(?:png|jpeg|gif|webp)$/
const previewedAtMost = 3_000_000

/** Returns the address of a small preview; undefined for files that are not shown. */
export const previewOf = (file: Attached) =>
  pictures.test(file.content_type) && sizeOf(file) <= previewedAtMost
    ? `data:${file.content_type};base64,${file.content_base64}`
    : undefined

const mediaType = /^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,60}\/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,80}$/

/** Returns a single-line name and a media type without parameters. */
export const described = (filename: string, type: string) => ({
  filename:
    filename
      .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
      .trim()
      .slice(0, 200) || "attachment",
  content_type: mediaType.exec(type.split(";", 1)[0]!.trim())?.[0] ?? "application/octet-stream",
})

/** Encodes with FileReader, which works outside the main thread. `onProgress` receives the share that was read. */
export const attached = (
  content: Blob,
  filename: string,
  type: string,
  onProgress?: (share: number) => void,
): Promise<Attached> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.addEventListener("progress", ({ loaded, total }) => onProgress?.(total === 0 ? 1 : loaded / total))
    reader.addEventListener("load", () => {
      const url = String(reader.result)
      resolve({ ...described(filename, type), content_base64: url.slice(url.indexOf(",") + 1) })
    })
    reader.addEventListener("error", () => reject(reader.error ?? new Error("the file cannot be read")))
    reader.readAsDataURL(content)
  })
