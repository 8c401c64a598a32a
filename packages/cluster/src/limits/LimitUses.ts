/**
 * Reads how much of each limit is used: what an Org has created, what its Tunnels transferred today, and what its
 * Identities store and have sent in the last hour. The Org's actor knows the budgets of calls (`OrgLimits`).
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import type { LimitUse } from "@svc/domain/limits/LimitApi"
import { Clock, Context, Effect, Layer } from "effect"
import { orUnavailable, Reads } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

interface UseQuotas {
  readonly identityQuota: number
  readonly mailHourly: number
  readonly mailboxBytes: number
  /** Bytes per day through the Org's Tunnels. */
  readonly tunnelTransfer: number
}

/** Number of Identities in a list. Callers can request the limits of another Identity by its name. */
const identitiesAtMost = 50

interface IdentityRow {
  readonly handle: string
  readonly bytes: bigint
  readonly sent: number
  readonly oldest: Date | null
}

const make = (quotas: UseQuotas) =>
  Effect.gen(function* () {
    const sql = yield* Reads

    /** Returns both limits of an Identity, or of several with the fullest first. */
    const ofIdentities = Effect.fnUntraced(function* (org: string, identity: IdentityId | undefined, now: number) {
      const since = new Date(now - Timing.mailHourMillis)
      const rows = yield* sql<IdentityRow>`
        select i.handle, m.bytes_used as bytes, coalesce(u.sent, 0) as sent, u.oldest
        from identity i join mailbox m on m.identity_id = i.id
        left join lateral (
          select count(*)::int as sent, min(at) as oldest from mail_use where identity_id = i.id and at > ${since}
        ) u on true
        where i.org_id = ${org} and ${
          identity === undefined ? sql`(m.bytes_used > 0 or u.sent > 0)` : sql`i.id = ${identity}`
        }
        order by greatest(m.bytes_used::float / ${quotas.mailboxBytes}::float, u.sent::float / ${quotas.mailHourly}::float) desc, i.canonical
        limit ${identitiesAtMost}`
      return rows.flatMap(({ handle, bytes, sent, oldest }): ReadonlyArray<LimitUse> => [
        {
          name: "mail_hourly",
          identity: handle,
          unit: "messages",
          used: sent,
          limit: quotas.mailHourly,
          window: "hour",
          resets_at: oldest === null ? null : new Date(oldest.getTime() + Timing.mailHourMillis),
        },
        {
          name: "mailbox_bytes",
          identity: handle,
          unit: "bytes",
          used: Number(bytes),
          limit: quotas.mailboxBytes,
          window: null,
          resets_at: null,
        },
      ])
    })

    return {
      /** Returns the limits of the Org and of all Identities that have used anything, or those of one Identity. */
      list: Effect.fn("LimitUses.list")(function* (org: string, identity: IdentityId | undefined) {
        const now = yield* Clock.currentTimeMillis
        const day = Math.floor(now / Timing.transferWindowMillis)
        const [row] = yield* sql<{ created: number; transferred: bigint }>`
          select o.identities_created as created, coalesce(t.bytes, 0) as transferred
          from org o left join tunnel_transfer t
            on t.org_id = o.id and t.day = ${new Date(day * Timing.transferWindowMillis).toISOString()}::date
          where o.id = ${org}`
        const ofOrg: ReadonlyArray<LimitUse> = [
          {
            name: "identity_quota",
            identity: null,
            unit: "identities",
            used: row?.created ?? 0,
            limit: quotas.identityQuota,
            window: null,
            resets_at: null,
          },
          {
            name: "tunnel_transfer",
            identity: null,
            unit: "bytes",
            used: Number(row?.transferred ?? 0),
            limit: quotas.tunnelTransfer,
            window: "day",
            resets_at: new Date((day + 1) * Timing.transferWindowMillis),
          },
        ]
        return [
          ...ofOrg.filter(({ name }) => identity === undefined || name === "tunnel_transfer"),
          ...(yield* ofIdentities(org, identity, now)),
        ]
      }, orUnavailable),
    }
  })

export class LimitUses extends Context.Service<LimitUses, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/limits/LimitUses",
) {
  static readonly layer = (quotas: UseQuotas) => Layer.effect(LimitUses, make(quotas))
}
