/**
 * Stores large incoming messages in temporary files. A file is unlinked right after it is opened, so no other process
 * can find it and a crash leaves nothing behind. The total size is limited; each file reserves its size in advance.
 */
import { randomBytes } from "node:crypto"
import * as fs from "node:fs/promises"
import * as os from "node:os"
import * as path from "node:path"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Spools } from "../session/Spool.ts"

const attempt = <A>(work: () => Promise<A>) =>
  Effect.tryPromise({
    try: work,
    catch: () => new Unavailable({ detail: "The message could not be stored temporarily.", retry_after_seconds: 5 }),
  })

const full = new Unavailable({ detail: "Too many large messages are being received.", retry_after_seconds: 30 })

/** Makes spools for at most `most` bytes in all sessions. */
export const make = (most: number): Spools => {
  let taken = 0
  return {
    room: () => most - taken,
    open: Effect.fnUntraced(function* (size: number) {
      if (taken + size > most) return yield* full
      taken += size
      let isOpen = true
      const release = () => {
        isOpen = false
        taken -= size
      }
      const name = path.join(os.tmpdir(), `svc-append-${randomBytes(12).toString("hex")}`)
      const file = yield* attempt(async () => {
        const handle = await fs.open(name, "wx+", 0o600)
        await fs.unlink(name)
        return handle
      }).pipe(Effect.tapError(() => Effect.sync(release)))
      let written = 0
      return {
        write: (bytes) =>
          attempt(async () => {
            await file.appendFile(bytes)
            written += bytes.length
          }),
        read: attempt(async () => {
          const { buffer, bytesRead } = await file.read(Buffer.allocUnsafeSlow(written), 0, written, 0)
          if (bytesRead < written) throw new Error("The file is shorter than it was written")
          return buffer
        }),
        close: Effect.suspend(() => {
          if (!isOpen) return Effect.void
          release()
          return Effect.ignore(attempt(() => file.close()))
        }),
      }
    }),
  }
}
