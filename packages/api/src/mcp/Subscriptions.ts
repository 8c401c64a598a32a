/**
 * Subscriptions to resources: `subscriptions/listen` of revision 2026-07-28, whose response is a stream of notifications
 * (Server-Sent Events). The stream is the session: a subscription ends with it, with the credential, and when the credential no longer
 * covers a subscribed resource. Earlier revisions bind subscriptions to sessions, which this server does not have.
 */
import type { CallerInfo } from "@svc/domain/account/Authorization"
import { canonical } from "@svc/domain/handles/Handle"
import type { IdentityRef } from "@svc/domain/IdentityRef"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { EventQueries, type PlacedEvent } from "@svc/cluster/events/EventQueries"
import { EventTails } from "@svc/cluster/events/EventTails"
import { ChangeFeed, type ResourceChange } from "@svc/cluster/feed/ChangeFeed"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import { Effect, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { StreamLimits } from "../events/StreamLimits.ts"
import { ShutdownSignal } from "../ShutdownSignal.ts"
import { type Reader, readerOf, type Subscribed, subscribedTo } from "./Resources.ts"

/** A comment that keeps proxies and clients from timing out. */
const beatEvery = "15 seconds"

type Message = Readonly<Record<string, unknown>>

/** The messages of a subscription, in the format of the protocol. */
export interface ListenReplies {
  readonly acknowledged: (uris: ReadonlyArray<string>) => Message
  readonly updated: (uri: string) => Message
  readonly ended: Message
}

export const make = Effect.gen(function* () {
  const feed = yield* ChangeFeed
  const events = yield* EventQueries
  const tails = yield* EventTails
  const limits = yield* StreamLimits
  const credentials = yield* StandingCredentials
  const departure = yield* ShutdownSignal
  const identities = yield* IdentityQueries
  const encoder = new TextEncoder()
  const write = (message: Message) => encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
  const beat = encoder.encode(":\n\n")

  /** Returns the subscriptions of an Identity that new Events concern. */
  const ofEvents = (own: ReadonlyArray<Subscribed>, found: ReadonlyArray<PlacedEvent>) =>
    own.filter((one) => found.some(({ event }) => one.isChangedBy(event.type, event.data as Message)))

  /** Returns the subscriptions that changes concern; all of them if changes may have been missed. */
  const ofChanges = (all: ReadonlyArray<Subscribed>, changes: ReadonlyArray<ResourceChange> | undefined) =>
    changes === undefined
      ? all
      : all.filter(({ groups, handle }) =>
          changes.some(
            (one) => one.handle !== null && canonical(one.handle) === handle && groups.includes(one.resource),
          ),
        )

  return {
    /**
     * Returns the streaming response. Resources that the credential may not read are left out of the acknowledgement. The claims on
     * limits and the watches last until the scope of the request closes.
     */
    open: Effect.fn("Subscriptions.open")(function* <E, R>(
      caller: CallerInfo,
      uris: ReadonlyArray<string>,
      replies: ListenReplies,
      mayRead: (reader: Reader) => Effect.Effect<boolean, E, R>,
    ) {
      yield* limits.take(caller)
      const subscribed: Array<Subscribed> = []
      for (const uri of uris) {
        const [reader, subscription] = [readerOf(uri), subscribedTo(uri)]
        if (reader !== undefined && subscription !== undefined && (yield* mayRead(reader)))
          subscribed.push(subscription)
      }
      const found: Array<readonly [identity: IdentityRef, own: ReadonlyArray<Subscribed>]> = []
      for (const [handle, own] of Map.groupBy(subscribed, (one) => one.handle)) {
        const identity = yield* identities.find(caller.org.id, handle)
        if (identity !== undefined) found.push([identity, own])
      }
      const revoked = [yield* credentials.watch(caller)]
      const updates: Array<Stream.Stream<ReadonlyArray<Subscribed>, unknown>> = []
      for (const [{ id }, own] of found) {
        for (const scope of new Set(own.map((one) => one.scope)))
          revoked.push(yield* credentials.watch(caller, { identityId: id, scope }))
        const { at } = yield* events.beginning(caller.org.id, id, undefined)
        const { next } = yield* tails.open(caller.org.id, id, at)
        updates.push(Stream.fromEffectRepeat(Effect.map(next, (placed) => ofEvents(own, placed))))
      }
      const all = found.flatMap(([, own]) => own)
      const changed = yield* feed.resources(caller.org.id)
      updates.push(Stream.fromEffectRepeat(Effect.map(changed.await, (changes) => ofChanges(all, changes))))
      const live = Stream.mergeAll(updates, { concurrency: "unbounded" }).pipe(
        Stream.filter((own) => own.length > 0),
        Stream.map((own) =>
          Buffer.concat([...new Set(own.map(({ uri }) => uri))].map((uri) => write(replies.updated(uri)))),
        ),
        Stream.merge(Stream.fromEffectRepeat(Effect.as(Effect.sleep(beatEvery), beat))),
        Stream.interruptWhen(Effect.raceAll([...revoked, departure.await])),
        // If the store is unreachable, the stream ends and the client listens again.
        Stream.catchCause(() => Stream.empty),
      )
      const body = Stream.concat(
        Stream.succeed(write(replies.acknowledged(all.map(({ uri }) => uri)))),
        Stream.concat(live, Stream.succeed(write(replies.ended))),
      )
      return HttpServerResponse.stream(body, {
        contentType: "text/event-stream",
        headers: { "cache-control": "no-store", "x-accel-buffering": "no", connection: "close" },
      })
    }),
  }
})
