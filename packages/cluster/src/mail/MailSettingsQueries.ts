/** Reads Allowed Recipients, the AI disclosure and the mail status. */
import type { Language } from "@svc/domain/account/Account"
import type { IdentityId, IdentityRef } from "@svc/domain/IdentityRef"
import {
  type AiDisclosure,
  type AllowedRecipient,
  defaultDisclosure,
  disclosureHtml,
  type MailStatus,
} from "@svc/domain/mail/MailSettings"
import * as PersonName from "@svc/domain/mail/PersonName"
import type { PageRequest } from "@svc/domain/Paging"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { inOrder } from "../store/Batcher.ts"
import { orUnavailable, Reads, together } from "../store/Database.ts"

interface BoxRow {
  readonly handle: string
  readonly name: string | null
  readonly switch_version: number
  readonly stopped_at: Date | null
  readonly stopped_by: MailStatus["stopped_by"]
  readonly stop_reason: string | null
  readonly approval: MailStatus["approval"]
  readonly tag_folders: boolean
  readonly language: Language
  readonly disclosure_version: number
  readonly disclosure: string | null
  readonly disclosure_updated_at: Date | null
}

interface RecipientRow extends Omit<AllowedRecipient, "suppressed"> {
  readonly suppressed_at: Date | null
  readonly suppression: string | null
}

const recipientView = ({ suppressed_at, suppression, ...row }: RecipientRow): AllowedRecipient => ({
  ...row,
  suppressed: suppressed_at === null ? null : { since: suppressed_at, reason: suppression ?? "" },
})

const disclosureOf = ({ disclosure, handle, language }: BoxRow) => disclosure ?? defaultDisclosure(handle, language)

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing

  /** Reads settings of several Identities in one statement: each sent message needs them. */
  const boxes = yield* together((identityIds: ReadonlyArray<IdentityId>) =>
    Effect.map(
      sql<BoxRow & { readonly requested: number }>`
        select requested.n::int as requested, i.handle, c.fields ->> 'name' as name, m.switch_version, m.stopped_at, m.stopped_by,
               m.stop_reason, m.approval, m.tag_folders, o.language, m.disclosure_version, m.disclosure,
               m.disclosure_updated_at
        from unnest(${identityIds}::uuid[]) with ordinality as requested (id, n)
        join identity i on i.id = requested.id join mailbox m on m.identity_id = i.id join org o on o.id = i.org_id
        left join card c on c.identity_id = i.id`,
      inOrder(identityIds),
    ),
  )

  const box = Effect.fnUntraced(function* (identityId: IdentityId) {
    const row = yield* boxes(identityId)
    if (row === undefined) return yield* new NotFound({ detail: "The Identity has no Mailbox." })
    return row
  })

  /** Lists Allowed Recipients. The account holder's verified address is allowed without a row in the table. */
  const recipients = (
    identityId: IdentityId,
    which: (address: Statement.Fragment) => Statement.Fragment,
    atMost: number,
  ) =>
    Effect.map(
      sql<RecipientRow>`
      select address, reason, coalesce(expires_at <= now(), false) as expired, created_at, expires_at,
             suppressed_at, suppression from (
        (select r.address, r.reason, r.created_at, r.expires_at, r.suppressed_at, r.suppression from allowed_recipient r
         join identity i on i.id = r.identity_id join org o on o.id = i.org_id
         where r.identity_id = ${identityId} and not (r.address = o.email and o.email_verified_at is not null)
           and ${which(sql`r.address`)}
         order by r.address limit ${atMost})
        union all
        select o.email, 'account_owner', greatest(i.created_at, o.email_verified_at), null, r.suppressed_at, r.suppression
        from identity i join org o on o.id = i.org_id
        left join allowed_recipient r on r.identity_id = i.id and r.address = o.email
        where i.id = ${identityId} and o.email_verified_at is not null and ${which(sql`o.email`)}
      ) all_of_them order by address limit ${atMost}`,
      (rows) => rows.map(recipientView),
    )

  return {
    /** Returns Allowed Recipients ordered by address, limited to addresses that start with `beginning`. */
    recipients: (identityId: IdentityId, request: PageRequest, beginning = "") =>
      orUnavailable(
        Cursors.page(
          sealing,
          Cursors.filteredList(`recipients/${identityId}`, beginning === "" ? {} : { beginning }),
          request,
          (behind, atMost) =>
            recipients(
              identityId,
              (address) =>
                sql`starts_with(${address}, ${beginning.toLowerCase()}::text) ${behind === undefined ? sql`` : sql`and ${address} > ${behind}`}`,
              atMost,
            ),
          ({ address }) => address,
          (found) => found,
        ),
      ),
    recipient: (identityId: IdentityId, wanted: string) =>
      orUnavailable(
        Effect.map(
          recipients(identityId, (address) => sql`${address} = ${wanted}`, 1),
          ([found]) => found,
        ),
      ),
    /** Returns the Handles of an Org's Identities whose mail is stopped; only those in `within` if it is given. */
    stopped: (org: string, within: ReadonlyArray<IdentityRef> | null) =>
      orUnavailable(
        Effect.map(
          sql<{ handle: string }>`
            select i.handle from identity i join mailbox m on m.identity_id = i.id
            where i.org_id = ${org} and m.stopped_at is not null
            ${within === null ? sql`` : sql`and i.id = any(${within.map(({ id }) => id)}::uuid[])`} order by i.id`,
          (rows) => rows.map(({ handle }) => handle),
        ),
      ),
    disclosure: (identityId: IdentityId) =>
      Effect.map(box(identityId), (row) => {
        const text = disclosureOf(row)
        const disclosure: AiDisclosure = {
          text,
          html: disclosureHtml(text),
          overridden: row.disclosure !== null,
          updated_at: row.disclosure_updated_at,
        }
        return { disclosure, version: row.disclosure_version }
      }),
    /** Returns the author data of a message. The name is that of the card, unless it only repeats the Handle. */
    author: (identityId: IdentityId) =>
      Effect.map(box(identityId), (row) => ({
        name: row.name === row.handle ? null : PersonName.shown(row.name),
        disclosure: disclosureOf(row),
        language: row.language,
      })),
    status: (identityId: IdentityId) =>
      Effect.map(box(identityId), (row) => {
        const status: MailStatus = {
          outgoing: row.stopped_at === null ? "active" : "stopped",
          stopped_at: row.stopped_at,
          stopped_by: row.stopped_by,
          reason: row.stop_reason,
          approval: row.approval,
          tag_folders: row.tag_folders,
        }
        return { status, version: row.switch_version }
      }),
  }
})

export class MailSettingsQueries extends Context.Service<MailSettingsQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/mail/MailSettingsQueries",
) {
  static readonly layer = Layer.effect(MailSettingsQueries, make)
}
