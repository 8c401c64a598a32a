/**
 * Events as callers read them, newest first. A list stops short of transactions that are still running, so that an
 * Event which commits late with a smaller number is never skipped by a cursor (traps.md 17).
 */
import { canonical } from "@svc/domain/handles/Handle"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import type { Event, EventType } from "@svc/domain/events/Event"
import { InvalidCursor, NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer } from "effect"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../store/Database.ts"

interface Row {
  readonly seq: bigint
  readonly id: string
  readonly type: EventType
  readonly identity_id: string | null
  readonly handle: string | null
  readonly data: Record<string, unknown>
  readonly created_at: Date
}

/** A row is what `Raise` wrote; what another version wrote goes out as it is (`Event` of the domain says why). */
const view = (row: Row) =>
  ({
    id: toPublic("evt_", row.id),
    type: row.type,
    created_at: row.created_at,
    identity_id: row.identity_id,
    handle: row.handle,
    data: row.data,
  }) as Event

export interface EventFilter {
  readonly type?: EventType | undefined
  readonly handle?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/** A test of a Webhook is in no list (decisions.md "Events"). */
const hidden = "webhook.test"

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const columns = sql`seq, id, type, identity_id, handle, data, created_at`
  /** Below every transaction that may still commit. */
  const settled = sql`xid < pg_snapshot_xmin(pg_current_snapshot())`

  const position = (org: string, cursor: string | undefined) => {
    if (cursor === undefined) return Effect.succeed(undefined)
    const seq = sealing.unstamp(`events/${org}`, cursor)
    return seq === undefined
      ? Effect.fail(new InvalidCursor({ detail: "The cursor was not issued by this service." }))
      : Effect.succeed(seq)
  }

  return {
    list: Effect.fn("EventQueries.list")(function* (org: string, filter: EventFilter) {
      const before = yield* position(org, filter.cursor)
      const name = filter.handle === undefined ? undefined : canonical(filter.handle)
      let identityId: string | undefined
      if (name !== undefined) {
        const [identity] = yield* sql<{
          id: string
        }>`select id from identity where canonical = ${name} and org_id = ${org}`
        if (identity === undefined) return yield* new NotFound({ detail: "The Org has no Identity of this Handle." })
        identityId = identity.id
      }
      const rows = yield* sql<Row>`
        select ${columns} from event
        where org_id = ${org} and ${settled} and type <> ${hidden}
          ${before === undefined ? sql`` : sql`and seq < ${before}::bigint`}
          ${filter.type === undefined ? sql`` : sql`and type = ${filter.type}`}
          ${identityId === undefined ? sql`` : sql`and identity_id = ${identityId}`}
        order by seq desc limit ${filter.limit + 1}`
      const page = rows.slice(0, filter.limit)
      const last = page.at(-1)
      return {
        events: page.map(view),
        next_cursor:
          rows.length > filter.limit && last !== undefined ? sealing.stamp(`events/${org}`, String(last.seq)) : null,
      }
    }, orUnavailable),

    /** Where a stream begins: behind an Event that the client has, or behind everything there is now. */
    position: Effect.fn("EventQueries.position")(function* (org: string, lastEventId: string | undefined) {
      const uuid = lastEventId === undefined ? undefined : fromPublic("evt_", lastEventId)
      const [row] = yield* lastEventId === undefined
        ? sql<{ seq: bigint }>`select coalesce(max(seq), 0) as seq from event where ${settled}`
        : sql<{ seq: bigint }>`select seq from event where id = ${uuid ?? null}::uuid and org_id = ${org}`
      if (row === undefined) return yield* new NotFound({ detail: "There is no such Event to go on from." })
      return String(row.seq)
    }, orUnavailable),

    /** Events behind a position, oldest first, each with its own position. */
    since: Effect.fn("EventQueries.since")(function* (
      org: string,
      identityId: string | null,
      position: string,
      limit: number,
    ) {
      const rows = yield* sql<Row>`
        select ${columns} from event
        where org_id = ${org} and seq > ${position}::bigint and ${settled} and type <> ${hidden}
          ${identityId === null ? sql`` : sql`and identity_id = ${identityId}`}
        order by seq limit ${limit}`
      return rows.map((row) => ({ event: view(row), position: String(row.seq) }))
    }, orUnavailable),

    read: Effect.fn("EventQueries.read")(function* (org: string, id: string) {
      const uuid = fromPublic("evt_", id)
      const [row] =
        uuid === undefined
          ? []
          : yield* sql<Row>`select ${columns} from event where id = ${uuid} and org_id = ${org} and type <> ${hidden}`
      if (row === undefined) return yield* new NotFound({ detail: "There is no such Event." })
      return view(row)
    }, orUnavailable),
  }
})

export class EventQueries extends Context.Service<EventQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/events/EventQueries",
) {
  static readonly layer = Layer.effect(EventQueries, make)
}
