/**
 * Every table of the schema, as the database's own catalogue has it, with who owns its rows: how they go with an account or an
 * Identity, and whether the account holder takes them along in an export. A table that is missing here fails the test.
 */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { expect, layer } from "@effect/vitest"
import * as Tables from "@svc/cluster/backup/Tables"
import { Unhurried } from "@svc/cluster/store/Database"
import { Effect } from "effect"
import { databaseLayer } from "../harness/Database.ts"

const cluster = path.join(import.meta.dirname, "..", "..", "packages", "cluster", "src")
const teardown = "identity/Teardown.ts"
const accountDeletion = "account/AccountDeletion.ts"
const exports_ = "account/exports/Contents.ts"

/** How the rows of a table go: by foreign keys that cascade, by a statement in the named file, or not, for the reason given. */
type Erased = "cascade" | { readonly by: string; readonly statement?: string } | { readonly stays: string }
/** The member of an export that has the rows, or why none has. */
type Exported = { readonly in: string } | { readonly not: string }
interface Owner {
  readonly erased: Erased
  readonly exported: Exported
}

const cascade = (exported: Exported): Owner => ({ erased: "cascade", exported })
const stays = (reason: string): Owner => ({ erased: { stays: reason }, exported: { not: reason } })
const of = (member: string): Exported => ({ in: member })
const not = (reason: string): Exported => ({ not: reason })

const derived = not("derived from what is exported")
const credential = not("a credential, or what it is made of")
const inner = not("state of work that ends by itself")
const ofTheService = stays("of the service, not of an account")
const shortLived = stays("names no person, and goes by its age")

const owners: Readonly<Record<string, Owner>> = {
  actor: stays("a counter under the Handle, which stays taken"),
  actor_command: shortLived,
  allowed_recipient: cascade(of("allowed_recipients.jsonl")),
  api_key: cascade(of("api_keys.jsonl")),
  audit: { erased: { by: accountDeletion, statement: '"audit"' }, exported: not("has an export of its own") },
  audit_head: cascade(not("the end of the audit log, which has an export of its own")),
  audit_seal: { erased: { by: accountDeletion, statement: '"audit_seal"' }, exported: not("has an export of its own") },
  audit_usage: cascade(not("counts, in GET /api/audit/usage")),
  backup: ofTheService,
  call_window: cascade(inner),
  card: cascade(of("cards.jsonl")),
  client_grant: cascade(credential),
  connector: cascade(of("connectors.jsonl")),
  connector_authorization: cascade(inner),
  connector_heard: cascade(inner),
  connector_kept: cascade(inner),
  connector_pause: cascade(inner),
  connector_registration: cascade(credential),
  connector_revocation: cascade(inner),
  connector_sent: cascade(inner),
  delivery: { erased: { by: teardown }, exported: not("what became of Events that are exported") },
  device_authorization: cascade(credential),
  dkim_key: ofTheService,
  draft: cascade(of("drafts.jsonl")),
  draft_picture: cascade(derived),
  event: cascade(of("events.jsonl")),
  export: cascade(not("the exports themselves")),
  export_piece: cascade(not("the exports themselves")),
  folder: cascade(of("folders.jsonl")),
  folder_subscription: cascade(inner),
  grant_notice: cascade(inner),
  greylist: shortLived,
  handle: stays("a Handle stays taken for ever"),
  idempotency_record: shortLived,
  identity: {
    erased: { by: "identity/SagaSource.ts", statement: "delete from identity" },
    exported: of("identities.jsonl"),
  },
  magic_link: cascade(credential),
  mail_use: cascade(inner),
  mailbox: cascade(derived),
  message: { erased: { by: teardown }, exported: of("messages.jsonl") },
  message_content: { erased: { by: teardown }, exported: of(".mbox") },
  message_slice: stays("parts of a message that is being taken in, in memory of the database"),
  oauth_client: stays("what apps say of themselves"),
  oauth_request: cascade(credential),
  oauth_token: cascade(credential),
  org: {
    erased: { by: accountDeletion, statement: "delete from org" },
    exported: not("the account, in GET /api/account"),
  },
  outbox: cascade(inner),
  outgoing: cascade(of("messages.jsonl")),
  outgoing_recipient: cascade(of("messages.jsonl")),
  page_view: stays("counts without a person"),
  placed: { erased: { by: teardown }, exported: of("messages.jsonl") },
  public_limit: shortLived,
  removed_message: cascade(inner),
  removed_webhook: shortLived,
  sealing_canary: ofTheService,
  search_due: cascade(derived),
  search_segment: cascade(derived),
  service_key: ofTheService,
  session: cascade(credential),
  show_once: cascade(credential),
  signing_secret: cascade(credential),
  svc_migrations: ofTheService,
  svc_schema: ofTheService,
  system_mail: shortLived,
  terms_acceptance: cascade(not("in GET /api/account")),
  thread: { erased: { by: "store/schema/mail.ts" }, exported: derived },
  thread_reference: { erased: { by: teardown }, exported: derived },
  tunnel_link: stays("a lease of 45 seconds"),
  tunnel_port: stays("a port that is free again"),
  tunnel_setting: cascade(not("settings, in GET /api/identities/{handle}/tunnel")),
  tunnel_transfer: cascade(inner),
  tunnel_usage: cascade(not("counts, in GET /api/identities/{handle}/tunnel")),
  unanswered_mail: shortLived,
  vanished: { erased: { by: teardown }, exported: inner },
  vault_secret: cascade(of("vault.jsonl")),
  vault_version: cascade(not("a value, which only a session's download adds")),
  webhook: cascade(of("webhooks.jsonl")),
}

