/**
 * Repeated tool calls. Clients retry calls without telling the model, so what a model asked for once must not happen twice:
 * every tool that writes takes an `idempotency_key`, and a call without one repeats an equal call of the last minute.
 * Writes that are idempotent by nature always run: `a`, `b`, `a` within a minute must end as `a`.
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
  description: "Names this act: a call that is repeated with the same key within a day returns the first result.",
}
const duplicate: Json = {
  type: "boolean",
  default: false,
  description:
    "True makes an equal call of the last 60 seconds a second time. Otherwise its first result is returned, with `repeated` true.",
}

/** Arguments about repetition that a tool takes, as JSON Schema. */
export const repetitionArguments = (effect: ToolEffect): Json =>
  effect === "read"
    ? {}
    : effect === "write"
      ? { idempotency_key: key, allow_duplicate: duplicate }
      : { idempotency_key: key }

/** A value with the members of its objects in one order, so that equal arguments are equal texts. */
export const ordered = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(ordered)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, member]) => [name, ordered(member)]),
  )
}

/** Returns what equal calls of a tool have in common, or undefined if the call is to be made in any case. */
export const equalTo = (effect: ToolEffect, input: Json, body: string | undefined): string | undefined =>
  effect !== "write" || input["idempotency_key"] !== undefined || input["allow_duplicate"] === true
    ? undefined
    : `equal ${createHash("sha256")
        .update(body ?? "")
        .digest("base64url")}`
