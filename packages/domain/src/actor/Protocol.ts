/**
 * Parts that the messages of all actors share. Each capability defines its messages in its own folder
 * (`<Capability>Protocol`), and the protocol of an actor is their union. Delivery is at least once, so a write names
 * the id of the resource that it creates, or is idempotent by nature. The initiator travels in a header
 * (`account/Initiator`).
 */
import { Schema } from "effect"
import { Uuid } from "../IdSchemas.ts"
import { Unavailable } from "../problems/Problem.ts"

/** The actor no longer owns its entity. The caller resends the message to the current owner. */
export class Moved extends Schema.TaggedError<Moved>()("Moved", {}) {}

/** Returns the error schema of a message: its own failures and those that every message can have. */
export const failures = <const E extends ReadonlyArray<Schema.Top>>(...own: E) =>
  Schema.Union([...own, Moved, Unavailable])

/** The Org for which an Identity is addressed. An Identity of another Org is reported as not found. */
export const tenant = { org_id: Uuid }
