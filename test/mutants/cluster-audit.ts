/** Planted bugs in `packages/cluster/src/audit`. */
import type { Mutants } from "./Mutant.ts"

export const clusterAudit: Mutants = {
  "mac-without-number": {
    file: "cluster/src/audit/Chain.ts",
    from: 'JSON.stringify(["svc-audit-seal", 1, org_id, seq, previous, hash])',
    to: 'JSON.stringify(["svc-audit-seal", 1, org_id, previous, hash])',
    bug: "the MAC of a seal does not cover the record's number",
    tests: ["audit/forged"],
  },
  "mac-without-org": {
    file: "cluster/src/audit/Chain.ts",
    from: 'JSON.stringify(["svc-audit-seal", 1, org_id, seq, previous, hash])',
    to: 'JSON.stringify(["svc-audit-seal", 1, seq, previous, hash])',
    bug: "a seal of one account passes in the chain of another",
    tests: ["audit/forged"],
  },
  "forged-end-signed": {
    file: "cluster/src/audit/AuditQueries.ts",
    from: '      if (end === "forged") return { head: null, refused_seq: Number(row.seq) }\n',
    to: "",
    bug: "the service signs a forged end of the audit log for whoever asks for it",
    tests: ["audit/forged"],
  },
  "forged-end-continued": {
    file: "cluster/src/audit/SealSource.ts",
    from: 'if (end === "forged") yield* ownership.write(system, (write) => refused(write, id, head))\n        else if',
    to: "if",
    bug: "the actor goes on sealing behind a forged end",
    tests: ["audit/forged"],
  },
  "cut-end-continued": {
    file: "cluster/src/audit/SealSource.ts",
    from: "return known === undefined || known === endOf(head.seq, head.hash) ? run(write) : refused(write, org, head)",
    to: "return true ? run(write) : refused(write, org, head)",
    bug: "the actor goes on although the end is not the one that it wrote last",
    tests: ["audit/forged"],
  },
  "export-hides-lost-seals": {
    file: "cluster/src/audit/AuditQueries.ts",
    from: '  ...(isSealed(keys, row) ? {} : { seal: "lost" as const }),\n',
    to: "",
    bug: "an export does not say which seals the service did not make",
    tests: ["audit/forged"],
  },
  "bridges-for-ever": {
    file: "cluster/src/audit/AuditQueries.ts",
    from: 'return now < keys.bridgingUntil && end.mac_seq !== end.seq ? "bridge" : "forged"',
    to: 'return end.mac_seq !== end.seq ? "bridge" : "forged"',
    bug: "a chain whose MACs were taken away is closed by a bridge at any time, as if a former version had sealed it",
    tests: ["audit/forged"],
  },
  "former-seal-keys-lost": {
    file: "cluster/src/sealing/ServiceKey.ts",
    from: "(bytes) => byId.set(id, createSecretKey(bytes))),",
    to: "() => {}),",
    bug: "seals cannot be checked once the master key that they were made with is gone",
    tests: ["audit/forged"],
  },
  "older-chains-not-looked-at": {
    file: "cluster/src/audit/Months.ts",
    from: "    union\n    select org_id from audit_head where mac_seq is distinct from seq and hash is not null and due_at is null`",
    to: "`",
    bug: "the chain of an account in which nothing happens is never closed by a bridge",
    tests: ["audit/forged"],
  },
}
