/** The periodic work of Connector actors, and how `Overdue` wakes them. */
import { Effect } from "effect"
import { ask } from "../../actor/Ask.ts"
import type { Backlog } from "../../work/Source.ts"
import { Connectors } from "../Connectors.ts"
import * as PollSource from "./PollSource.ts"
import * as ProfileChecks from "./ProfileChecks.ts"
import * as Revocations from "../credentials/Revocations.ts"

const sources: ReadonlyArray<Backlog> = [
  PollSource.source,
  ProfileChecks.source,
  { name: "revocations", overdue: Revocations.overdue },
]

export const watched = {
  kind: "Connector",
  sources,
  wake: Effect.map(Effect.service(Connectors), (connectors) => (id: string) => {
    const slash = id.lastIndexOf("/")
    const actor = connectors.of(id.slice(0, slash), id.slice(slash + 1))
    return Effect.ignore(ask(actor.Work(undefined, { discard: true })))
  }),
}
