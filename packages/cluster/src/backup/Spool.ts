/**
 * Transfers rows between the database server and this process through a named pipe, in a folder that only the two
 * accounts can enter. No table needs disk space twice. The pipe's name contains no external input.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { BackupFailed } from "./Manifest.ts"

/** Creates a pipe in the server's home and removes it when the scope closes. */
export const pipe = (home: string): Effect.Effect<string, BackupFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => {
        const folder = fs.mkdtempSync(path.join(home, "spool-"))
        const file = path.join(folder, "rows")
        const made = spawnSync("mkfifo", ["-m", "600", file], { encoding: "utf8" })
        if (made.status !== 0) throw new Error(made.error?.message ?? made.stderr)
        const { uid, gid } = fs.statSync(home)
        if (process.getuid?.() === 0) for (const one of [folder, file]) fs.chownSync(one, uid, gid)
        return file
      },
      catch: (error) =>
        new BackupFailed({
          message: `A pipe cannot be made in ${home}: ${error instanceof Error ? error.message : String(error)}`,
        }),
    }),
    (file) => Effect.sync(() => fs.rmSync(path.dirname(file), { recursive: true, force: true })),
  )

/**
 * Opens our end of the pipe, which waits for the server's. `ended` resolves to the error of `copying`, if any. The server may
 * fail without having opened its end, so that end is opened here until ours is open.
 */
const opened = (file: string, copying: Promise<unknown>, flags: "r" | "w") => {
  let isOpen = false
  const opening = fs.promises.open(file, flags).finally(() => (isOpen = true))
  const ended = copying.then(
    () => undefined,
    async (error: unknown) => {
      if (!isOpen) {
        const other = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_NONBLOCK)
        await Promise.allSettled([opening])
        fs.closeSync(other)
      }
      return { error }
    },
  )
  return { opening, ended }
}

/** Yields what the server copies to the pipe while `copying` runs. */
export async function* received(file: string, copying: Promise<unknown>): AsyncGenerator<Buffer> {
  const { opening, ended } = opened(file, copying, "r")
  yield* (await opening).createReadStream({ highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>
  const failure = await ended
  if (failure !== undefined) throw failure.error
}

/** Writes a whole chunk, because a pipe may accept only a part of it. */
const whole = async (out: fs.promises.FileHandle, chunk: Buffer): Promise<void> => {
  for (let at = 0; at < chunk.length;) at += (await out.write(chunk, at)).bytesWritten
}

/** Writes rows to the pipe, from which the server copies while `copying` runs. */
export const sent = async (file: string, copying: Promise<unknown>, rows: AsyncIterable<Buffer>): Promise<void> => {
  const { opening, ended } = opened(file, copying, "w")
  let broken: { readonly error: unknown } | undefined
  const out = await opening
  try {
    for await (const chunk of rows) await whole(out, chunk)
  } catch (error) {
    broken = { error }
  } finally {
    await out.close()
  }
  const failure = (await ended) ?? broken
  if (failure !== undefined) throw failure.error
}
