/**
 * Queries for Events. A list omits Events that a running transaction may still precede, so that a cursor never skips an Event that
 * commits late with a smaller number.
 */
import { canonical } from "@svc/domain/handles/Handle"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import type { Event, EventType } from "@svc/domain/events/Event"
import { NotFound } from "@svc/domain/problems/Problem"
import { Context, Effect, Layer } from "effect"
import type { Statement } from "effect/sql"
import * as Cursors from "../sealing/Cursors.ts"
import { Sealing } from "../sealing/Sealing.ts"
import { orUnavailable, Reads } from "../store/Database.ts"
import { settledOf } from "../store/SettledReads.ts"

interface Row {
  readonly seq: bigint
  readonly id: string
  readonly type: EventType
  readonly identity_id: string | null
  readonly handle: string | null
  readonly data: Record<string, unknown>
  readonly created_at: Date
}

/** Converts a row. Events of another version are returned unchanged (see `Event` of the domain). */
const view = (row: Row) =>
  ({
    id: toPublic("evt_", row.id),
    type: row.type,
    created_at: row.created_at,
    identity_id: row.identity_id,
    handle: row.handle,
    data: row.data,
  }) as Event

interface EventFilter {
  readonly type?: EventType | undefined
  readonly handle?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
}

/**
 * A position in the order of streams: by transaction, then by `seq`. Transactions commit in any order, so streams only return settled
 * Events, which no running transaction can precede.
 */
export interface Position {
  readonly xid: bigint
  readonly seq: bigint
}

export interface PlacedEvent {
  readonly event: Event
  readonly position: Position
}

interface EventPage {
  readonly events: ReadonlyArray<PlacedEvent>
  readonly at: Position
  readonly more: boolean
  readonly unsettled: boolean
}

/** Whether the first position comes after the second. */
export const isBehind = (a: Position, b: Position) => (a.xid === b.xid ? a.seq > b.seq : a.xid > b.xid)

interface Place {
  readonly xid: string
  readonly seq: bigint
}

const origin: Position = { xid: 0n, seq: 0n }
/** Returns the position after all transactions before this one. */
const below = (xid: string): Position => ({ xid: BigInt(xid), seq: 0n })
const placeOf = ({ xid, seq }: Place): Position => ({ xid: BigInt(xid), seq: BigInt(seq) })

/** The maximum difference between the time in an id, which another clock minted earlier, and the time of its transaction. */
const mintedEarlierMillis = 60_000

/** Returns the time of a version 7 UUID in milliseconds, or undefined for other versions. */
const timeOf = (uuid: string) => (uuid[14] === "7" ? parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16) : undefined)

const unknownPosition = new NotFound({ detail: "The Event to resume after does not exist." })

/** Test Events of Webhooks are not listed. */
const hidden = "webhook.test"

