/**
 * `svc listen`: forwards Events to a program on this machine, as Webhook deliveries that are signed like the real ones. The Events come from
 * the live stream, so the program needs no public address and no Webhook. A delivery that fails is shown and not repeated.
 */
import type { Event } from "@agent-identity/sdk"
import { Timing } from "@svc/cluster/Timing"
import { Effect, Option, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { call, connect, explained, Misused, optionalHandleOf, understood } from "../client/Connection.ts"
import { apiFlag } from "../client/Flags.ts"
import { formatFlags, note, respond } from "../client/Format.ts"

const decodeEvents = Schema.decodeUnknownEffect(
  Schema.Struct({ events: Schema.Array(Schema.Struct({ id: Schema.String })) }),
)

/** Loaded on demand, because other commands do not need them. */
const modules = Effect.promise(async () => {
  const [{ createClient }, { bodyOf, newSecret, signedHeaders }, { fromPublic, makePublic }, { eventTypes }] =
    await Promise.all([
      import("@agent-identity/sdk"),
      import("@svc/cluster/webhooks/DeliveryRequest"),
      import("@svc/domain/Ids"),
      import("@svc/domain/events/Event"),
    ])
  return { createClient, bodyOf, newSecret, signedHeaders, fromPublic, makePublic, eventTypes }
})

/** Completes `3000` and `localhost:3000/hook` to an address. */
export const targetOf = (text: string) => {
  const url = /^\d+$/.test(text) ? `http://localhost:${text}/` : /^https?:\/\//i.test(text) ? text : `http://${text}`
  return URL.canParse(url)
    ? Effect.succeed(new URL(url).href)
    : Effect.fail(
        new Misused({ message: `${text} is not an address: pass a port, or an address like localhost:3000/hook.` }),
      )
}

/** Returns the subscribed types, or the first one that does not exist. */
const typesOf = Effect.fnUntraced(function* (list: Option.Option<string>) {
  const types = Option.match(list, { onNone: () => [], onSome: (text) => text.split(",").map((one) => one.trim()) })
  const { eventTypes } = yield* modules
  const unknown = types.find((one) => !(eventTypes as ReadonlyArray<string>).includes(one))
  if (unknown !== undefined) {
    return yield* new Misused({ message: `There is no Event type ${unknown}. The types are ${eventTypes.join(", ")}.` })
  }
  return new Set(types)
})

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  if (error.name === "TimeoutError") return `no response within ${Timing.deliveryTimeoutMillis / 1000} seconds`
  const cause = error.cause instanceof Error ? error.cause : error
  return cause.message || String(Reflect.get(cause, "code"))
}

/** Posts a delivery; returns its status or why it failed. */
const deliver = Effect.fnUntraced(function* (target: string, identityId: string, event: Event, secret: string) {
  const { bodyOf, fromPublic, makePublic, signedHeaders } = yield* modules
  const at = new Date()
  const delivered = {
    event_id: fromPublic("evt_", event.id)!,
    event_type: event.type,
    event_data: event.data,
    event_created_at: new Date(event.created_at),
  }
  const requestId = yield* makePublic("req_")
  const body = bodyOf({ id: identityId, handle: event.handle ?? "" }, delivered, { requestId, at })
  const headers = {
    "content-type": "application/json",
    ...signedHeaders({ id: event.id, at, body, secrets: [secret] }),
  }
  const signal = AbortSignal.timeout(Timing.deliveryTimeoutMillis)
  return yield* Effect.tryPromise({
    try: async () => {
      const response = await fetch(target, { method: "POST", headers, body, redirect: "manual", signal })
      await response.body?.cancel()
      return String(response.status)
    },
    catch: (error) => error,
  }).pipe(Effect.catch((error) => Effect.succeed(`failed: ${reasonOf(error)}`)))
})

export const command = Command.make(
  "listen",
  {
    forward: Flag.String("forward-to").pipe(
      Flag.withDescription(
        "Target of the Events: a port, or an address like localhost:3000/hook. Without it, Events are only shown.",
      ),
      Flag.optional,
    ),
    handle: Flag.String("handle").pipe(
      Flag.withDescription("Only Events of this Identity. A key of one Identity listens to that one."),
      Flag.optional,
    ),
    events: Flag.String("events").pipe(
      Flag.withDescription("Only these Event types, separated by commas, for example email.received."),
      Flag.optional,
    ),
    secret: Flag.String("secret").pipe(
      Flag.withDescription("The signing secret (whsec_…), for the same one at each start. Created if omitted."),
      Flag.optional,
    ),
    ...formatFlags,
    api: apiFlag,
  },
  Effect.fnUntraced(function* (flags) {
    const connection = yield* connect(flags.api)
    const { api, key } = connection
    const { createClient, newSecret } = yield* modules
    const types = yield* typesOf(flags.events)
    const target = yield* Effect.transposeOption(Option.map(flags.forward, targetOf))
    const secret = Option.getOrElse(flags.secret, newSecret)
    if (!/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(secret)) {
      return yield* new Misused({ message: "--secret must be whsec_ and at least 24 bytes in base64." })
    }
    const handle = (yield* optionalHandleOf(connection, flags.handle)) ?? undefined
    // Reports an unknown Identity before the stream is opened.
    if (handle !== undefined) yield* call(api, "GET", `/api/identities/${encodeURIComponent(handle)}`, { key })
    const client = createClient({ key: Redacted.value(key), baseUrl: api })
    const from = handle === undefined ? client : client.identity(handle)
    // The stream continues after the newest Event, so that none is missed while the connection is opened.
    const listed = handle === undefined ? "/api/events" : `/api/identities/${encodeURIComponent(handle)}/events`
    const newest = yield* understood(api, decodeEvents(yield* call(api, "GET", `${listed}?limit=1`, { key })))
    const after = newest.events[0]?.id
    const whose = handle === undefined ? "all Identities" : `@${handle}`
    if (Option.isSome(target)) {
      yield* note(flags, `Forwarding Events of ${whose} to ${target.value}`)
      yield* note(flags, `Signing secret: ${secret}`)
    } else yield* note(flags, `Showing Events of ${whose}`)
    yield* note(flags, "Listening. Press Ctrl+C to stop.")
    const abort = new AbortController()
    yield* Effect.gen(function* () {
      const stream = from.stream({ signal: abort.signal, ...(after === undefined ? {} : { after }) })
      while (true) {
        const next = yield* Effect.tryPromise({
          try: () => stream.next(),
          catch: (error) => new Misused({ message: reasonOf(error) }),
        })
        if (next.done === true) return
        const event = next.value
        if (types.size > 0 && !types.has(event.type)) continue
        // A Webhook belongs to an Identity, so Events of the account are shown and not forwarded.
        const outcome =
          Option.isSome(target) && event.identity_id !== null
            ? yield* deliver(target.value, event.identity_id, event, secret)
            : undefined
        const line = [event.created_at.slice(11, 19), event.type, event.handle ?? "-", event.id]
        yield* respond(flags, outcome === undefined ? event : { ...event, forwarded: outcome }, () =>
          [...line, ...(outcome === undefined ? [] : ["->", outcome])].join("  "),
        )
      }
    }).pipe(Effect.ensuring(Effect.sync(() => abort.abort())))
  }, explained),
).pipe(Command.withDescription("Forward Events to a local port, signed like Webhook deliveries."))
