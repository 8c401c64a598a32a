/** Timestamps: a `Date` inside, RFC 3339 in UTC with milliseconds on the wire (decisions.md "General conventions"). */
import { Schema, SchemaGetter } from "effect"
import { rfc3339 } from "./Rfc3339.ts"

export const Timestamp = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.Date, { decode: SchemaGetter.Date(), encode: SchemaGetter.transform(rfc3339) }),
)

/**
 * Null comes first: the members are tried in turn where their kinds do not tell them apart, and what a Date says to a null
 * cost as much as four Dates.
 */
export const TimestampOrNull = Schema.Union([Schema.Null, Timestamp])
