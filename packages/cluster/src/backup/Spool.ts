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

/** Opens and closes one end of the pipe, so that a process waiting at the other end does not wait forever. */
const abandon = (file: string, flags: number): void => {
  try {
    fs.closeSync(fs.openSync(file, flags | fs.constants.O_NONBLOCK))
  } catch {
    // No process waits.
  }
}

/** Yields what the server copies to the pipe while `copying` runs. */
export async function* received(file: string, copying: Promise<unknown>): AsyncGenerator<Buffer> {
  let failure: unknown
  const ended = copying.catch((error: unknown) => {
    failure = error
    abandon(file, fs.constants.O_WRONLY)
  })
  yield* fs.createReadStream(file, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>
  await ended
  if (failure !== undefined) throw failure
}

/** Writes a whole chunk, because a pipe may accept only a part of it. */
const whole = async (out: fs.promises.FileHandle, chunk: Buffer): Promise<void> => {
  for (let at = 0; at < chunk.length;) at += (await out.write(chunk, at)).bytesWritten
}

/** Writes rows to the pipe, from which the server copies while `copying` runs. */
export const sent = async (file: string, copying: Promise<unknown>, rows: AsyncIterable<Buffer>): Promise<void> => {
  let failure: unknown
  const ended = copying.catch((error: unknown) => {
    failure = error
    abandon(file, fs.constants.O_RDONLY)
  })
  try {
    const out = await fs.promises.open(file, "w")
    try {
      if (failure === undefined) for await (const chunk of rows) await whole(out, chunk)
    } finally {
      await out.close()
    }
  } catch (error) {
    await ended
    throw failure ?? error
  }
  await ended
  if (failure !== undefined) throw failure
}
