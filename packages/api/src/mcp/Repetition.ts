/**
 * Repeated tool calls. Clients retry calls without telling the model, so every tool that writes takes an `idempotency_key`,
 * and a call without one repeats an equal call of the last minute. Idempotent writes always run: `a`, `b`, `a` within a
 * minute must end as `a`.
 */
import { createHash } from "node:crypto"
import type { ToolEffect } from "@svc/domain/mcp/Tool"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
type Json = Record<string, any>

const key: Json = {
  type: "string",
  minLength: 1,
  maxLength: 255,
  pattern: "^[!#-~][ !#-~]*$",
  description: "Identifies the action: a repeat with the same key within a day returns the first result.",
}
const duplicate: Json = {
  type: "boolean",
  default: false,
  description:
    "True makes an equal call of the last 60 seconds a second time. Otherwise its first result is returned, with `repeated` true.",
}

const withoutEffect: Json = {
  type: "boolean",
  default: false,
  description: "Has no effect: the tool makes every call, because a call that is made twice has the effect of one.",
}

/** The arguments that control repetition, as JSON Schema. Every tool that writes takes both, so that a client can always pass them. */
export const repetitionArguments = (effect: ToolEffect): Json =>
  effect === "read" ? {} : { idempotency_key: key, allow_duplicate: effect === "write" ? duplicate : withoutEffect }

/** Sorts the members of objects, so that equal arguments have equal texts. */
export const ordered = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => [name, ordered(member)]),
  )
}

/** Returns the key that equal calls of a tool share, or undefined if the call must always run. */
export const equalTo = (effect: ToolEffect, input: Json, body: string | undefined): string | undefined =>
  effect !== "write" || input["allow_duplicate"] === true
    ? undefined
    : `equal ${createHash("sha256")
        .update(body ?? "")
        .digest("base64url")}`
