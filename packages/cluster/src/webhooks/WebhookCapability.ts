/** Webhooks of an Identity and the deliveries of its Events. */
import { Effect } from "effect"
import { type Capability, cascades, credential, exportedRows, shortLived } from "../Capability.ts"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import * as DeliveryQueue from "./DeliveryQueue.ts"
import { WebhookQueries } from "./WebhookQueries.ts"
import * as Webhooks from "./Webhooks.ts"

export const webhook = {
  name: "webhook",
  handlers: ({ handling }) => Effect.map(Sealing, (sealing) => Webhooks.handlers(handling, sealing)),
  work: { identity: [DeliveryQueue.source], org: [] },
  queries: [WebhookQueries.layer],
  exports: [
    exportedRows(
      "webhooks.jsonl",
      Effect.fnUntraced(function* ({ id }) {
        const webhooks = yield* WebhookQueries
        return yield* Cursors.all((request) => webhooks.list(id, request))
      }),
    ),
  ],
  tables: {
    delivery: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from delivery where id in (
            select d.id from webhook w join delivery d on d.webhook_id = w.id where w.identity_id = ${id} limit ${limit}) returning id)
          select count(*)::int as n from gone`,
      },
      exported: { not: "the outcome of Events that are exported" },
    },
    removed_webhook: shortLived,
    signing_secret: cascades(credential),
    webhook: cascades("webhooks.jsonl"),
  },
} satisfies Capability
