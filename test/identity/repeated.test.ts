/** Messages that an Identity's actor receives twice, for example after a lost response: their effect happens once. */
import { makeUuidV7 } from "@svc/domain/Ids"
import type { ReceivedMail } from "@svc/domain/mail/MailboxProtocol"
import { system } from "@svc/domain/account/Initiator"
import { webhooksAtMost } from "@svc/domain/webhooks/Webhook"
import { ask, onBehalfOf } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { IdentityQueries } from "@svc/cluster/identity/IdentityQueries"
import * as AuditWrite from "@svc/cluster/audit/AuditWrite"
import { storeAhead } from "@svc/cluster/mail/MessageContent"
import { Reads, Writes } from "@svc/cluster/store/Database"
import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { act, noKey } from "../audit/Acts.ts"
import { actors, identityOf, makeIdentity, makeOrg, waitUntil } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"

/** Creates a ready Identity. */
const ready = Effect.gen(function* () {
  const [org_id, handle] = [yield* makeOrg, newHandle("ada")]
  return { org_id, handle, ...(yield* makeIdentity(org_id, handle)) }
})

const rows = (table: string, identityId: string) =>
  Effect.flatMap(Reads, (sql) =>
    Effect.map(
      sql<{ n: number }>`select count(*)::int as n from ${sql(table)} where identity_id = ${identityId}`,
      ([row]) => row!.n,
    ),
  )

const mail = (to: string, message_id: string, received_at: Date, content: ReceivedMail["content"]): ReceivedMail => ({
  message_id,
  envelope_from: "grace@example.org",
  recipient: "ada@mail.localhost",
  tag: null,
  sha256: new Uint8Array([1, 2, 3]),
  key: Buffer.from(to),
  size: 5,
  received_at,
  origin: { verdict: "unverified", spf: "none", dkim: "none", dmarc: "none", domain: "example.org" },
  from: null,
  to: [],
  cc: [],
  bcc: [],
  reply_to: [],
  subject: "Hello",
  snippet: "Hello",
  message_id_header: null,
  in_reply_to: null,
  references: [],
  attachments: [],
  content,
})
const content = { raw: new TextEncoder().encode("Hello"), text: "Hello", html: null, headers: [], search_text: "hello" }

