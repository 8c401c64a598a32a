/** The data of an Event whose type says everything. */
import { Schema } from "effect"

export const Nothing = Schema.Record(Schema.String, Schema.Never)
