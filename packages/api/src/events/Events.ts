import { Api } from "@svc/domain/Api"
import { Caller, Realm, Subject } from "@svc/domain/account/Authorization"
import { fromPublic } from "@svc/domain/Ids"
import { NotFound, WebhookMismatch } from "@svc/domain/problems/Problem"
import { EventQueries } from "@svc/cluster/events/EventQueries"
import { WebhookQueries } from "@svc/cluster/webhooks/WebhookQueries"
import type { Event } from "@svc/domain/events/Event"
import { StandingCredentials } from "@svc/cluster/account/StandingCredentials"
import { EventTails } from "@svc/cluster/events/EventTails"
import { Effect, Option, Stream } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { HttpServerResponse } from "effect/http"
import * as RequestServices from "../http/RequestServices.ts"
import * as ActorCalls from "../account/ActorCalls.ts"
import { mayCompress } from "../http/Compression.ts"
import { commandId, RequestContext } from "../RequestContext.ts"
import { ShutdownSignal } from "../ShutdownSignal.ts"
import * as ResourceChanges from "./ResourceChanges.ts"
import { StreamLimits } from "./StreamLimits.ts"

/** A comment that keeps proxies and clients from timing out. */
const beatEvery = "15 seconds"

/**
 * Opens live streams of Events (Server-Sent Events): Events after a position, then new ones as they are committed. Each
 * has its `evt_` id, so that a client can resume. A stream waits for change notifications and is idle otherwise. It
 * starts with an id, so that a client that loses it before the first Event resumes without a gap, and ends when its
 * credential is no longer valid.
 */
const makeStreams = Effect.gen(function* () {
  const events = yield* EventQueries
  const tails = yield* EventTails
  const limits = yield* StreamLimits
  const credentials = yield* StandingCredentials
  const departure = yield* ShutdownSignal
  const resources = yield* ResourceChanges.make
  const encoder = new TextEncoder()
  const beat = encoder.encode(":\n\n")

  /** Each Event is encoded once for all streams. */
  const written = new WeakMap<Event, Uint8Array>()
  const write = (event: Event) => {
    const known = written.get(event)
    if (known !== undefined) return known
    const text = encoder.encode(`id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    written.set(event, text)
    return text
  }

  return {
    /** Returns the streaming response; the claims on the stream limits last until the scope of the request closes. */
    open: Effect.fn("EventStreams.open")(function* (
      org: string,
      identityId: string | null,
      lastEventId: string | undefined,
      withChanges: boolean,
    ) {
      const caller = yield* Caller
      yield* limits.take(caller)
      const revoked = yield* credentials.watch(caller)
      const { at, last } = yield* events.beginning(org, identityId, lastEventId)
      const { next } = yield* tails.open(org, identityId, at)

      const chunk = Effect.map(
        Effect.timeoutOption(next, beatEvery),
        Option.match({
          onNone: () => beat,
          onSome: (found) =>
            found.length === 1 ? write(found[0]!.event) : Buffer.concat(found.map(({ event }) => write(event))),
        }),
      )
      const live = Stream.fromEffectRepeat(chunk)
      const body = Stream.concat(
        Stream.succeed(encoder.encode(last === undefined ? ": connected\n\n" : `: connected\nid: ${last}\n\n`)),
        withChanges ? Stream.merge(live, yield* resources.open(caller)) : live,
      ).pipe(
        Stream.interruptWhen(Effect.raceFirst(revoked, departure.await)),
        // If the store is unreachable, the stream ends and the client reconnects.
        Stream.catchCause(() => Stream.empty),
      )
      return HttpServerResponse.stream(body, {
        contentType: "text/event-stream",
        // The connection closes after the stream, so that a shutdown need not wait for the client.
        headers: { "cache-control": "no-store", "x-accel-buffering": "no", connection: "close" },
      })
    }),
  }
})

/** Types of Events that contain text of strangers. */
const written = /^(?:email|connector)\./

/** Allows compression of a page of Events without mail or posts: no stranger can add text to compare with theirs. */
const mayPack = ({ events }: { readonly events: ReadonlyArray<Event> }) =>
  events.some(({ type }) => written.test(type)) ? Effect.void : Effect.map(RequestContext, mayCompress)

export const layer = RequestServices.group(
  Api,
  "events",
  Effect.fn(function* (handlers) {
    const askIdentity = yield* ActorCalls.ofIdentity
    const events = yield* EventQueries
    const webhooks = yield* WebhookQueries
    const streams = yield* makeStreams

    return handlers.handleAll({
      list: ({ query }) => Effect.flatMap(Caller, ({ org }) => Effect.tap(events.list(org.id, query), mayPack)),
      listOfIdentity: ({ query }) =>
        Effect.flatMap(Subject, ({ handle, orgId }) => Effect.tap(events.list(orgId, { ...query, handle }), mayPack)),
      read: ({ params }) => Effect.flatMap(Caller, ({ org }) => events.read(org.id, params.id)),
      stream: ({ headers, query }) =>
        Effect.flatMap(Caller, ({ org }) =>
          streams.open(org.id, null, headers["last-event-id"], query.changes === true),
        ),
      streamOfIdentity: ({ headers }) =>
        Effect.flatMap(Subject, ({ id, orgId }) => streams.open(orgId, id, headers["last-event-id"], false)),
      replay: Effect.fnUntraced(function* ({ params, payload }) {
        const { subject } = yield* Realm
        const event_id = fromPublic("evt_", params.id)
        const webhook_id = fromPublic("wh_", payload.webhook_id)
        if (event_id === undefined || webhook_id === undefined)
          return yield* new NotFound({ detail: "The Webhook does not exist." })
        if (subject === null) {
          return yield* new WebhookMismatch({
            detail: "An Org-level Event concerns no Identity and reaches no Webhook.",
          })
        }
        const delivery_id = yield* commandId
        yield* askIdentity(subject, (actor, by) =>
          actor.Replay({ org_id: subject.orgId, delivery_id, event_id, webhook_id }, by),
        )
        return HttpApiSchema.withHeaders({
          body: { delivery: yield* webhooks.delivery(delivery_id) },
          headers: { location: `/api/identities/${subject.handle}/webhooks/${payload.webhook_id}/deliveries` },
        })
      }),
    })
  }),
)