layer(actors(), { timeout: "60 seconds" })("a repeated message", (it) => {
  it.effect("creates one Identity, and counts once against the quota", () =>
    Effect.gen(function* () {
      const org_id = yield* makeOrg
      const handle = newHandle("ada")
      const create = { org_id, identity_id: yield* makeUuidV7, handle }
      const actor = (yield* Identities).of(handle)
      yield* ask(actor.Create(create))
      yield* ask(actor.Create(create))
      yield* waitUntil(identityOf(handle), (row) => row?.status === "ready")
      const sql = yield* Reads
      expect(yield* sql`select identities_created from org where id = ${org_id}`).toEqual([{ identities_created: 1 }])
      const other = yield* Effect.flip(ask(actor.Create({ ...create, identity_id: yield* makeUuidV7 })))
      expect(other).toMatchObject({ code: "handle_taken" })
    }),
  )

  it.effect("makes one Webhook, one secret, one rotation and one delivery", () =>
    Effect.gen(function* () {
      const { id, org_id, actor } = yield* ready
      const [webhook_id, secret_id, delivery_id] = [yield* makeUuidV7, yield* makeUuidV7, yield* makeUuidV7]
      const webhook = { org_id, webhook_id, url: "http://127.0.0.1:9/", event_types: ["*"], description: null }
      const made = yield* ask(actor.RegisterWebhook(webhook))
      yield* TestClock.adjust("1 second")
      expect(yield* ask(actor.RegisterWebhook(webhook))).toEqual(made)
      expect([yield* rows("webhook", id), yield* rows("signing_secret", id)]).toEqual([1, 1])
      yield* (yield* Writes)`
        insert into webhook (id, identity_id, url, event_types, created_at)
        select uuidv7(), ${id}, 'http://127.0.0.1:9/', '{mail.stopped}', now() from generate_series(2, ${webhooksAtMost}::int)`
      expect(yield* ask(actor.RegisterWebhook(webhook))).toEqual(made)

      const rotated = yield* ask(actor.RotateSecret({ org_id, secret_id }))
      expect(rotated.signing_secret).not.toBe(made.signing_secret)
      yield* TestClock.adjust("1 second")
      expect(yield* ask(actor.RotateSecret({ org_id, secret_id }))).toEqual(rotated)
      expect(yield* rows("signing_secret", id)).toBe(2)

      const test = { org_id, webhook_id, delivery_id, event_id: delivery_id }
      yield* ask(actor.TestWebhook(test))
      yield* ask(actor.TestWebhook(test))
      expect(yield* rows("delivery", id)).toBe(1)
      const replay = { ...test, delivery_id: yield* makeUuidV7 }
      yield* ask(actor.Replay(replay))
      yield* ask(actor.Replay(replay))
      expect(yield* rows("delivery", id)).toBe(2)
      // An Event of another account is unknown to the actor.
      const foreign = yield* makeUuidV7
      yield* (yield* Writes)`
        insert into event (id, org_id, type, data, created_at)
        values (${foreign}, ${yield* makeOrg}, 'mail.stopped', '{}', now())`
      const refused = yield* Effect.flip(ask(actor.Replay({ ...replay, event_id: foreign, delivery_id: foreign })))
      expect(refused).toMatchObject({ code: "not_found" })
    }),
  )

  it.effect("stores one message per DATA command, despite new ids and a large body sent ahead", () =>
    Effect.gen(function* () {
      const { id, actor } = yield* ready
      const at = new Date(yield* Clock.currentTimeMillis)
      const [first, second] = [yield* makeUuidV7, yield* makeUuidV7]
      const writes = yield* Writes
      yield* storeAhead(writes, first, content, at)
      yield* ask(actor.ReceiveMail(mail(id, first, at, null)))
      yield* storeAhead(writes, second, content, at)
      yield* ask(actor.ReceiveMail(mail(id, second, at, null)))
      yield* ask(actor.ReceiveMail(mail(id, yield* makeUuidV7, at, content)))
      expect(yield* rows("message", id)).toBe(1)
      const sql = yield* Reads
      expect(yield* sql`select uid_next, bytes_used::int from mailbox where identity_id = ${id}`).toEqual([
        { uid_next: 2, bytes_used: 5 },
      ])
      expect(yield* sql`select id from event where identity_id = ${id} and type = 'email.received'`).toHaveLength(1)
      // The body that was stored ahead for the second attempt belongs to no message; housekeeping removes it.
      expect(
        yield* sql`select 1 from message_content c where message_id in (${first}, ${second}) and not exists (select from message m where m.id = c.message_id)`,
      ).toHaveLength(1)
    }),
  )

  it.effect("leaves one active Identity Key after a rotation, and no secret after an acknowledgement", () =>
    Effect.gen(function* () {
      const { id, org_id, handle, actor } = yield* ready
      const sql = yield* Reads
      const live = sql<{ id: string }>`select id from api_key where identity_id = ${id} and revoked_at is null`
      const shown = sql<{ key_id: string }>`select key_id from show_once where identity_id = ${id}`
      yield* ask(actor.RotateKey({ org_id }))
      const [first] = yield* live
      yield* ask(actor.RotateKey({ org_id }))
      const keys = yield* live
      expect(keys).toHaveLength(1)
      expect(keys[0]!.id).not.toBe(first!.id)
      // The API returns the secret that works.
      expect(yield* shown).toEqual([{ key_id: keys[0]!.id }])
      // Expired secrets are not shown, although housekeeping has not removed them yet.
      const secrets = Effect.flatMap(IdentityQueries, (queries) => queries.secrets(org_id, handle))
      expect(yield* secrets).toHaveProperty("identity_key")
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* (yield* Writes)`update show_once set expires_at = ${now} where identity_id = ${id}`
      expect(yield* secrets).toEqual({})
      yield* ask(actor.Acknowledge({ org_id }))
      yield* ask(actor.Acknowledge({ org_id }))
      expect(yield* shown).toEqual([])
    }),
  )

  it.effect("leaves the Tunnel settings of the first message", () =>
    Effect.gen(function* () {
      const { id, org_id, actor } = yield* ready
      const sql = yield* Reads
      const settings = sql`select settings, password_hash is not null as guarded from tunnel_setting where identity_id = ${id}`
      const patch = { host_header: "local", basic_auth: { username: "ada", password: "countess" } } as const
      yield* ask(actor.PatchTunnel({ org_id, patch }))
      const [first] = yield* settings
      expect(first).toMatchObject({ settings: { host_header: "local" }, guarded: true })
      yield* ask(actor.PatchTunnel({ org_id, patch }))
      expect(yield* settings).toEqual([first])
    }),
  )

  it.effect("has an audit record like the first one, even if it has nothing to change", () =>
    Effect.gen(function* () {
      const [org_id, handle] = [yield* makeOrg, newHandle("ada")]
      const actor = (yield* Identities).of(handle)
      const noted = (requestId: string, command?: string) =>
        Effect.map(AuditWrite.make(noKey, act(org_id, { requestId })), (note) =>
          onBehalfOf(system, command, AuditWrite.toNote(note)),
        )
      const create = { org_id, identity_id: yield* makeUuidV7, handle }
      yield* ask(actor.Create(create, yield* noted("create")))
      yield* ask(actor.Create(create, yield* noted("create again")))
      yield* waitUntil(identityOf(handle), (row) => row?.status === "ready", 0)
      yield* ask(actor.Retry({ org_id }, yield* noted("retry")))
      const [patch, command] = [{ org_id, patch: { name: "Ada" }, if_version: [1] }, yield* makeUuidV7]
      yield* ask(actor.PatchCard(patch, yield* noted("patch", command)))
      yield* ask(actor.PatchCard(patch, yield* noted("patch again", command)))
      const stop = { org_id, patch: { outgoing: "stopped" as const }, if_version: [1] }
      yield* ask(actor.SwitchMail(stop, yield* noted("stop", command)))
      yield* ask(actor.SwitchMail(stop, yield* noted("stop again", command)))
      // The API records a command that the actor refuses, with the reason.
      yield* Effect.flip(ask(actor.PatchCard(patch, yield* noted("refused"))))
      yield* Effect.flip(ask(actor.SwitchMail(stop, yield* noted("refused too"))))
      yield* ask(actor.Delete({ org_id }, yield* noted("delete")))
      const sql = yield* Reads
      const kept = yield* sql<{
        id: string
      }>`select request_id as id from audit where org_id = ${org_id} order by audit.id`
      expect(kept.map(({ id }) => id)).toEqual([
        "create",
        "create again",
        "retry",
        "patch",
        "patch again",
        "stop",
        "stop again",
        "delete",
      ])
    }),
  )

  it.effect("deletes an Identity once and then reports it as not found", () =>
    Effect.gen(function* () {
      const sql = yield* Reads
      const { org_id, handle, actor } = yield* ready
      yield* ask(actor.Delete({ org_id }))
      yield* Effect.exit(ask(actor.Delete({ org_id })))
      yield* waitUntil(identityOf(handle), (row) => row === undefined)
      // The store shows the new state shortly before the actor has it; until then the actor responds as to the second message.
      const repeated = Effect.match(ask(actor.Delete({ org_id })), {
        onFailure: (refusal): unknown => refusal,
        onSuccess: () => undefined,
      })
      const { value } = yield* waitUntil(repeated, (refusal) => refusal !== undefined, 0)
      expect(value).toMatchObject({ code: "not_found" })
      expect(yield* sql`select type from event where org_id = ${org_id} and type = 'identity.deleted'`).toHaveLength(1)
    }),
  )
})
