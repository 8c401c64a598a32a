/** Timestamps: a `Date` inside, RFC 3339 in UTC with milliseconds on the wire (decisions.md "General conventions"). */
import { Schema, SchemaGetter } from "effect"
import { parseDayOrTime, parseRfc3339, rfc3339 } from "./Rfc3339.ts"

const text = Schema.String.annotate({ format: "date-time" })
const encode = SchemaGetter.transform(rfc3339)

export const Timestamp = text.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

/** The first moment that PostgreSQL and RFC 3339 both have. */
const first = Date.parse("0001-01-01T00:00:00Z")

const named = text.check(
  Schema.makeFilter((given: string) => (parseRfc3339(given) ?? -Infinity) >= first, {
    expected: "a date and time with a zone, such as 2026-11-20T12:00:00Z (RFC 3339)",
  }),
)

/** A time that a caller names: RFC 3339 with a zone and a real calendar day. */
export const NamedTime = named.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

const filtering = text.check(
  Schema.makeFilter((given: string) => (parseDayOrTime(given) ?? -Infinity) >= first, {
    expected: "a day such as 2026-11-20, or a date and time with a zone, such as 2026-11-20T12:00:00Z (RFC 3339)",
  }),
)

/** A time by which a list is narrowed: as {@link NamedTime}, or a day, which begins in UTC. */
export const FilterTime = filtering.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

/**
 * Null comes first: the members are tried in turn where their kinds do not tell them apart, and what a Date says to a null
 * cost as much as four Dates.
 */
export const TimestampOrNull = Schema.Union([Schema.Null, Timestamp])
