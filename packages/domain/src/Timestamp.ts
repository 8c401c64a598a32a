/** Timestamps: a `Date` inside, RFC 3339 in UTC with milliseconds on the wire (decisions.md "General conventions"). */
import { Schema } from "effect"

export const Timestamp = Schema.DateFromString
