/** The format of the backup file: what is written is read again, and every other file is refused by name. */
import { spawnSync } from "node:child_process"
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import { type Member, read, Torn, write } from "@svc/cluster/backup/Archive"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const folder = mkdtempSync(path.join(os.tmpdir(), "svc-archive-"))
const file = path.join(folder, "archive.tar.zst")
afterAll(() => rmSync(folder, { recursive: true }))

/** Members whose sizes are around the size of a block. */
const members: ReadonlyArray<Member> = [0, 1, 511, 512, 513, 100_000].map((size) => ({
  name: `tables/member-${size}`,
  bytes: Buffer.alloc(size, size % 251),
}))
beforeAll(() =>
  write(
    (async function* () {
      yield* members
    })(),
    createWriteStream(file),
  ),
)

const all = async (name: string) => {
  const found: Array<Member> = []
  for await (const member of read(name)) found.push(member)
  return found
}
/** Reads a file with these uncompressed bytes. */
const altered = (change: (bytes: Buffer) => Buffer) => {
  const name = path.join(folder, "altered")
  writeFileSync(name, zstdCompressSync(change(zstdDecompressSync(readFileSync(file)))))
  return all(name)
}
const torn = async (reading: Promise<unknown>) => {
  const error = await reading.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  expect(error).toBeInstanceOf(Torn)
  return (error as Torn).message
}

describe("A backup file", () => {
  it("contains its members unchanged and in order", async () => expect(await all(file)).toEqual(members))

  it.skipIf(process.platform === "win32")("is listed by tar with its names and sizes", () => {
    const tar = path.join(folder, "plain.tar")
    writeFileSync(tar, zstdDecompressSync(readFileSync(file)))
    const { stdout } = spawnSync("tar", ["-tvf", tar], { encoding: "utf8" })
    const listed = stdout
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
    expect(listed.map((words) => [words.at(-1), Number(words[2])])).toEqual(
      members.map(({ name, bytes }) => [name, bytes.length]),
    )
    expect(listed[0]![0]).toBe("-rw-------")
  })

  it("that was cut anywhere is refused", async () => {
    const bytes = readFileSync(file)
    for (const share of [0.1, 0.5, 0.99]) {
      const name = path.join(folder, "cut")
      writeFileSync(name, bytes.subarray(0, Math.floor(bytes.length * share)))
      expect(await torn(all(name))).toMatch(/cannot be decompressed|ends in the midst/)
    }
    expect(await torn(altered((whole) => whole.subarray(0, 512 * 3)))).toMatch(/ends in the midst/)
  })

  it("that was altered is refused", async () => {
    const bytes = readFileSync(file)
    const name = path.join(folder, "flipped")
    bytes[Math.floor(bytes.length / 2)]! ^= 1
    writeFileSync(name, bytes)
    await torn(all(name))
    const withHeader = (at: number, text: string) => (whole: Buffer) => {
      whole.write(text, at)
      return whole
    }
    expect(await torn(altered(withHeader(0, "other")))).toMatch(/no archive of ours/)
    expect(await torn(altered(withHeader(148, "9999")))).toMatch(/no archive of ours/)
    writeFileSync(name, "plain text")
    expect(await torn(all(name))).toMatch(/cannot be decompressed/)
  })

  it("with a member of more than 64 MiB is refused before it is read", async () => {
    const sized = (size: number) => (whole: Buffer) => {
      const head = Buffer.from(whole.subarray(0, 512))
      head.write(`${size.toString(8).padStart(11, "0")}\0`, 124)
      head.write(" ".repeat(8), 148)
      const sum = head.reduce((all, byte) => all + byte, 0)
      head.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148)
      return Buffer.concat([head, whole.subarray(512)])
    }
    expect(await torn(altered(sized(64 * 1024 * 1024 + 1)))).toMatch(/larger than any of ours/)
    expect(await torn(altered(sized(64 * 1024 * 1024)))).toMatch(/ends in the midst/)
  })

  it("that does not exist is an error of the system", async () =>
    expect(all(path.join(folder, "absent"))).rejects.toMatchObject({ code: "ENOENT" }))
})
