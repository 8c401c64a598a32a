/** The audit records that a recorded call must cause, derived from `docs/audit.md` independently of the code. */
import { createHash } from "node:crypto"
import { rows } from "../api/Manifest.ts"
import type { RecordedCall } from "./Recorder.ts"

/** An expected record. Rejections are identified by their reason, since the log counts equal ones together. */
export interface Expected {
  readonly hash: string | null
  readonly class: string
  readonly outcome: string
  readonly action: string | null
  readonly code: string | null
  readonly via: string | null
}

export const hashOf = (token: string) => createHash("sha256").update(token).digest("hex")

const showing = new Set([
  "vault.value",
  "vault.versions",
  "identities.secrets",
  "identities.rotate",
  "api_keys.create",
  "api_keys.createForIdentity",
  "api_keys.rotate",
  "webhooks.create",
  "webhooks.rotate",
  "exports.archive",
  "device_confirmation.approve",
  "audit.list",
  "audit.read",
  "audit.export",
])
const letsIn = /^(?:session|grants)\.|^api_keys\.revoke$|^device_confirmation\./
/** Problem codes of rejections that happen before any data are read. */
const judged = new Set([
  "scope_missing",
  "foreign_identity",
  "identity_not_granted",
  "network_refused",
  "org_scope_required",
  "admin_required",
  "session_required",
  "rate_limited",
])

const patterns = rows.map((row) => ({
  ...row,
  pattern: new RegExp(`^${row.endpoint.path.replace(/:\w+/g, "[^/]+")}$`),
  exact: !row.endpoint.path.includes(":"),
}))

export const rowOf = (method: string, path: string) => {
  const found = patterns.filter(({ endpoint, pattern }) => endpoint.method === method && pattern.test(path))
  return found.find(({ exact }) => exact) ?? found[0]
}

const classOf = (id: string, method: string) =>
  showing.has(id) ? "secret" : method === "GET" ? "read" : letsIn.test(id) ? "auth" : "change"

/** Returns the expected records of one call, and the read operation that is only counted. */
export const expectedOf = (
  call: Pick<RecordedCall, "method" | "path" | "token" | "status">,
  code: string | null,
  via: "rest" | "mcp",
  repeated: boolean,
): { readonly acts: ReadonlyArray<Expected>; readonly read: string | null } => {
  const row = rowOf(call.method, call.path)
  if (row === undefined || row.scope === "public" || call.token === undefined) return { acts: [], read: null }
  const hash = hashOf(call.token)
  const of = classOf(row.id, call.method)
  const act = (outcome: string, about = of): Expected =>
    outcome === "refused" || outcome === "repeated"
      ? { hash, class: about, outcome, action: null, code: outcome === "refused" ? code : null, via: null }
      : { hash, class: about, outcome, action: row.id, code: null, via }
  // A call with an unknown credential belongs to no account and is not compared.
  if (call.status === 401) return { acts: [act("refused", "auth")], read: null }
  if (repeated) return { acts: [act("repeated")], read: null }
  if (call.status < 400) return { acts: of === "read" ? [] : [act("allowed")], read: of === "read" ? row.id : null }
  if (of === "read") return { acts: judged.has(code ?? "") ? [act("refused", "auth")] : [], read: null }
  const before = of === "secret" && row.id !== "vault.value" && !judged.has(code ?? "") ? [act("allowed")] : []
  return { acts: [...before, act(call.status >= 500 ? "failed" : "refused")], read: null }
}
