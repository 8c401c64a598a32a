/**
 * The rules for outgoing mail: mail status, Allowed Recipients and hourly limit. Only the actor writes all three, so
 * what it reads stays valid until it commits under the same fence.
 */
import { sameAs } from "@svc/domain/mail/AddrSpec"
import type { Recipient } from "@svc/domain/mail/SendingProtocol"
import { MailPaused, RateLimited, RecipientNotAllowed } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Statement } from "effect/sql"
import { commit, type Write } from "../../actor/Write.ts"
import { raise } from "../../events/Raise.ts"
import type { Sql } from "../../store/Database.ts"
import { Timing } from "../../Timing.ts"

type Reason = "not_allowed" | "expired" | "suppressed"

/** A recipient that mail may not be sent to. */
export interface Refused {
  readonly address: string
  readonly reason: Reason
}

/** The Identity and time of a check, as values or as columns of a statement. */
interface PolicySubject {
  readonly id: string | Statement.Fragment
  readonly orgId: string | Statement.Fragment
  readonly at: Date | Statement.Fragment
}

/**
 * Expression for the refused addresses ({@link Refused}) among `addresses` (a relation of one column, lower case). An
 * expired or suppressed Allowed Recipient is refused, whatever created it.
 */
export const refusedOf = (sql: Sql, { id, orgId, at }: PolicySubject, addresses: Statement.Fragment) => sql`(
  select coalesce(jsonb_agg(jsonb_build_object('address', address, 'reason', reason)), '[]') from (
    select given.address,
      case
        when r.suppressed_at is not null then 'suppressed'
        when owner.id is not null then null
        when r.address is null then 'not_allowed'
        when r.expires_at <= ${at}::timestamptz then 'expired'
      end as reason
    from ${addresses} as given (address)
    left join allowed_recipient r on r.identity_id = ${id}::uuid and r.address = given.address
    left join org owner on owner.id = ${orgId}::uuid and owner.email = given.address and owner.email_verified_at is not null
  ) judged where reason is not null)`

const words: { readonly [R in Reason]: string } = {
  not_allowed: "is not an Allowed Recipient",
  expired: "is an Allowed Recipient that has lapsed",
  suppressed: "is suppressed, since mail to it came back",
}

/** Fails if any recipient is refused ({@link refusedOf}) and raises an Event; then the message is sent to nobody. */
export const judgeRecipients = Effect.fnUntraced(function* (
  write: Write,
  subject: string,
  recipients: ReadonlyArray<Recipient>,
  found: ReadonlyArray<Refused>,
) {
  if (found.length === 0) return
  const refused = new Map(found.map(({ address, reason }) => [address, reason]))
  yield* commit(
    write,
    raise(write, "fence", "email.recipient_blocked", {
      subject,
      recipients: [...refused].map(([address, reason]) => ({ address, reason })),
    }),
    { raises: true },
  )
  const errors = recipients.flatMap(({ address, path }) => {
    const reason = refused.get(sameAs(address))
    return reason === undefined ? [] : [{ path, message: `${address} ${words[reason]}` }]
  })
  return yield* new RecipientNotAllowed({
    detail: `Nothing was sent: ${errors
      .slice(0, 5)
      .map(({ message }) => message)
      .join("; ")}${errors.length > 5 ? "; and others" : ""}.`,
    errors,
  })
})

export const paused = (reason: string | null) =>
  new MailPaused({ detail: `Outgoing mail of the Identity is stopped${reason === null ? "" : `: ${reason}`}.` })

export interface Use {
  readonly used: number
  /** When the oldest message within the hour was sent. */
  readonly oldest: Date | null
}

/** Columns for the current use of the hourly limit. */
export const useOf = (sql: Sql, { id, at }: Pick<PolicySubject, "id" | "at">) => {
  const counting = sql`from mail_use where identity_id = ${id}::uuid
    and at > ${at}::timestamptz - make_interval(secs => ${Timing.mailHourMillis / 1000})`
  return sql`(select count(*)::int ${counting}) as used, (select min(at) ${counting}) as oldest`
}

export const overHour = (quota: number, { oldest }: Use, at: Date) => {
  const seconds =
    oldest === null
      ? Timing.mailHourMillis / 1000
      : Math.ceil((oldest.getTime() + Timing.mailHourMillis - at.getTime()) / 1000)
  return new RateLimited({
    detail: `The Identity has reached its limit of ${quota} messages per hour.`,
    retry_after_seconds: seconds,
  })
}
