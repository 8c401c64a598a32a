/**
 * The way of rows between the server and us: the server copies to or from a named pipe in a folder that only its account
 * and ours can enter, so that no table needs room on the disk a second time. The pipe's name comes from nobody outside.
 */
import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { Effect, type Scope } from "effect"
import { BackupFailed } from "./Manifest.ts"

/** The path of a pipe below the server's home, until the scope closes. */
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

/** Ends the wait of whoever has opened the pipe's other end, where nobody comes any more. */
const abandon = (file: string, flags: number): void => {
  try {
    fs.closeSync(fs.openSync(file, flags | fs.constants.O_NONBLOCK))
  } catch {
    // Nobody waits.
  }
}

/** What the server copies to the pipe while `copying` runs. */
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

/** A pipe may take a part of what it is given. */
const whole = async (out: fs.promises.FileHandle, chunk: Buffer): Promise<void> => {
  for (let at = 0; at < chunk.length;) at += (await out.write(chunk, at)).bytesWritten
}

/** Hands the server what it copies from the pipe while `copying` runs. */
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
