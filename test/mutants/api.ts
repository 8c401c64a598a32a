/** Planted bugs in `packages/api`. */
import type { Mutants } from "./Mutant.ts"

export const api: Mutants = {
  "approval-of-anything": {
    file: "api/src/mail/Sending.ts",
    from: "decision.hash !== undefined && decision.hash !== content_sha256",
    to: "decision.hash === undefined",
    bug: "an approval that names other content is taken for the content that waits",
    tests: ["sending/approval"],
  },
  "idempotency-ignores-body": {
    file: "api/src/idempotency/Idempotency.ts",
    from: "records.claim(scope, body)",
    to: "records.claim(scope, scope.operation)",
    bug: "an Idempotency-Key is compared without the body",
    tests: ["api/idempotency", "idempotency/records"],
  },
  "forwarded-chain-from-client": {
    file: "api/src/limits/ClientAddress.ts",
    from: "const chain = hops(header, headers[header]).toReversed()",
    to: "const chain = hops(header, headers[header])",
    bug: "the forwarded chain is read from the client's end: any client names its own address",
    tests: ["api/limits", "limits/calls", "api/policy", "api/scopes", "audit/service"],
  },
  "read-refusals-unrecorded": {
    file: "api/src/audit/Recording.ts",
    from: '(plan.class === "read" && passing.has(problem.code))',
    to: 'plan.class === "read"',
    bug: "refusals of reading calls are not put on record",
    tests: ["audit/service", "audit/acts", "audit/mixed", "audit/faults", "api/scopes"],
  },
  "one-stream-too-many": {
    file: "api/src/events/StreamLimits.ts",
    from: "if (now >= quota) {",
    to: "if (now > quota) {",
    bug: "one stream more than the quota may be open (off by one)",
    tests: ["api/stream", "api/limits", "events/tails", "events/standing-credentials"],
  },
  "stream-outlives-key": {
    file: "api/src/events/EventStreams.ts",
    from: "Stream.interruptWhen(Effect.raceFirst(gone, departure.await))",
    to: "Stream.interruptWhen(departure.await)",
    bug: "an open stream of Events goes on after its key was revoked",
    tests: ["api/stream", "events/standing-credentials", "events/tails", "account/key-ends", "oauth/ends"],
  },
  "skill-unescaped": {
    file: "api/src/pages/ProfilePage.ts",
    from: "<p>${escape(skill.description)}</p>",
    to: "<p>${skill.description}</p>",
    bug: "a skill's description stands unescaped in the public profile (stored HTML injection)",
    tests: ["pages/pages", "api/card", "pages/languages", "console/hostile-data"],
  },
  "codes-guessed-unbraked": {
    file: "api/src/oauth/TokenEndpoint.ts",
    from: 'Effect.as(limits.take("oauth_token_failed", who), refusal("invalid_grant", description))',
    to: 'Effect.succeed(refusal("invalid_grant", description))',
    bug: "wrong authorization codes are not counted: guessing is not braked",
    tests: ["oauth/tokens", "oauth/attacks", "oauth/hostile", "oauth/hostile-clients", "api/limits"],
  },
  "encoding-q0-ignored": {
    file: "api/src/http/Compression.ts",
    from: 'const takes = (name: string) => (weights.get(name) ?? weights.get("*") ?? 0) > 0',
    to: 'const takes = (name: string) => weights.has(name) || weights.has("*")',
    bug: "Accept-Encoding: br;q=0 is answered in br (q=0 ignored)",
    tests: ["http/transport", "http/serving", "http/texts"],
  },
  "console-cookie-without-header": {
    file: "api/src/account/ConsoleSession.ts",
    from: '  if (!safe.has(request.method) && headers["svc-console"] !== "1") return request\n',
    to: "",
    bug: "the console's cookie counts for changes without the header that no form can send (CSRF second line)",
    tests: ["console/session", "console/access", "account/sign-in", "api/policy"],
  },
  "if-match-takes-weak": {
    file: "api/src/EntityTags.ts",
    from: 'header.split(",").some((one) => one.trim() === tag)',
    to: 'header.split(",").some((one) => one.trim().replace(/^W\\//, "") === tag)',
    bug: "If-Match takes weak tags",
    tests: ["domain/precondition", "api/properties", "api/account", "connectors/service", "api/mail-settings"],
  },
  "interrupted-page-empty": {
    file: "api/src/Http.ts",
    from: ": isClientGone(cause)",
    to: ": isClientGone(cause) || cause.reasons.length > 0",
    bug: "a page or a tool's call that the service interrupts is answered with 503 and no body",
    tests: ["http/defects"],
  },
}
