/** Identities with their Handles and sagas. The Identity's actor serves the lifecycle's messages itself. */
import { type Capability, kept, noHandlers, shortLived } from "../Capability.ts"
import { IdentityQueries } from "./IdentityQueries.ts"
import * as SagaSource from "./SagaSource.ts"

export const identity = {
  name: "identity",
  handlers: noHandlers,
  work: { identity: [SagaSource.source], org: [] },
  queries: [IdentityQueries.layer],
  exports: [{ members: ["identities.jsonl"], once: ({ found }, pieces) => pieces.lines("identities.jsonl", found) }],
  tables: {
    actor: kept("a counter under the Handle, which stays taken"),
    actor_command: shortLived,
    actor_permit: shortLived,
    handle: kept("a Handle is never given out again"),
    identity: {
      erased: { by: "identity/SagaSource.ts", statement: "delete from identity" },
      exported: "identities.jsonl",
    },
  },
} satisfies Capability
