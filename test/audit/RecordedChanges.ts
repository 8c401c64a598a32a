/** Changes whose statement also stores their audit record, each with the table that it writes. */
import { call } from "../harness/Client.ts"
import type { startService } from "../harness/Service.ts"
import { insertSignIn } from "../harness/SignIns.ts"

type TestService = Awaited<ReturnType<typeof startService>>

export const at = (path: string) => `/api/identities/ada${path}`
const startDevice = async ({ base }: TestService): Promise<Record<string, any>> =>
  (await call(base, "POST", "/api/auth/device", { body: { name: "laptop" } })).body
const addSignIn = ({ query }: TestService) => query<{ readonly id: string }>((sql) => insertSignIn(sql, "ada"))
const insertGrant = ({ query }: TestService) =>
  query<{ readonly id: string }>(
    (sql) => sql`
      insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
      select uuidv7(), org_id, 'oc_x', 'x', 'x', '', '', '{mail:read,mail:send}', now(), now() + interval '1 day'
      from identity where handle = 'ada' returning id`,
  )

/** The path may depend on the response of the case before (`last`). */
export const changes: ReadonlyArray<
  readonly [
    action: string,
    method: string,
    path: (service: TestService, last: Record<string, any>) => string | Promise<string>,
    body: unknown,
    table: string,
  ]
> = [
  ["api_keys.create", "POST", () => "/api/keys", { name: "one" }, "api_key"],
  ["api_keys.rotate", "POST", (_, last) => `/api/keys/${last["api_key"].id}/rotate`, {}, "api_key"],
  ["api_keys.revoke", "DELETE", (_, last) => `/api/keys/${last["api_key"].id}`, undefined, "api_key"],
  [
    "device_confirmation.approve",
    "POST",
    async (service) => `/api/auth/device/${(await startDevice(service))["user_code"]}/approve`,
    {},
    "device_authorization",
  ],
  [
    "grants.update",
    "PATCH",
    async (service) => `/api/grants/${(await insertGrant(service))[0]!.id}`,
    { scopes: ["mail:read"] },
    "client_grant",
  ],
  ["grants.revoke", "DELETE", (_, last) => `/api/grants/${last["id"]}`, undefined, "client_grant"],
  ["cards.patch", "PATCH", () => at("/card"), { description: "at once" }, "card"],
  ["vault.put", "PUT", () => "/api/vault/secrets/one", { value: "v" }, "vault_version"],
  ["vault.restore", "POST", () => "/api/vault/secrets/one/restore", { version: 1 }, "vault_version"],
  ["vault.remove", "DELETE", () => "/api/vault/secrets/one", undefined, "vault_secret"],
  [
    "mail_settings.allow",
    "POST",
    () => at("/allowed-recipients"),
    { address: "bob@mail.localhost" },
    "allowed_recipient",
  ],
  ["sending.send", "POST", () => at("/messages/send"), { to: ["bob@mail.localhost"], text: "x" }, "mail_use"],
  ["sending.draft", "POST", () => at("/drafts"), { text: "x" }, "draft"],
  ["sending.replaceDraft", "PUT", (_, last) => at(`/drafts/${last["id"]}`), { text: "y" }, "draft"],
  ["sending.removeDraft", "DELETE", (_, last) => at(`/drafts/${last["id"]}`), undefined, "draft"],
  ["proof.updateSettings", "PATCH", () => at("/proof"), { audiences: ["shop.example"] }, "proof_setting"],
  [
    "agent_sign_ins.approve",
    "POST",
    async (service) => at(`/sign-ins/${(await addSignIn(service))[0]!.id}/approve`),
    {},
    "agent_sign_in",
  ],
  [
    "agent_sign_ins.refuse",
    "POST",
    async (service) => at(`/sign-ins/${(await addSignIn(service))[0]!.id}/refuse`),
    {},
    "agent_sign_in",
  ],
  [
    "agent_sign_ins.end",
    "DELETE",
    async (service) => at(`/sign-ins/${(await addSignIn(service))[0]!.id}`),
    undefined,
    "agent_sign_in",
  ],
  [
    "webhooks.create",
    "POST",
    () => at("/webhooks"),
    { url: "https://example.org/", event_types: ["email.received"] },
    "webhook",
  ],
  ["identities.create", "POST", () => "/api/identities", { handle: "carol" }, "handle"],
]

/** Notes in `test_written` which transaction writes a row of these tables, also if it deletes the row. */
export const watchWrites = async ({ query }: TestService) => {
  await query((sql) => sql`create table test_written (name text, xid xid default pg_current_xact_id()::xid)`)
  await query(
    (sql) => sql`create function test_written() returns trigger language plpgsql as
      $$ begin insert into test_written values (tg_table_name); return null; end $$`,
  )
  for (const table of new Set(changes.map(([, , , , table]) => table)))
    await query(
      (sql) => sql`create trigger test_written after insert or update or delete on ${sql(table)}
        for each row execute function test_written()`,
    )
}
