/**
 * Change notifications. A writer announces a change after its commit, and subscribers of its key read the store again.
 * Notifications have no content, so that a redundant one costs only a query and a lost one only time.
 *
 * A key is an Org's id, an Identity's id, `tunnel/` and a canonical Handle, or an Org's id with the kind of the resource that
 * changed and the Handle of its Identity (`<org>/messages:ada`), for open pages. Subscribers in the same process are notified
 * immediately, those in other processes over one listening connection per process. Notifications can be lost: after a
 * reconnect, all subscribers are notified. For processes that crash between commit and announcement, one query every two
 * seconds finds the Orgs and Identities with new Events.
 */
import { randomBytes } from "node:crypto"
import { Clock, Context, Effect, Layer, Queue } from "effect"
import { Reads, Unhurried, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"
import * as CrossProcessFeed from "./CrossProcessFeed.ts"
import * as Subscribers from "./Subscribers.ts"

/** The Org and Identity that a commit changed. */
interface Change {
  readonly org: string
  readonly identity?: string | undefined
}

/** A resource that a commit changed, without its content. `resource` is the name of its group of endpoints. */
export interface ResourceChange {
  readonly resource: string
  /** The Identity that owns the resource; null if it belongs to the Org. */
  readonly handle: string | null
}

const resourceKey = (org: string, { resource, handle }: ResourceChange) => `${org}/${resource}:${handle ?? ""}`

const resourceOf = (key: string): ResourceChange => {
  const [resource = "", handle = ""] = key.slice(key.indexOf("/") + 1).split(":")
  return { resource, handle: handle === "" ? null : handle }
}

/** Changes are kept this long for pages that read their content before they subscribed. */
const recentMillis = 10_000
const recentAtMost = 10_000

/** The resource keys of the last seconds, each once, oldest first. */
const recentChanges = () => {
  const times = new Map<string, number>()
  return {
    add: (key: string, now: number): void => {
      times.delete(key)
      times.set(key, now)
      for (const [oldest, at] of times) {
        if (times.size <= recentAtMost && now - at < recentMillis) break
        times.delete(oldest)
      }
    },
    of: (org: string, now: number): ReadonlySet<string> =>
      new Set(
        [...times].filter(([key, at]) => key.startsWith(`${org}/`) && now - at < recentMillis).map(([key]) => key),
      ),
  }
}

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const unhurried = yield* Unhurried
  const clock = yield* Clock.Clock
  const self = randomBytes(6).toString("base64url")
  const subscribers = Subscribers.make()

  const publish = yield* CrossProcessFeed.make((keys) =>
    CrossProcessFeed.notify(writes, CrossProcessFeed.encode(self, keys)),
  )
  /** Pages need changes of resources within a second, so these are batched for longer and cost little under load. */
  const publishResource = yield* CrossProcessFeed.make(
    (keys) => CrossProcessFeed.notify(writes, CrossProcessFeed.encode(self, keys)),
    Timing.resourcesGather,
  )
  const recent = recentChanges()
  const wake = (key: string) => {
    if (key.includes(":")) recent.add(key, clock.currentTimeMillisUnsafe())
    subscribers.wake(key)
  }
  const announce = (key: string) => {
    wake(key)
    publish(key)
  }

  const listen = Effect.scoped(
    Effect.gen(function* () {
      const notifications = yield* unhurried.listen(CrossProcessFeed.channel)
      subscribers.wakeAll()
      yield* Effect.forever(
        Effect.map(Queue.take(notifications), ({ payload }) => {
          for (const key of CrossProcessFeed.decode(self, payload)) wake(key)
        }),
      )
    }),
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.exit(listen), Effect.sleep(Timing.feedReconnect))))

  /** Events of all transactions below this id have been announced. */
  let horizon: string | undefined
  const recheck = Effect.gen(function* () {
    if (subscribers.isEmpty()) {
      horizon = undefined
      return
    }
    const since = horizon
    const rows = yield* reads<{ horizon: string; org_id: string | null; identity_id: string | null }>`
      select now.xmin::text as horizon, e.org_id, e.identity_id
      from (select pg_snapshot_xmin(pg_current_snapshot()) as xmin) now
      left join (select distinct org_id, identity_id from event where xid >= ${since ?? null}::xid8) e on true`
    horizon = rows[0]!.horizon
    // This is the first check since there are subscribers, so earlier changes may have been missed.
    if (since === undefined) return subscribers.wakeSubscribers()
    const keys = new Set(rows.flatMap(({ org_id, identity_id }) => [org_id, identity_id]))
    for (const key of keys) if (key !== null) subscribers.wake(key)
  }).pipe(Effect.timeoutOption(Timing.ask))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.feedRecheck), Effect.exit(recheck))))

  return {
    /** Announces a change after its commit. Never waits or fails. */
    announce: ({ org, identity }: Change): void => {
      announce(org)
      if (identity !== undefined) announce(identity)
    },
    /** Announces that a resource of an Org changed. Never waits or fails. */
    changed: (org: string, change: ResourceChange): void => {
      const key = resourceKey(org, change)
      wake(key)
      publishResource(key)
    },
    /** Subscribes to the changed resources of an Org, with those of the last seconds; `undefined` if changes may have been missed. */
    resources: (org: string) =>
      Effect.map(subscribers.follow(org), (changes) => ({
        recent: [...recent.of(org, clock.currentTimeMillisUnsafe())].map(resourceOf),
        await: Effect.map(changes.await, (keys) => (keys === undefined ? undefined : [...keys].map(resourceOf))),
      })),
    /** Wakes the subscribers of a key in every process. Never waits. */
    notify: announce,
    subscribe: subscribers.subscribe,
    on: subscribers.on,
    follow: subscribers.follow,
  }
})

export class ChangeFeed extends Context.Service<ChangeFeed, Effect.Success<typeof make>>()(
  "@svc/cluster/feed/ChangeFeed",
) {
  static readonly layer = Layer.effect(ChangeFeed, make)
}
