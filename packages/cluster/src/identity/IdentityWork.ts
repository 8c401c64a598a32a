/** What an Identity's actor does between messages, and how `Overdue` wakes it. A further kind of work is one more line. */
import { Effect } from "effect"
import { ask } from "../actor/Ask.ts"
import type { Ownership } from "../actor/Ownership.ts"
import * as DeliveryQueue from "../webhooks/DeliveryQueue.ts"
import * as Approvals from "../mail/sending/Approvals.ts"
import * as OutboxQueue from "../mail/sending/OutboxQueue.ts"
import type { NeedsOf, Source } from "../work/Source.ts"
import { Identities } from "../actor/Identities.ts"
import * as SagaSource from "./SagaSource.ts"
import type { Owned } from "./State.ts"

const list = [SagaSource.source, DeliveryQueue.source, OutboxQueue.source, Approvals.source]

export const sources: ReadonlyArray<Source<Owned, NeedsOf<(typeof list)[number]>, Ownership<Owned | undefined>>> = list

export const watched = {
  kind: "Identity",
  sources,
  wake: Effect.map(
    Effect.service(Identities),
    (identities) => (canonical: string) =>
      Effect.ignore(ask(identities.of(canonical).Work(undefined, { discard: true }))),
  ),
}
