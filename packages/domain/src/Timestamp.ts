/** Timestamps: `Date` in memory, RFC 3339 in UTC with milliseconds in JSON (decisions.md "General conventions"). */
import { Schema, SchemaGetter } from "effect"
import { parseDayOrTime, parseRfc3339, rfc3339 } from "./Rfc3339.ts"

const text = Schema.String.annotate({ format: "date-time" })
const encode = SchemaGetter.transform(rfc3339)

export const Timestamp = text.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

/** The earliest time that both PostgreSQL and RFC 3339 can represent. */
const first = Date.parse("0001-01-01T00:00:00Z")

const named = text.check(
  Schema.makeFilter((given: string) => (parseRfc3339(given) ?? -Infinity) >= first, {
    expected: "a date and time with a zone, such as 2026-11-20T12:00:00Z (RFC 3339)",
  }),
)

/** A time in a request: RFC 3339 with a zone and a valid calendar day. */
export const NamedTime = named.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

const filtering = text.check(
  Schema.makeFilter((given: string) => (parseDayOrTime(given) ?? -Infinity) >= first, {
    expected: "a day such as 2026-11-20, or a date and time with a zone, such as 2026-11-20T12:00:00Z (RFC 3339)",
  }),
)

/** A time in a list filter: like {@link NamedTime}, or a day, which starts at midnight UTC. */
export const FilterTime = filtering.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

/**
 * Null is the first member because the schema tries the members in order: rejecting a null as a Date costs as much as
 * encoding four Dates.
 */
export const TimestampOrNull = Schema.Union([Schema.Null, Timestamp])
