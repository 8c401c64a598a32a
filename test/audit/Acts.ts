/** Audit records for tests. */
import { createSecretKey, randomBytes } from "node:crypto"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import type { ProofKey } from "@svc/cluster/audit/Proof"

/** A key for records that do not come from a service. */
export const noKey: ProofKey = { key: createSecretKey(randomBytes(32)), since: 0 }

export const act = (org: string, more: Partial<Act> = {}): Act => ({
  org,
  class: "change",
  action: "cards.patch",
  actor: { kind: "admin_key", id: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a01", name: "ci", client: null },
  identity: null,
  target: { type: "card", id: null, name: "ada" },
  outcome: "allowed",
  code: null,
  scope: "card:write",
  source: { address: "198.51.100.7", via: "rest", tool: null, user_agent: "test/1" },
  requestId: "req_1",
  ...more,
})
