/** Narrows body searches with the search segments of the Mailbox (`cluster/mail/search`). */
import * as Grams from "@svc/cluster/mail/search/Grams"
import * as Segments from "@svc/cluster/mail/search/Segments"
import type { Reads } from "@svc/cluster/store/Database"
import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"

/** Segments per query. */
const atOnce = 64

/** Above every possible UID. */
const end = 0x7fffffff

export const make = (sql: Reads["Service"]) => {
  const segments = Segments.make(sql)

  /** Returns a condition on `message m` for each of the folded texts that has a gram. */
  return Effect.fnUntraced(function* (
    identityId: string,
    texts: ReadonlyArray<string>,
  ): Effect.fn.Return<(text: string) => Statement.Fragment | undefined, SqlError.SqlError> {
    const conditions = new Map<string, Statement.Fragment>()
    const narrowing = texts.filter((text) => Grams.gramsOf([text]).length > 0)
    if (narrowing.length === 0) return () => undefined
    const built = yield* segments.built(identityId)
    for (const text of new Set(narrowing)) {
      const wanted = Grams.gramsOf([text])
      const uids: Array<number> = []
      const parts: Array<Statement.Fragment> = []
      for (const { first, last, isBuilt } of Segments.spans(built, 0, end)) {
        if (!isBuilt) {
          parts.push(sql`(m.uid >= ${first}::int and m.uid <= ${last}::int)`)
          continue
        }
        for (let next = last; next >= first;) {
          const to = Math.max(first, Segments.firstUid(Segments.of(next) - atOnce + 1))
          uids.push(...(yield* segments.candidates(identityId, wanted, to, next)))
          next = to - 1
        }
      }
      conditions.set(text, sql`(${sql.or([sql`m.uid = any(${uids}::int[])`, ...parts])})`)
    }
    return (text: string) => conditions.get(text)
  })
}
