/** The Mailbox in an Identity's sagas. Its removal goes in batches and is the teardown's own. */
import { Effect } from "effect"
import { newImapPassword } from "../credentials/ShowOnce.ts"
import type { Step } from "../saga/Step.ts"
import type { Sealing } from "../sealing/Sealing.ts"
import { ownFolders, provisioned } from "./folders/Folders.ts"

export const provision = (sealing: Sealing["Service"]): Step =>
  Effect.fnUntraced(function* ({ sql, identity, at, gate }) {
    const { verifier, password } = yield* newImapPassword(sealing, identity)
    return {
      rows: sql`
        box as (
          insert into mailbox (identity_id, uid_validity, imap_verifier, created_at)
          select ${identity.id}::uuid, ${Math.floor(at.getTime() / 1000) + ownFolders}::int, ${verifier}::bytea, ${at}::timestamptz
          from ${gate}
          on conflict (identity_id) do nothing
          returning identity_id, uid_validity
        ),
        ${provisioned(sql, at)}`,
      shows: { from: "box", columns: { imap_password: sql`${password}::bytea` } },
    }
  })
