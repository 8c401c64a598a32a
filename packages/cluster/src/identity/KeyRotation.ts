/** New credentials for an Identity that has some: the present Identity Key and IMAP password stop working in the same commit. */
import { createHash } from "node:crypto"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { raiseForOrg } from "../events/Raise.ts"
import { Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import { mint, mintPassword } from "../credentials/Minting.ts"
import { committed, type Owned } from "./Ownership.ts"
import { identityKeyPlace, imapPasswordPlace, imapVerifierPlace } from "./Provisioning.ts"

export const rotate = Effect.fnUntraced(function* (sql: Sql, identity: Owned, fence: Statement.Fragment, at: Date) {
  const sealing = yield* Sealing
  const key = mint("identity_key")
  const keyId = yield* makeUuidV7
  const password = mintPassword()
  const encode = (text: string) => new TextEncoder().encode(text)
  const verifier = createHash("sha256").update(password).digest()
  const sealedVerifier = yield* sealing.seal(identity.dataKey, imapVerifierPlace(identity), verifier)
  const sealedPassword = yield* sealing.seal(identity.dataKey, imapPasswordPlace(identity), encode(password))
  const sealedKey = yield* sealing.seal(identity.dataKey, identityKeyPlace(identity), encode(key.token))
  const about = { scope: "identity", identity_id: identity.id, handle: identity.handle }
  const [row] = yield* sql<{ owned: boolean }>`
    with ${fence},
    revoked as (
      update api_key set revoked_at = ${at}
      where identity_id = ${identity.id} and revoked_at is null and exists (select from fence) returning id, name
    ),
    told as (
      insert into event (id, org_id, type, data, created_at)
      select uuidv7(), ${identity.orgId}::uuid, 'api_key.revoked',
             ${JSON.stringify(about)}::jsonb || jsonb_build_object('key_id', id, 'name', name), ${at}::timestamptz
      from revoked
    ),
    minted as (
      insert into api_key (id, org_id, identity_id, name, token_prefix, token_hash, created_at)
      select ${keyId}::uuid, ${identity.orgId}::uuid, ${identity.id}::uuid, ${identity.handle}::text,
             ${key.prefix}::text, ${key.hash}::bytea, ${at}::timestamptz
      from fence returning id
    ),
    box as (update mailbox set imap_verifier = ${sealedVerifier}::bytea where identity_id = ${identity.id} and exists (select from fence)),
    shown as (
      insert into show_once (identity_id, key_id, identity_key, imap_password, expires_at)
      select ${identity.id}::uuid, id, ${sealedKey}::bytea, ${sealedPassword}::bytea,
             ${new Date(at.getTime() + Timing.showOnceMillis)}::timestamptz
      from minted
      on conflict (identity_id) do update
      set key_id = excluded.key_id, identity_key = excluded.identity_key,
          imap_password = excluded.imap_password, expires_at = excluded.expires_at
    ),
    ${raiseForOrg(sql, "minted", {
      eventId: yield* makeUuidV7,
      type: "api_key.created",
      org: identity.orgId,
      data: { ...about, key_id: keyId, name: identity.handle },
      at,
    })}
    select exists (select from fence) as owned`
  return committed(row, undefined)
})
