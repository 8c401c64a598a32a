/** The A2A Card in an Identity's sagas. */
import { Effect } from "effect"
import type { Step } from "../saga/Step.ts"

/** Editable fields at birth; `interfaces` null stands for the Identity's own Tunnel (interface.md "A2A Card"). */
const defaults = (handle: string) => ({
  name: handle,
  description: "",
  version: "1.0.0",
  documentation_url: null,
  icon_url: null,
  provider: null,
  capabilities: { streaming: false, push_notifications: false, extended_agent_card: false },
  default_input_modes: ["text/plain"],
  default_output_modes: ["text/plain"],
  interfaces: null,
  skills: [],
})

export const provision: Step = ({ sql, identity, at, gate }) =>
  Effect.succeed({
    rows: sql`carded as (
      insert into card (identity_id, fields, version, updated_at)
      select ${identity.id}::uuid, ${JSON.stringify(defaults(identity.handle))}::jsonb, 1, ${at}::timestamptz from ${gate}
      on conflict (identity_id) do nothing
    )`,
  })

export const teardown: Step = ({ sql, identity }) =>
  Effect.succeed({
    rows: sql`removed as (delete from card where identity_id = ${identity.id} and exists (select from fence))`,
  })
