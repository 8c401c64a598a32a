/** The outcome of an attempt to send while the store does not record it. */
import { ask } from "@svc/cluster/actor/Ask"
import { Writes } from "@svc/cluster/store/Database"
import { Timing } from "@svc/cluster/Timing"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { actors, waitUntil } from "../harness/Actors.ts"
import { acceptAll, recordingTransport } from "../harness/Transport.ts"
import { correspondent } from "./Correspondent.ts"

const transport = recordingTransport()

/** Lets the store refuse the outcome for a recipient by an error until it accepts it again. */
const refuseOutcome = Effect.fnUntraced(function* (address: string, state: string) {
  const sql = yield* Writes
  // A rollback does not undo `nextval`, so the sequence shows that an outcome was refused.
  yield* sql`create sequence refused_outcomes`
  yield* sql.unsafe(`
    create function refuse_outcome() returns trigger language plpgsql as $$
    begin raise exception 'no outcome %', nextval('refused_outcomes') using errcode = '${state}'; end $$`)
  yield* sql.unsafe(`
    create trigger refuse_outcome before update on outgoing_recipient for each row
    when (old.address = '${address}') execute function refuse_outcome()`)
  const refused = sql<{ is_called: boolean }>`select is_called from refused_outcomes`
  return {
    isRefused: waitUntil(refused, ([sequence]) => sequence!.is_called, 0),
    isAccepted: Effect.andThen(sql`drop function refuse_outcome cascade`, sql`drop sequence refused_outcomes`),
  }
})

layer(actors({ transport }))("the outcome of an attempt", (it) => {
  it.effect("is recorded, and the message not repeated, when a store that was away for seconds is back", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const ada = yield* correspondent("adaaway", ["b@away.example"])
      const outcome = yield* refuseOutcome("b@away.example", "57P01")
      yield* ada.send({ to: ["b@away.example"], text: "Hello." })
      yield* outcome.isRefused
      yield* outcome.isAccepted
      yield* waitUntil(ada.deliveries, ([delivery]) => delivery?.status === "sent", Timing.recordPause)
      yield* TestClock.adjust(Timing.outboxLeaseMillis)
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      expect(yield* ada.rows).toMatchObject([{ attempts: 1, leased: false, next: null }])
      expect(transport.transmissions.filter(({ domain }) => domain === "away.example")).toHaveLength(1)
    }),
  )

  it.effect("that cannot be recorded has the message sent again with the same bytes after its lease", () =>
    Effect.gen(function* () {
      transport.answering.outside = acceptAll
      const ada = yield* correspondent("adaunrecorded", ["b@unrecorded.example"])
      const outcome = yield* refuseOutcome("b@unrecorded.example", "P0001")
      yield* ada.send({ to: ["b@unrecorded.example"], text: "Hello." })
      yield* outcome.isRefused
      const [before] = yield* ada.rows
      expect(before).toMatchObject({ attempts: 1, leased: true })
      yield* outcome.isAccepted
      yield* TestClock.adjust(before!.next!.getTime() - 1 - (yield* Clock.currentTimeMillis))
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      expect(yield* ada.rows).toEqual([before])
      yield* TestClock.adjust(1)
      yield* ask(ada.actor.Work(undefined, { discard: true }))
      yield* waitUntil(ada.deliveries, ([row]) => row?.status === "sent", 0)
      const [first, second, ...more] = transport.transmissions.filter(({ domain }) => domain === "unrecorded.example")
      expect([second!.content, more]).toEqual([first!.content, []])
      expect(yield* ada.rows).toMatchObject([{ attempts: 2, leased: false, next: null }])
    }),
  )
})
