/** What an Org's actor does between messages, and how `Overdue` wakes it. A further kind of work is one more line. */
import { Effect } from "effect"
import { ask } from "../actor/Ask.ts"
import type { Ownership } from "../actor/Ownership.ts"
import * as SealSource from "../audit/SealSource.ts"
import type { NeedsOf, Source } from "../work/Source.ts"
import * as AccountDeletion from "./AccountDeletion.ts"
import * as ExportSource from "./exports/ExportSource.ts"
import { Orgs } from "./Orgs.ts"
import type { OwnedOrg } from "./OrgState.ts"

const list = [ExportSource.source, AccountDeletion.source, SealSource.source]

export const sources: ReadonlyArray<Source<OwnedOrg, NeedsOf<(typeof list)[number]>, Ownership<OwnedOrg | undefined>>> =
  list

export const watched = {
  kind: "Org",
  sources,
  wake: Effect.map(
    Effect.service(Orgs),
    (orgs) => (id: string) => Effect.ignore(ask(orgs.of(id).Work(undefined, { discard: true }))),
  ),
}
