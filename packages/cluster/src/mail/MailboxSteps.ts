/** The saga step that creates the Mailbox of an Identity. `identity/Teardown` removes it in batches. */
import { Effect } from "effect"
import { newImapPassword } from "../credentials/ShowOnce.ts"
import { partOf, type Shared, type Step } from "../saga/Step.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { ownFolders, provisioned } from "./folders/Folders.ts"

interface NewMailbox {
  readonly uidValidity: number
  readonly verifier: Uint8Array
  readonly password: Uint8Array
}

const mailbox: Shared<NewMailbox> = {
  rows: (sql, gate, values) => sql`
    boxed as materialized (
      select g.identity_id, g.at, v.* from ${gate} g join unnest(
        ${values.map(({ uidValidity }) => uidValidity)}::int[], ${values.map(({ verifier }) => verifier)}::bytea[],
        ${values.map(({ password }) => password)}::bytea[]
      ) with ordinality as v (uid_validity, verifier, password, n) on v.n = g.n
    ),
    box as (
      insert into mailbox (identity_id, uid_validity, imap_verifier, created_at)
      select identity_id, uid_validity, verifier, at from boxed
      on conflict (identity_id) do nothing
      returning identity_id, uid_validity, created_at
    ),
    ${provisioned(sql, sql`box.created_at`)}`,
  shows: (sql) => ({
    from: sql`box join boxed using (identity_id)`,
    columns: { imap_password: sql`password` },
  }),
}

export const provision = (sealing: Sealing["Service"]): Step =>
  Effect.fnUntraced(function* (subject) {
    const { identity, at } = subject
    const uidValidity = Math.floor(at.getTime() / 1000) + ownFolders
    return partOf(subject, mailbox, { uidValidity, ...(yield* newImapPassword(sealing, identity)) })
  })
