/**
 * All types of Events (interface.md "Events", decisions.md "Events"). {@link module:IdentityEvents} and {@link
 * module:OrgEvents} define the `data` of each type. The lists of types, the union in the API and the Webhook payloads
 * are derived from these two records.
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
/** The data of each type. */
type EventData = { readonly [T in keyof typeof eventData]: (typeof eventData)[T]["Type"] }

export type IdentityEventType = keyof typeof identityEvents
export type OrgEventType = keyof typeof orgEvents
export type EventType = keyof EventData
export type DataOf<T extends EventType> = EventData[T]

/** Types that concern one Identity. Webhooks can subscribe to them. */
export const identityEventTypes = Object.keys(identityEvents) as ReadonlyArray<IdentityEventType>
/** Types that concern the Org. Only the list of Events contains them; Webhooks never receive them. */
export const orgEventTypes = Object.keys(orgEvents) as ReadonlyArray<OrgEventType>

export const eventTypes: ReadonlyArray<EventType> = [...identityEventTypes, ...orgEventTypes]

type Subject = IdentityEventType extends infer T ? (T extends `${infer S}.${string}` ? S : never) : never

/** The capability of Events whose type does not begin with its name. */
const renamed = { email: "mail" } as const satisfies Readonly<Record<Exclude<Subject, Capability>, Capability>>

/** Returns the scope whose holder may read the content of an Event, as an alternative to `event:read`. */
const readScopeOf = (type: IdentityEventType): ScopeName => {
  const subject = type.split(".")[0] as Subject
  return `${subject in renamed ? renamed[subject as keyof typeof renamed] : (subject as Capability)}:read`
}

/** Returns the types of a subscription; `*` is every type of an Identity. */
export const expand = (types: ReadonlyArray<string>): ReadonlyArray<IdentityEventType> =>
  types.includes("*") ? identityEventTypes : identityEventTypes.filter((type) => types.includes(type))

/**
 * Returns the scopes that the holder lacks to receive Events of these types, since a Webhook must not deliver what its
 * creator may not read. `*` means all types.
 */
export const lacksToReceive = (scopes: Scopes, types: ReadonlyArray<string>): ReadonlyArray<ScopeName> => {
  if (allows(scopes, "event:read")) return []
  return [...new Set(expand(types).map(readScopeOf))].filter((scope) => !allows(scopes, scope))
}

export const IdentityEventType = Schema.Literals(identityEventTypes)
export const EventType = Schema.Literals(eventTypes)

/** The type of test Events. It appears in no list, and nobody can subscribe to it. */
export const testEventType = "webhook.test"

interface OfType<T, Data, Identity, Handle> {
  readonly id: string
  readonly type: T
  readonly created_at: Date
  /** Null for an Event of the Org. */
  readonly identity_id: Identity
  readonly handle: Handle
  readonly data: Data
}
export type Event =
  | { [T in IdentityEventType]: OfType<T, DataOf<T>, string, string> }[IdentityEventType]
  | { [T in OrgEventType]: OfType<T, DataOf<T>, null, null> }[OrgEventType]

/** Returns the name of the type's schema in the OpenAPI document: `EmailReceived` for `email.received`. */
export const nameOf = (type: string): string =>
  type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The named data schemas, which the Event and its delivery share. */
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

/** The name under which the OpenAPI document excludes {@link unknown}. */
export const unknownEvent = "UnknownEvent"

/**
 * An Event that matches no schema, stored by a process of another version during a rolling restart. Such an Event must
 * not fail the whole page, and omitting it would break the promise that paging reaches every Event. It is therefore
 * returned as stored, and a warning is logged. The OpenAPI document does not mention it.
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
        : Effect.logWarning("An Event does not match the schema of its type and is returned as stored").pipe(
            Effect.annotateLogs({ event_id: shown.value.id, event_type: shown.value.type }),
          ),
    ),
  ),
  Schema.annotate({ identifier: unknownEvent }),
)

/** An Event in the API, discriminated by `type`. */
// The schemas are built from records, so the compiler infers one type with the alternatives of every member; the cast
// restores the union.
export const Event = Schema.Union([known, unknown]).annotate({ identifier: "Event" }) as unknown as Schema.Codec<
  Event,
  { readonly [K in keyof Event]: K extends "created_at" ? string : Event[K] }
>
