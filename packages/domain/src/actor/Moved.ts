import { Schema } from "effect"

/** The actor no longer owns its entity. The caller resends the message to the current owner. */
export class Moved extends Schema.TaggedError<Moved>()("Moved", {}) {}
