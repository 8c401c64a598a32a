/** Images of a message that its HTML references by Content-ID. */
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import * as Attachments from "@svc/mail-gateway/mail/Attachments"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"

const part = (type: string, id: string, content: Buffer) =>
  `--b\r\nContent-Type: ${type}\r\nContent-ID: ${id}\r\nContent-Transfer-Encoding: base64\r\n\r\n${content.toString("base64")}\r\n`
const mail = (...parts: ReadonlyArray<string>) =>
  Buffer.from(
    `From: a@example.org\r\nMIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n\r\n${parts.join("")}--b--\r\n`,
  )
const picturesOf = async (raw: Buffer) => {
  const { pictures } = await Effect.runPromise(Effect.provide(AttachmentReader, Attachments.layer))
  return await Effect.runPromise(pictures(raw))
}
const small = Buffer.from("picture")

describe("Images of a message", () => {
  it("are found by their Content-ID, the first of equal ones", async () => {
    const found = await picturesOf(
      mail(
        part("image/png", "<one@x>", small),
        part("IMAGE/JPEG", "two@x", small),
        part("image/gif", "<one@x>", Buffer.from("another")),
      ),
    )
    expect([...found]).toEqual([
      ["one@x", `data:image/png;base64,${small.toString("base64")}`],
      ["two@x", `data:image/jpeg;base64,${small.toString("base64")}`],
    ])
  })

  it("have a Content-ID and a raster format", async () => {
    const found = await picturesOf(
      mail(
        part("image/svg+xml", "<svg@x>", small),
        part("text/html", "<html@x>", small),
        part('image/png"><script>', "<odd@x>", small),
        part("image/png", "", small),
        part("image/png", "<with space@x>", small),
      ),
    )
    expect([...found.keys()]).toEqual([])
  })

  it("are complete or omitted, with at most 2 MiB each and 6 MiB in total", async () => {
    const mebibytes = (count: number, more = 0) => Buffer.alloc(count * 1024 * 1024 + more)
    const found = await picturesOf(
      mail(
        part("image/png", "<large@x>", mebibytes(2, 1)),
        ...["a", "b", "c", "d"].map((name) => part("image/png", `<${name}@x>`, mebibytes(2))),
        part("image/png", "<empty@x>", Buffer.alloc(0)),
      ),
    )
    expect([...found.keys()]).toEqual(["a@x", "b@x", "c@x", "empty@x"])
  })

  it("are searched for in the first 100 parts", async () => {
    const found = await picturesOf(mail(...Array.from({ length: 101 }, (_, n) => part("image/png", `<${n}@x>`, small))))
    expect([...found.keys()].at(-1)).toBe("99@x")
  })
})
