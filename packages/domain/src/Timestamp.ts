/** Timestamps: a `Date` inside, RFC 3339 in UTC with milliseconds on the wire (decisions.md "General conventions"). */
import { Schema, SchemaGetter } from "effect"
import { rfc3339 } from "./Rfc3339.ts"

/** The years that RFC 3339 can write, but for the one before the first: nothing happens outside of them, and no store has it. */
const [first, last] = [Date.parse("0001-01-01T00:00:00Z"), Date.parse("9999-12-31T23:59:59.999Z")]

/** No time, where it is one that nobody means. */
const read = (text: string): Date => {
  const time = Date.parse(text)
  return new Date(time >= first && time <= last ? time : Number.NaN)
}

export const Timestamp = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.Date, { decode: SchemaGetter.transform(read), encode: SchemaGetter.transform(rfc3339) }),
)

/**
 * Null comes first: the members are tried in turn where their kinds do not tell them apart, and what a Date says to a null
 * cost as much as four Dates.
 */
export const TimestampOrNull = Schema.Union([Schema.Null, Timestamp])
