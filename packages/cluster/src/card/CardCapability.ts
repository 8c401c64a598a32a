/** The card of an Identity. */
import { Addresses } from "@svc/domain/Addresses"
import { Effect, Option } from "effect"
import { type Capability, cascades, exportedRows } from "../Capability.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { CardQueries } from "./CardQueries.ts"
import * as Cards from "./Cards.ts"

export const card = {
  name: "card",
  handlers: ({ handling }) =>
    Effect.map(Effect.all({ book: Addresses, sealing: Sealing }), (signer) => Cards.handlers(handling, signer)),
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
