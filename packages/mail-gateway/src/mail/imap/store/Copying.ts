/**
 * COPY and MOVE through the actor. A MOVE is atomic per message (RFC 6851 section 3.3), so it runs in batches. A COPY
 * is atomic as a whole (RFC 9051 section 6.4.7), so it is one commit, however many messages it copies.
 */
import { limits, type Placement } from "@svc/domain/mail/FolderProtocol"
import { Effect } from "effect"
import type * as Sets from "../protocol/Sets.ts"
import type { Copied } from "../session/Store.ts"

/** Splits ranges into batches of as many messages as one commit changes. */
export const portions = (ranges: Sets.Ranges): ReadonlyArray<Sets.Ranges> => {
  const out: Array<Array<Sets.Range>> = []
  let room = 0
  for (const [first, last] of ranges) {
    for (let from = first; from <= last;) {
      if (room === 0) {
        out.push([])
        room = limits.messages
      }
      const to = Math.min(last, from + room - 1)
      out.at(-1)!.push([from, to])
      room -= to - from + 1
      from = to + 1
    }
  }
  return out
}

/** Copies or moves messages. Each call of `ask` is a separate command to the actor. */
export const copy = Effect.fnUntraced(function* <E>(
  ask: (uids: Sets.Ranges, whole: boolean) => Effect.Effect<Placement, E>,
  uids: Sets.Ranges,
  move: boolean,
) {
  const from: Array<number> = []
  const to: Array<number> = []
  let uidValidity = 0
  const take = (placed: Placement) => {
    uidValidity = placed.uid_validity
    for (const uid of placed.from) from.push(uid)
    for (const uid of placed.to) to.push(uid)
    if (placed.whole === undefined) return
    let next = placed.whole.first
    for (const [first, last] of placed.whole.from) {
      for (let uid = first; uid <= last; uid++) {
        from.push(uid)
        if (next !== null) to.push(next++)
      }
    }
  }
  if (move) for (const portion of portions(uids)) take(yield* ask(portion, false))
  else if (uids.length > 0) take(yield* ask(uids, true))
  const copied: Copied = { uidValidity, from, to }
  return copied
})
