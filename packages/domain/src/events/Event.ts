/**
 * Every type of Event and its record (interface.md "Events", decisions.md "Events"). What each type's `data` is stands in
 * {@link module:IdentityEvents} and {@link module:OrgEvents}, and nowhere else: the lists of types, the union that the API
 * shows and the payloads of deliveries are made of them.
 */
import { Effect, Option, Schema } from "effect"
import { Uuid, EventId } from "../IdSchemas.ts"
import { allows, type Capability, type ScopeName, type Scopes } from "../account/Scope.ts"
import { Timestamp } from "../Timestamp.ts"
import { identityEvents } from "./IdentityEvents.ts"
import { orgEvents } from "./OrgEvents.ts"

export { EventId } from "../IdSchemas.ts"

/** The schema of each type's data. */
export const eventData = { ...identityEvents, ...orgEvents } as const
/** What each type's data is. */
export type EventData = { readonly [T in keyof typeof eventData]: (typeof eventData)[T]["Type"] }

export type IdentityEventType = keyof typeof identityEvents
export type OrgEventType = keyof typeof orgEvents
export type EventType = keyof EventData
export type DataOf<T extends EventType> = EventData[T]

/** Types that concern one Identity; Webhooks may subscribe to them. */
export const identityEventTypes = Object.keys(identityEvents) as ReadonlyArray<IdentityEventType>
/** Org-level types reach no Webhook; the list is their only delivery route. */
export const orgEventTypes = Object.keys(orgEvents) as ReadonlyArray<OrgEventType>

export const eventTypes: ReadonlyArray<EventType> = [...identityEventTypes, ...orgEventTypes]

type Subject = IdentityEventType extends infer T ? (T extends `${infer S}.${string}` ? S : never) : never

/** The capability whose `read` scope shows what an Event of an Identity carries, by the first word of its type. */
const capabilities: Readonly<Record<Subject, Capability>> = {
  identity: "identity",
  email: "mail",
  mail: "mail",
  card: "card",
  tunnel: "tunnel",
  webhook: "webhook",
  connector: "connector",
}

/** Returns the scope that shows Events of the type, besides `event:read`, which shows all. */
const readScopeOf = (type: IdentityEventType): ScopeName => `${capabilities[type.split(".")[0] as Subject]}:read`

/** Returns the types of a subscription; `*` is every type of an Identity. */
export const expand = (types: ReadonlyArray<string>): ReadonlyArray<IdentityEventType> =>
  types.includes("*") ? identityEventTypes : identityEventTypes.filter((type) => types.includes(type))

/**
 * Returns the scopes that the holder of these lacks to receive Events of the types: a Webhook carries no more than its maker
 * may read. `*` is every type.
 */
export const lacksToReceive = (scopes: Scopes, types: ReadonlyArray<string>): ReadonlyArray<ScopeName> => {
  if (allows(scopes, "event:read")) return []
  return [...new Set(expand(types).map(readScopeOf))].filter((scope) => !allows(scopes, scope))
}

export const IdentityEventType = Schema.Literals(identityEventTypes)
export const EventType = Schema.Literals(eventTypes)

/** The type of the Event by which a Webhook is tried out; it is in no list, and nobody subscribes to it. */
export const testEventType = "webhook.test"

interface OfType<T, Data, Identity, Handle> {
  readonly id: string
  readonly type: T
  readonly created_at: Date
  /** Null for an Org-level Event. */
  readonly identity_id: Identity
  readonly handle: Handle
  readonly data: Data
}
export type Event =
  | { [T in IdentityEventType]: OfType<T, DataOf<T>, string, string> }[IdentityEventType]
  | { [T in OrgEventType]: OfType<T, DataOf<T>, null, null> }[OrgEventType]

/** `EmailReceived` for `email.received`: names of the schemas in the document. */
export const nameOf = (type: string): string =>
  type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Named once, so that the Event and its delivery refer to one schema. */
export const dataSchemas: ReadonlyMap<EventType, Schema.Codec<DataOf<EventType>>> = new Map(
  eventTypes.map((type) => [
    type,
    (eventData[type] as Schema.Codec<DataOf<EventType>>).annotate({ identifier: `${nameOf(type)}Data` }),
  ]),
)

const common = { id: EventId, created_at: Timestamp }

const known = Schema.Union(
  [...dataSchemas].map(([type, data]) =>
    Schema.Struct({
      ...common,
      type: Schema.Literal(type),
      ...(type in orgEvents
        ? { identity_id: Schema.Null, handle: Schema.Null }
        : { identity_id: Uuid, handle: Schema.String }),
      data,
    }).annotate({ identifier: `${nameOf(type)}Event` }),
  ),
  { mode: "oneOf" },
)

/** The name by which the document leaves {@link unknown} out. */
export const unknownEvent = "UnknownEvent"

/**
 * What fits no type's schema: stored by a process of another version, before or after this one, since two run side by
 * side during a rolling restart and a migration reaches only what was stored by then. One such row must not refuse the
 * whole page, and leaving it out would break the promise that every Event is reached by paging. So it is shown as it is,
 * and the operator is told. The document does not speak of it.
 */
const unknown = Schema.Struct({
  ...common,
  id: Schema.String,
  type: Schema.String,
  identity_id: Schema.NullOr(Schema.String),
  handle: Schema.NullOr(Schema.String),
  data: Schema.Record(Schema.String, Schema.Unknown),
}).pipe(
  Schema.middlewareEncoding(
    Effect.tap((shown) =>
      Option.isNone(shown)
        ? Effect.void
        : Effect.logWarning("An Event does not fit the schema of its type and is shown as it is").pipe(
            Effect.annotateLogs({ event_id: shown.value.id, event_type: shown.value.type }),
          ),
    ),
  ),
  Schema.annotate({ identifier: unknownEvent }),
)

/** An Event as the API shows it, by `type`. */
// Made of the records above, so the compiler sees one type with every member's alternatives; `Event` tells them apart.
export const Event = Schema.Union([known, unknown]).annotate({ identifier: "Event" }) as unknown as Schema.Codec<
  Event,
  { readonly [K in keyof Event]: K extends "created_at" ? string : Event[K] }
>
