/**
 * What the messages of actors have in common. A capability keeps its messages in its own folder (`<Capability>Protocol`);
 * an actor's protocol is the sum of them. Each write names the id of what it makes (or is idempotent by nature), so that
 * a message delivered twice is done once (at-least-once delivery). Who asked travels beside the payload (`account/By`).
 */
import { Schema } from "effect"
import { Uuid } from "../IdSchemas.ts"
import { Unavailable } from "../problems/Problem.ts"
import { Moved } from "./Moved.ts"

/** Failures of a message: its own, and those that any message can have. */
export const failures = <const E extends ReadonlyArray<Schema.Top>>(...own: E) =>
  Schema.Union([...own, Moved, Unavailable])

/** The Org on whose behalf an Identity is asked; another's does not exist for it. */
export const tenant = { org_id: Uuid }
