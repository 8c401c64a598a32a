/** Timestamps: a `Date` inside, RFC 3339 in UTC with milliseconds on the wire (decisions.md "General conventions"). */
import { Schema, SchemaTransformation } from "effect"

export const Timestamp = Schema.String.annotate({ format: "date-time" }).pipe(
  Schema.decodeTo(Schema.Date, SchemaTransformation.dateFromString),
)