/** Those of the cluster library, which are of the processes that run. */
const isOfTheCluster = (table: string) => table.startsWith("cluster_")

layer(databaseLayer)("every table of the schema", (it) => {
  const present = Effect.gen(function* () {
    const sql = yield* Unhurried
    const rows = yield* sql<{ name: string }>`
      select t.table_name::text as name from information_schema.tables t
      join pg_class c on c.relname = t.table_name and c.relnamespace = 'public'::regnamespace
      where t.table_schema = 'public' and t.table_type = 'BASE TABLE' and not c.relispartition order by 1`
    return rows.map(({ name }) => name).filter((name) => !isOfTheCluster(name))
  })

  it.effect("has an owner who says how it is erased and exported", () =>
    Effect.gen(function* () {
      const tables = yield* present
      expect(
        tables.filter((name) => owners[name] === undefined),
        `new tables: add their erasure (packages/cluster/src/${teardown}, or a foreign key that cascades), their export
         (packages/cluster/src/${exports_}), and a line for each to owners in test/store/owners.test.ts`,
      ).toEqual([])
      expect(Object.keys(owners).filter((name) => !tables.includes(name))).toEqual([])
    }),
  )

  it.effect("is erased as its owner says", () =>
    Effect.gen(function* () {
      const sql = yield* Unhurried
      const keys = yield* sql<{ child: string; parent: string }>`
        select conrelid::regclass::text as child, confrelid::regclass::text as parent from pg_constraint
        where contype = 'f' and confdeltype = 'c' and connamespace = 'public'::regnamespace`
      const goes = (name: string): boolean =>
        name === "org" ||
        name === "identity" ||
        name === "message" ||
        keys.some(({ child, parent }) => child === name && parent !== name && goes(parent))
      for (const [name, { erased }] of Object.entries(owners)) {
        if (erased === "cascade")
          expect(goes(name), `${name}: no foreign key cascades; add it to ${teardown}`).toBe(true)
        else if ("by" in erased)
          expect(
            readFileSync(path.join(cluster, erased.by), "utf8").includes(erased.statement ?? `delete from ${name} `),
            `${name}: ${erased.by} does not remove it`,
          ).toBe(true)
      }
      // Nothing that names an account or an Identity stays for a reason that is not given here.
      const named = yield* sql<{ name: string }>`
        select distinct table_name::text as name from information_schema.columns
        where table_schema = 'public' and column_name in ('org_id', 'identity_id')`
      const staying = named
        .map(({ name }) => name)
        .filter((name) => {
          const owner = owners[name]
          return owner !== undefined && typeof owner.erased === "object" && "stays" in owner.erased
        })
      expect(staying.toSorted()).toEqual(["handle", "tunnel_link", "tunnel_port"])
    }),
  )

  it.effect("is exported as its owner says", () =>
    Effect.sync(() => {
      const contents = readFileSync(path.join(cluster, exports_), "utf8")
      for (const [name, { exported }] of Object.entries(owners))
        if ("in" in exported) expect(contents, `${name}: add it to ${exports_}`).toContain(exported.in)
    }),
  )

  it.effect("is in a backup", () =>
    Effect.gen(function* () {
      const stored = yield* Tables.tables(yield* Unhurried)
      const expected = (yield* present).filter((name) => name !== "svc_migrations")
      expect(stored.map(({ name }) => name).toSorted()).toEqual(expected.toSorted())
    }),
  )
})
