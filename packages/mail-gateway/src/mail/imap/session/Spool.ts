/**
 * Where a large message stays while it is appended: its bytes are put aside as they come, so that a session holds none of
 * them however slowly they come, and are read when the message is stored.
 */
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect } from "effect"

/** A message of so many bytes, read when it is its turn. */
export interface Brought {
  readonly size: number
  readonly read: Effect.Effect<Buffer, Unavailable>
}

export interface Spool {
  readonly write: (bytes: Buffer) => Effect.Effect<void, Unavailable>
  readonly read: Effect.Effect<Buffer, Unavailable>
  readonly close: Effect.Effect<void>
}

export interface Spools {
  /** Bytes that may still be put aside. */
  readonly room: () => number
  readonly open: (size: number) => Effect.Effect<Spool, Unavailable>
}

const lost = new Unavailable({ detail: "The message could not be put aside.", retry_after_seconds: 5 })

/** What one session has put aside: of the literal that came last. */
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
    /** A portion of a literal of `of` bytes; the first one begins it. What cannot be kept is read and forgotten. */
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
    brought: (): Brought => ({
      size,
      read: Effect.suspend(() => (spool === undefined || broken ? Effect.fail(lost) : spool.read)),
    }),
  }
}

/** In memory, where nobody minds. */
export const inMemory: Spools = {
  room: () => Infinity,
  open: () =>
    Effect.sync(() => {
      const pieces: Array<Buffer> = []
      return {
        write: (bytes) => Effect.sync(() => void pieces.push(Buffer.from(bytes))),
        read: Effect.sync(() => Buffer.concat(pieces)),
        close: Effect.void,
      }
    }),
}