const make = Effect.gen(function* () {
  const sql = yield* Reads
  const sealing = yield* Sealing
  const columns = sql`seq, id, type, identity_id, handle, data, created_at`
  /** Whether the row is older than every running transaction. */
  const settled = sql`xid < pg_snapshot_xmin(pg_current_snapshot())`
  /** The position of an Event; an unsettled Event has the position before the running transactions. */
  const place = sql`least(xid, pg_snapshot_xmin(pg_current_snapshot()))::text as xid, case when ${settled} then seq else 0 end as seq`
  const ofIdentity = (id: string | null) => (id === null ? sql`true` : sql`identity_id = ${id}`)

  const position = (list: string, cursor: string | undefined) => {
    if (cursor === undefined) return Effect.succeed(undefined)
    const seq = sealing.unstamp(list, cursor)
    return seq === undefined ? Effect.fail(Cursors.invalidCursor()) : Effect.succeed(seq)
  }

  return {
    list: Effect.fn("EventQueries.list")(function* (org: string, filter: EventFilter) {
      const listName = Cursors.filteredList(`events/${org}`, filter)
      const before = yield* position(listName, filter.cursor)
      const name = filter.handle === undefined ? undefined : canonical(filter.handle)
      let identityId: string | undefined
      if (name !== undefined) {
        const [identity] = yield* sql<{
          id: string
        }>`select id from identity where canonical = ${name} and org_id = ${org}`
        if (identity === undefined) return yield* new NotFound({ detail: "The Org has no Identity with this Handle." })
        identityId = identity.id
      }
      const found = (which: Statement.Fragment) =>
        sql<Row & { readonly settled: boolean }>`
          select ${columns}, ${settled} as settled from event
          where ${identityId === undefined ? sql`org_id = ${org}` : sql`identity_id = ${identityId}`} and ${which} and type <> ${hidden}
            ${before === undefined ? sql`` : sql`and seq < ${before}::bigint`}
            ${filter.type === undefined ? sql`` : sql`and type = ${filter.type}`}
          order by seq desc limit ${filter.limit + 1}`
      const rows = yield* settledOf(sql, settled, found)
      const page = rows.slice(0, filter.limit)
      const last = page.at(-1)
      return {
        events: page.map(view),
        next_cursor:
          rows.length > filter.limit && last !== undefined ? sealing.stamp(listName, String(last.seq)) : null,
      }
    }, orUnavailable),

    /** The position after all settled Events. */
    horizon: orUnavailable(
      Effect.map(sql<{ horizon: string }>`select pg_snapshot_xmin(pg_current_snapshot())::text as horizon`, ([row]) =>
        below(row!.horizon),
      ),
    ),

    /**
     * Returns where a stream starts: after the Event that the client received last, or after all settled Events. `last` is the newest
     * Event of the stream before that position.
     */
    beginning: Effect.fn("EventQueries.beginning")(function* (
      org: string,
      identityId: string | null,
      lastEventId: string | undefined,
    ) {
      if (lastEventId === undefined) {
        const [row] = yield* sql<{ horizon: string; id: string | null }>`
          select pg_snapshot_xmin(pg_current_snapshot())::text as horizon, (
            select id from event
            where org_id = ${org} and ${settled} and type <> ${hidden} and ${ofIdentity(identityId)}
            order by seq desc limit 1) as id`
        return { at: below(row!.horizon), last: row!.id === null ? undefined : toPublic("evt_", row!.id) }
      }
      const uuid = fromPublic("evt_", lastEventId)
      const mintedAt = uuid === undefined ? undefined : timeOf(uuid)
      if (uuid === undefined || mintedAt === undefined) return yield* unknownPosition
      const [row] = yield* sql<{ org_id: string } & Place>`
        select org_id, ${place} from event where id = ${uuid}::uuid`
      if (row !== undefined) {
        if (row.org_id !== org) return yield* unknownPosition
        return { at: placeOf(row), last: lastEventId }
      }
      // The Event was deleted with its Identity. Start after Events that are certainly older; a repeated Event has the same id.
      const [older] = yield* sql<Place>`
        select ${place} from event where org_id = ${org} and created_at < ${new Date(mintedAt - mintedEarlierMillis)}
        order by xid desc, seq desc limit 1`
      return { at: older === undefined ? origin : placeOf(older), last: lastEventId }
    }, orUnavailable),

    /**
     * Returns the settled Events after a position, in the order of streams. `at` is the position after all Events that were read.
     * `more`: there may be further settled Events. `unsettled`: some Events wait for running transactions.
     */
    since: Effect.fn("EventQueries.since")(function* (
      org: string,
      identityId: string | null,
      position: Position,
      limit: number,
    ) {
      const rows = yield* sql<
        { horizon: string } & ((Row & Place & { readonly settled: boolean }) | { readonly id: null })
      >`
        select now.xmin::text as horizon, found.* from (select pg_snapshot_xmin(pg_current_snapshot()) as xmin) now
        left join lateral (
          select ${columns}, xid::text as xid, xid < now.xmin as settled from event
          where org_id = ${org} and (xid, seq) > (${String(position.xid)}::xid8, ${position.seq}::bigint)
            and type <> ${hidden} and ${ofIdentity(identityId)}
          order by event.xid, seq limit ${limit}) found on true
        order by found.xid::xid8, found.seq`
      const events: Array<PlacedEvent> = []
      for (const row of rows) {
        if (row.id !== null && row.settled) {
          events.push({ event: view(row), position: { xid: BigInt(row.xid), seq: BigInt(row.seq) } })
        }
      }
      const more = events.length === limit
      const horizon = below(rows[0]!.horizon)
      const page: EventPage = {
        events,
        at: more ? events[limit - 1]!.position : isBehind(horizon, position) ? horizon : position,
        more,
        unsettled: !more && rows.length > events.length && rows.at(-1)!.id !== null,
      }
      return page
    }, orUnavailable),

    read: Effect.fn("EventQueries.read")(function* (org: string, id: string) {
      const uuid = fromPublic("evt_", id)
      const [row] =
        uuid === undefined
          ? []
          : yield* sql<Row>`select ${columns} from event where id = ${uuid} and org_id = ${org} and type <> ${hidden}`
      if (row === undefined) return yield* new NotFound({ detail: "The Event does not exist." })
      return view(row)
    }, orUnavailable),
  }
})

export class EventQueries extends Context.Service<EventQueries, Effect.Success<typeof make>>()(
  "@svc/cluster/events/EventQueries",
) {
  static readonly layer = Layer.effect(EventQueries, make)
}
