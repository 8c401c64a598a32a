/**
 * Temporary storage of a large message during APPEND. Its bytes are spooled as they arrive, so that a slow upload holds
 * no memory, and read when the message is stored.
 */
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"

/** An uploaded message, read when it is stored. */
export interface Upload {
  readonly size: number
  readonly read: Effect.Effect<Buffer, Unavailable>
}

interface Spool {
  readonly write: (bytes: Buffer) => Effect.Effect<void, Unavailable>
  readonly read: Effect.Effect<Buffer, Unavailable>
  readonly close: Effect.Effect<void>
}

export interface Spools {
  /** Bytes of free space. */
  readonly room: () => number
  readonly open: (size: number) => Effect.Effect<Spool, Unavailable>
}

const lost = new Unavailable({ detail: "The message could not be stored temporarily.", retry_after_seconds: 5 })

/** The spooled literal of a session: only the last one. */
export const aside = (spools: Spools) => {
  let spool: Spool | undefined
  let size = 0
  let broken = false
  const clear = Effect.suspend(() => {
    const before = spool
    spool = undefined
    broken = false
    return before === undefined ? Effect.void : before.close
  })
  return {
    clear,
    /**
     * Spools a chunk of a literal of `of` bytes; `begins` marks the first chunk. Bytes that cannot be stored are
     * discarded.
     */
    take: Effect.fnUntraced(function* (bytes: Buffer, of: number, begins: boolean) {
      if (begins) {
        yield* clear
        size = of
        spool = yield* Effect.orElseSucceed(spools.open(of), () => undefined)
      }
      if (spool === undefined || broken) return
      const written = yield* Effect.option(spool.write(bytes))
      broken = written._tag === "None"
    }),
    brought: (): Upload => ({
      size,
      read: Effect.suspend(() => (spool === undefined || broken ? Effect.fail(lost) : spool.read)),
    }),
  }
}
