// The source files of the console, and its build.
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { buildOf } from "../../scripts/Build.mjs"

const here = dirname(fileURLToPath(import.meta.url))

/** Modules of the contract that the console loads into the browser. */
export const shared = [
  "Phrases.ts",
  "account/Scope.ts",
  "audit/AuditSentences.ts",
  "audit/AuditVerbs.ts",
  "connectors/PlatformNames.ts",
  "events/EventSentences.ts",
  "mail/FrameLimits.ts",
  "vault/SecretTag.ts",
].map((name) => join(here, "..", "domain", "src", name))

export const { cache, dist, wanted, isBuilt } = buildOf("console", [here, ...shared])
