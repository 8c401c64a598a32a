/** The audit log of an Org, with the seals that prove it. */
import { type Capability, cascades, noHandlers, type Table } from "../Capability.ts"
import * as SealSource from "./SealSource.ts"

const removed = (name: string): Table => ({
  erased: { by: "account/AccountDeletion.ts", statement: `"${name}"` },
  exported: { not: "has an export of its own" },
})

export const audit = {
  name: "audit",
  handlers: noHandlers,
  work: { identity: [], org: [SealSource.source] },
  queries: [],
  exports: [],
  tables: {
    audit: removed("audit"),
    audit_head: cascades({ not: "the end of the audit log, which has an export of its own" }),
    audit_seal: removed("audit_seal"),
    audit_usage: cascades({ not: "counts, in GET /api/audit/usage" }),
  },
} satisfies Capability
