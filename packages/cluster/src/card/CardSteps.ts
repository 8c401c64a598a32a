/** The A2A Card's steps in an Identity's sagas. */
import { Effect } from "effect"
import { partOf, type Shared, type Step } from "../saga/Step.ts"

/**
 * Initial values of the editable fields except the name; `interfaces` null stands for the Identity's own Tunnel
 * (interface.md "A2A Card").
 */
const defaults = JSON.stringify({
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

const card: Shared<null> = {
  rows: (sql, gate) => sql`carded as (
    insert into card (identity_id, fields, version, updated_at)
    select identity_id, ${defaults}::jsonb || jsonb_build_object('name', handle), 1, at from ${gate}
    on conflict (identity_id) do nothing
  )`,
}

export const provision: Step = (subject) => Effect.succeed(partOf(subject, card, null))

export const teardown: Step = ({ sql, identity }) =>
  Effect.succeed({
    rows: sql`removed as (delete from card where identity_id = ${identity.id} and exists (select from fence))`,
  })
