/**
 * Every lease, fence and version column of the schema has tests that fail if a holder that lost it can still write. Each entry names the
 * planted bugs that remove the comparison; each bug names the tests that detect it (`npm run mutants`).
 */
import { readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "../mutants/Mutant.ts"
import { mutants } from "../mutants/Mutants.ts"

const schema = path.join(root, "packages", "cluster", "src", "store", "schema")

/** Columns by which a write detects that its holder is stale. */
const isGuard = /^(?:epoch|until|version|switch_version|attempt_started_at|\w*lease\w*|\w*_epoch|\w*fence\w*|holder)$/

const columns = readdirSync(schema).flatMap((file) =>
  [
    ...readFileSync(path.join(schema, file), "utf8").matchAll(/`create (?:unlogged )?table (\w+) \((.*?)\n {2}\)/gs),
  ].flatMap(([, table, body]) =>
    [...body!.matchAll(/^ {4}(\w+) /gm)]
      .filter(([, column]) => isGuard.test(column!))
      .map(([, column]) => `${table}.${column}`),
  ),
)

/** The planted bugs of each column, or why a stale value cannot exist. */
const guards: Readonly<Record<string, ReadonlyArray<string> | string>> = {
  "actor.epoch": ["fence-of-any-epoch", "batched-write-ignores-epoch"],
  "actor_permit.epoch": ["stop-forgets-former-owners"],
  "actor_permit.until": ["permit-without-end", "permit-survives-stop"],
  "card.version": ["card-of-any-version"],
  "delivery.attempt_started_at": ["delivery-recorded-by-anyone"],
  "draft.version": ["draft-of-any-version", "sent-draft-of-any-version", "draft-sent-in-any-version"],
  "draft_picture.version":
    "records which version of a draft its message shows; it is compared with the draft and not held",
  "mailbox.switch_version": ["mail-status-of-any-version"],
  "outbox.attempt_started_at": [
    "content-sent-under-a-lost-lease",
    "stale-attempt-under-open-permit",
    "outcome-of-a-lost-lease",
    "lost-lease-renewed",
    "lost-lease-goes-on",
    "lease-given-back-by-others",
  ],
  "terms_acceptance.version": "names the accepted Terms; a row never changes",
  "tunnel_link.lease_until": ["dead-successor-replaces"],
  "vault_secret.version": "counts the values of a secret under a lock on its row; a value never replaces another",
  "vault_version.version": "is the number of a value, which never changes",
  "webhook.version": ["webhook-of-any-version"],
}

describe("A stale holder", () => {
  it("is planned for in every lease, fence and version of the schema", () => {
    expect(columns.toSorted()).toEqual(Object.keys(guards).toSorted())
  })

  it.each(Object.entries(guards))("of %s is noticed by tests of planted bugs", (_, names) => {
    if (typeof names === "string") return expect(names).toMatch(/\w+ \w+/)
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect(mutants[name]?.tests.length, name).toBeGreaterThan(0)
  })
})
