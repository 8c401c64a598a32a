/** Notifications to other processes that an Identity has new Events, without which open streams there wait for the next check. */
import { channel } from "@svc/cluster/feed/CrossProcessFeed"
import { Deferred, Effect, Queue } from "effect"
import { eventually, type TestService } from "./Service.ts"

/** Listens as another process does. */
export const listenToAnnouncements = async ({ query }: Pick<TestService, "query">) => {
  const keys = new Set<string>()
  const ended = Deferred.makeUnsafe<void>()
  const listening = Promise.withResolvers<void>()
  const done = query((sql) =>
    Effect.gen(function* () {
      const notifications = yield* sql.listen(channel)
      listening.resolve()
      const reading = Effect.map(Queue.take(notifications), ({ payload }) =>
        payload.split(" ").forEach((key) => keys.add(key)),
      )
      yield* Effect.raceFirst(Effect.forever(reading), Deferred.await(ended))
      return []
    }).pipe(Effect.scoped),
  )
  await Promise.race([listening.promise, done])
  return {
    /** Waits until every Identity that got an Event in the transaction of a request's audit record is announced. */
    ofEventsOf: async (requestId: string): Promise<void> => {
      const identities = await query<{ id: string }>(
        (sql) => sql`
          select distinct identity_id::text as id from event
          where identity_id is not null and xid = (select xmin::text::xid8 from audit where request_id = ${requestId})`,
      )
      await eventually(
        async () => identities.filter(({ id }) => !keys.has(id)),
        (missing) => missing.length === 0,
      )
      keys.clear()
    },
    stop: async (): Promise<void> => {
      await Effect.runPromise(Deferred.succeed(ended, undefined))
      await done
    },
  }
}

export type Announcements = Awaited<ReturnType<typeof listenToAnnouncements>>
