/** The pipe between the database server and a backup: whole rows, and an end if the other side fails or never comes. */
import { createReadStream, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { buffer } from "node:stream/consumers"
import * as Spool from "@svc/cluster/backup/Spool"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"

const home = mkdtempSync(path.join(tmpdir(), "svc-spool-"))
afterAll(() => rmSync(home, { recursive: true }))

/** Runs a test with a pipe, and expects that nothing of it remains. */
const withPipe = async (use: (pipe: string) => Promise<void>) => {
  const scoped = Effect.scoped(Effect.flatMap(Spool.pipe(home), (pipe) => Effect.promise(() => use(pipe))))
  await Effect.runPromise(scoped)
  expect(readdirSync(home)).toEqual([])
}
const rows = Buffer.alloc(3 * 1024 * 1024 + 1, "row")
async function* portions(failure?: Error) {
  for (let at = 0; at < rows.length; at += 1_000_000) yield rows.subarray(at, at + 1_000_000)
  if (failure !== undefined) throw failure
}
const refusal = () => Promise.reject(new Error("permission denied"))

describe("The pipe of a backup", () => {
  it("is entered only by its owner, and is removed with its folder", () =>
    withPipe(async (pipe) => {
      expect(statSync(pipe).isFIFO()).toBe(true)
      expect([statSync(pipe).mode & 0o777, statSync(path.dirname(pipe)).mode & 0o777]).toEqual([0o600, 0o700])
    }))

  it("is reported with its folder if it cannot be made", async () => {
    const file = path.join(home, "file")
    writeFileSync(file, "")
    const failed = await Effect.runPromise(Effect.flip(Effect.scoped(Spool.pipe(file))))
    expect(failed).toMatchObject({
      _tag: "BackupFailed",
      message: expect.stringContaining(`cannot be made in ${file}: `),
    })
    rmSync(file)
  })

  it("passes all bytes in both directions", async () => {
    await withPipe(async (pipe) => {
      expect((await buffer(Spool.received(pipe, writeFile(pipe, rows)))).equals(rows)).toBe(true)
    })
    await withPipe(async (pipe) => {
      const copied = buffer(createReadStream(pipe))
      await Spool.sent(pipe, copied, portions())
      expect((await copied).equals(rows)).toBe(true)
    })
  })

  it("fails with the error of the server if the server never opens it, or fails at the end", async () => {
    await withPipe(async (pipe) => {
      await expect(buffer(Spool.received(pipe, refusal()))).rejects.toThrow("permission denied")
      await expect(Spool.sent(pipe, refusal(), portions())).rejects.toThrow("permission denied")
      const written = writeFile(pipe, rows).then(refusal)
      await expect(buffer(Spool.received(pipe, written))).rejects.toThrow("permission denied")
      const copied = buffer(createReadStream(pipe)).then(refusal)
      await expect(Spool.sent(pipe, copied, portions())).rejects.toThrow("permission denied")
    })
  })

  it("fails with the error of the rows, and lets the server end", () =>
    withPipe(async (pipe) => {
      const copied = buffer(createReadStream(pipe))
      await expect(Spool.sent(pipe, copied, portions(new Error("damaged")))).rejects.toThrow("damaged")
      expect((await copied).equals(rows)).toBe(true)
    }))
})
