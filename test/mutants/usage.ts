/** Planted bugs in the counts of usage. */
import type { Mutants } from "./Mutant.ts"

export const usage: Mutants = {
  "usage-replaced": {
    file: "cluster/src/usage/UsageCounters.ts",
    from: "else u.count + excluded.count end",
    to: "else excluded.count end",
    bug: "the counts of one process replace those of another",
    tests: ["usage/usage"],
  },
  "usage-lost-on-stop": {
    file: "cluster/src/usage/UsageCounters.ts",
    from: "yield* Effect.addFinalizer(() => Effect.ignoreCause(Effect.timeout(flush, Timing.settle)))",
    to: "",
    bug: "a clean stop loses the counts of the last seconds",
    tests: ["usage/usage"],
  },
  "usage-written-twice": {
    file: "cluster/src/usage/UsageCounters.ts",
    from: "    sums = new Map()\n    pending.closeUnsafe()\n    return written",
    to: "    pending.closeUnsafe()\n    return written",
    bug: "each flush writes the counts of the earlier ones again",
    tests: ["usage/usage"],
  },
  "usage-of-another-account": {
    file: "cluster/src/usage/UsageQueries.ts",
    from: "sql`u.org_id = ${org} and u.hour >=",
    to: "sql`u.hour >=",
    bug: "an account reads the usage of another account",
    tests: ["usage/usage"],
  },
  "usage-of-the-hour-of-writing": {
    file: "cluster/src/usage/UsageCounters.ts",
    from: "const key = `${hour}${kind}",
    to: "const key = `${kind}",
    bug: "counts of two hours are written into one of them",
    tests: ["usage/usage"],
  },
  "tunnel-errors-uncounted": {
    file: "tunnel-edge/src/edge/http/ConnectionRoute.ts",
    from: "countResponse(bytes[statusAt] === 0x35)",
    to: "countResponse(false)",
    bug: "responses with a 5xx status count as successful",
    tests: ["tunnel/public-http-answers"],
  },
  "quantile-beyond": {
    file: "cluster/src/usage/UsageQueries.ts",
    from: "if (left <= 0) return millisOf(bucket)",
    to: "if (left < 0) return millisOf(bucket)",
    bug: "one slow attempt of twenty is reported as the duration that 95% of the attempts did not exceed",
    tests: ["usage/usage"],
  },
  "keys-of-other-accounts": {
    file: "cluster/src/account/OverviewQueries.ts",
    from: "where k.org_id = ${org} and k.revoked_at is null",
    to: "where k.revoked_at is null",
    bug: "Home names the keys of other accounts that expire soon",
    tests: ["api/overview"],
  },
  "revoked-key-expires": {
    file: "cluster/src/account/OverviewQueries.ts",
    from: "and k.revoked_at is null and",
    to: "and",
    bug: "Home asks for attention to the expiry of a key that was revoked",
    tests: ["api/overview"],
  },
}
