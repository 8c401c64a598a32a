/** The data of an Event that says all by its type. */
import { Schema } from "effect"

export const Nothing = Schema.Record(Schema.String, Schema.Never)
