/** Planted bugs that remove the comparison by which a holder notices that it lost a lease, a fence or a version. */
import type { Mutants } from "./Mutant.ts"

export const staleHolders: Mutants = {
  "fence-of-any-epoch": {
    file: "cluster/src/actor/Ownership.ts",
    from: "and id = ${id} and epoch = ${epoch} for share)",
    to: "and id = ${id} and ${epoch}::int > 0 for share)",
    bug: "a process that lost an actor to another process still changes its rows",
    tests: ["cluster/ownership", "cluster/proof"],
  },
  "content-sent-under-a-lost-lease": {
    file: "cluster/src/mail/sending/outbox/SendingGate.ts",
    from: "and o.attempt_started_at = requested.started_at",
    to: "and requested.started_at is not null",
    bug: "a process that lost the lease of a message sends its content beside the new holder",
    tests: ["sending/together"],
  },
  "outcome-of-a-lost-lease": {
    file: "cluster/src/mail/sending/outbox/OutboxRecords.ts",
    from: "where o.id = e.id and o.attempt_started_at = e.started_at",
    to: "where o.id = e.id and o.attempt_started_at is not null",
    bug: "a process that lost the lease of a message records the outcome of the attempt of the new holder",
    tests: ["sending/left-behind", "sending/outbox", "sending/together", "sending/attempts"],
  },
  "lost-lease-renewed": {
    file: "cluster/src/mail/sending/outbox/Outbox.ts",
    from: "where o.id = ours.id and o.attempt_started_at = ours.started_at returning ours.n::int as n",
    to: "where o.id = ours.id and o.attempt_started_at is not null returning ours.n::int as n",
    bug: "a process that lost the lease of a message renews the lease of the new holder and goes on",
    tests: ["sending/left-behind", "sending/outbox", "sending/attempts"],
  },
  "card-of-any-version": {
    file: "cluster/src/card/Cards.ts",
    from: "if (!matches(if_version, card.version))",
    to: "if (!matches(null, card.version))",
    bug: "a change of a card overwrites a newer version in spite of If-Match",
    tests: ["api/card"],
  },
  "mail-status-of-any-version": {
    file: "cluster/src/mail/MailSettings.ts",
    from: 'return yield* refuse("The mail status", before.version)',
    to: "yield* Effect.void",
    bug: "a change of the mail status overwrites a newer version in spite of If-Match",
    tests: ["api/representations"],
  },
  "ai-disclosure-of-any-version": {
    file: "cluster/src/mail/MailSettings.ts",
    from: 'return yield* refuse("The AI disclosure", version)',
    to: "yield* Effect.void",
    bug: "a change of the AI disclosure overwrites a newer version in spite of If-Match",
    tests: ["api/mail-settings", "sending/disclosure"],
  },
  "webhook-of-any-version": {
    file: "cluster/src/webhooks/Webhooks.ts",
    from: "if (!matches(change.if_version, before.version))",
    to: "if (!matches(null, before.version))",
    bug: "a change of a Webhook overwrites a newer version in spite of If-Match",
    tests: ["webhooks/webhooks"],
  },
  "draft-of-any-version": {
    file: "cluster/src/mail/sending/Drafts.ts",
    from: "if (!matches(condition, row.version))",
    to: "if (!matches(null, row.version))",
    bug: "a change of a draft overwrites a newer version in spite of If-Match",
    tests: ["sending/drafts"],
  },
  "sent-draft-of-any-version": {
    file: "cluster/src/mail/sending/OutboundBatch.ts",
    from: "join draft d on d.id = requested.id and d.version = requested.draft_version for update of d",
    to: "join draft d on d.id = requested.id for update of d",
    bug: "a draft that changed after its content was read is sent with the former content",
    tests: ["sending/drafts", "sending/departures", "sending/between"],
  },
  "teardown-without-fence": {
    file: "cluster/src/identity/Teardown.ts",
    from: "leftover as (delete from event where identity_id = ${identity.id} and exists (select from fence))",
    to: "leftover as (delete from event where identity_id = ${identity.id})",
    bug: "A process that lost an Identity deletes its Events",
    tests: ["identity/teardown"],
  },
}
