/** The card of an Identity. */
import { Effect, Option } from "effect"
import { type Capability, cascades, exportedRows } from "../Capability.ts"
import { CardQueries } from "./CardQueries.ts"
import * as Cards from "./Cards.ts"

export const card = {
  name: "card",
  handlers: ({ handling }) => Effect.succeed(Cards.handlers(handling)),
  work: { identity: [], org: [] },
  queries: [CardQueries.layer],
  exports: [
    exportedRows(
      "cards.jsonl",
      Effect.fnUntraced(function* ({ id }) {
        const found = yield* Effect.option((yield* CardQueries).read(id))
        return Option.match(found, { onNone: () => [], onSome: (value) => [value.card] })
      }),
    ),
  ],
  tables: { card: cascades("cards.jsonl") },
} satisfies Capability
