/** Planted bugs in the console and in the notifications that keep its pages current. */
import type { Mutants } from "./Mutant.ts"

export const console: Mutants = {
  "changes-of-calls-are-not-announced": {
    file: "api/src/account/Authorization.ts",
    from: "if (status < 400) feed.changed(",
    to: "if (status < 0) feed.changed(",
    bug: "open pages do not show what the API changed",
    tests: ["api/stream", "console/live"],
  },
  "refused-calls-are-announced": {
    file: "api/src/account/Authorization.ts",
    from: "if (status < 400) feed.changed(",
    to: "if (status < 600) feed.changed(",
    bug: "a refused call makes every open page load again",
    tests: ["api/stream"],
  },
  "changes-of-any-scope": {
    file: "api/src/events/ResourceChanges.ts",
    from: "capability !== undefined && allows(scopes, `${capability}:read`)",
    to: "capability !== undefined",
    bug: "a key learns of changes that it may not read",
    tests: ["api/stream"],
  },
  "imap-changes-are-not-announced": {
    file: "mail-gateway/src/mail/imap/store/PostgresStore.ts",
    from: "yield* notified(folder.use)\n        return modified",
    to: "return modified",
    bug: "open pages do not show flags that a mail program set",
    tests: ["console/live"],
  },
  "attempts-are-not-announced": {
    file: "cluster/src/webhooks/Deliveries.ts",
    from: 'Effect.sync(() => feed.changed(identity.orgId, { resource: "deliveries", handle: identity.handle })),',
    to: "Effect.void,",
    bug: "the page of a Webhook does not show deliveries until it is loaded again",
    tests: ["console/live"],
  },
  "one-success-is-failing": {
    file: "cluster/src/webhooks/WebhookState.ts",
    from: "count(*) filter (where a.status = 'delivered') = 0",
    to: "count(*) filter (where a.status <> 'delivered') > 0",
    bug: "a Webhook that works again is still shown as failing",
    tests: ["console/live"],
  },
  "silence-goes-unnoticed": {
    file: "console/src/client/Live.ts",
    from: "else if (++silent >= silentAtMost) void check()",
    to: "else silent++",
    bug: "a page does not notice that the service has stopped responding",
    tests: ["console/live"],
  },
  "bulk-changes-of-strangers": {
    file: "cluster/src/mail/MessageQueries.ts",
    from: "where m.identity_id = ${identityId} and not m.is_draft\n              and (m.id = any",
    to: "where not m.is_draft\n              and (m.id = any",
    bug: "a bulk change names messages of another Identity, and counts them",
    tests: ["mail/bulk"],
  },
  "archived-while-unread": {
    file: "cluster/src/mail/ThreadQueries.ts",
    from: "and 'archived' <> all(m.labels))`",
    to: "and 'archived' = any(m.labels))`",
    bug: "the archive shows what is not archived",
    tests: ["mail/bulk"],
  },
  "missed-changes-stay-missed": {
    file: "console/src/client/Live.ts",
    from: "if (wasOpen) {",
    to: "if (!wasOpen) {",
    bug: "a page misses what changed while its stream was interrupted",
    tests: ["console/live"],
  },
  "forms-overwrite-input": {
    file: "console/src/ui/Form.tsx",
    from: "if (isBusy.current || !isSame(latest.current, saved.current)) return\n    saved.current",
    to: "saved.current",
    bug: "a change elsewhere replaces what a person is typing",
    tests: ["console/live"],
  },
}
