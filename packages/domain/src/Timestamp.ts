/** Timestamps: a `Date` inside, RFC 3339 in UTC with milliseconds on the wire (decisions.md "General conventions"). */
import { Schema, SchemaGetter } from "effect"
import { rfc3339 } from "./Rfc3339.ts"

const text = Schema.String.annotate({ format: "date-time" })
const encode = SchemaGetter.transform(rfc3339)

export const Timestamp = text.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode }))

/** The years that RFC 3339 can write, but for the one before the first: no store has what lies far outside of them. */
const [first, last] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")]

/** No time, where it is one that nobody means. */
const meant = (given: string): Date => {
  const time = Date.parse(given)
  return new Date(time >= first && time <= last ? time : Number.NaN)
}

/** A time that a caller names. */
export const NamedTime = text.pipe(Schema.decodeTo(Schema.Date, { decode: SchemaGetter.transform(meant), encode }))

/**
 * Null comes first: the members are tried in turn where their kinds do not tell them apart, and what a Date says to a null
 * cost as much as four Dates.
 */
export const TimestampOrNull = Schema.Union([Schema.Null, Timestamp])
