/** The credentials of an Identity, which are shown once. */
import { Effect } from "effect"
import { type Capability, cascades, credential } from "../Capability.ts"
import { Sealing } from "../sealing/Sealing.ts"
import * as IdentityKeys from "./IdentityKeys.ts"

export const credentials = {
  name: "credentials",
  handlers: ({ handling }) => Effect.map(Sealing, (sealing) => IdentityKeys.handlers(handling, sealing)),
  work: { identity: [], org: [] },
  queries: [],
  exports: [],
  tables: { show_once: cascades(credential) },
} satisfies Capability
