import { Schema } from "effect"

/** The actor that got the message no longer owns its entity; the asker sends it again to the present owner. */
export class Moved extends Schema.TaggedError<Moved>()("Moved", {}) {}
