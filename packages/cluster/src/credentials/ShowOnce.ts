/**
 * The show-once secrets of an Identity (its Identity Key and IMAP password), sealed until they are received
 * (interface.md "Show-once secrets"), and the verifier of the IMAP password, which is kept.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { Statement } from "effect/sql"
import type { OwnIdentity } from "../actor/Write.ts"
import type { Shows } from "../saga/Step.ts"
import type { Place, Sealing } from "../sealing/Sealing.ts"
import type { Sql } from "../store/Database.ts"
import { mint, mintPassword } from "./CredentialMint.ts"

type Owner = Pick<OwnIdentity, "id" | "orgId">

export const identityKeyPlace = ({ id, orgId }: Owner): Place => ({
  table: "show_once",
  column: "identity_key",
  row: id,
  org: orgId,
})
export const imapPasswordPlace = ({ id, orgId }: Owner): Place => ({
  table: "show_once",
  column: "imap_password",
  row: id,
  org: orgId,
})
export const imapVerifierPlace = ({ id, orgId }: Owner): Place => ({
  table: "mailbox",
  column: "imap_verifier",
  row: id,
  org: orgId,
})

const encode = (text: string) => new TextEncoder().encode(text)

/** Creates an IMAP password: its verifier, and the sealed password. */
export const newImapPassword = Effect.fnUntraced(function* (sealing: Sealing["Service"], identity: OwnIdentity) {
  const password = mintPassword()
  const verifier = createHash("sha256").update(password).digest()
  return {
    verifier: yield* sealing.seal(identity.dataKey, imapVerifierPlace(identity), verifier),
    password: yield* sealing.seal(identity.dataKey, imapPasswordPlace(identity), encode(password)),
  }
}, Effect.orDie)

/** Creates an Identity Key, and the sealed key. */
export const newIdentityKey = Effect.fnUntraced(function* (sealing: Sealing["Service"], identity: OwnIdentity) {
  const minted = mint("identity_key")
  return { minted, sealed: yield* sealing.seal(identity.dataKey, identityKeyPlace(identity), encode(minted.token)) }
}, Effect.orDie)

/**
 * CTE `shown`: stores the secrets that the steps created for the rows of `gate`. Secrets that no step created stay
 * unchanged.
 */
export const shown = (sql: Sql, gate: Statement.Fragment, shows: ReadonlyArray<Shows>): Statement.Fragment => {
  const columns = shows.flatMap(({ from, columns: of }) =>
    Object.entries(of).map(([name, value]) => ({
      name,
      value: sql`(select ${value} from ${from} where identity_id = g.identity_id)`,
    })),
  )
  const made = shows.map(({ from }) => sql`exists (select from ${from} where identity_id = g.identity_id)`)
  const listed = Statement.join(", ", false)
  return sql`shown as (
    insert into show_once (identity_id, ${listed(columns.map(({ name }) => sql`${sql(name)}`))})
    select g.identity_id, ${listed(columns.map(({ value }) => value))}
    from ${gate} g where ${Statement.join(" or ", false)(made)}
    on conflict (identity_id) do update
    set ${listed(columns.map(({ name }) => sql`${sql(name)} = coalesce(excluded.${sql(name)}, show_once.${sql(name)})`))}
  )`
}
