/** Identities that send messages like their actors, in statements that the tests share. */
import { createSecretKey } from "node:crypto"
import type { OwnIdentity, Write } from "@svc/cluster/actor/Write"
import type { OutboundMessage } from "@svc/cluster/mail/sending/OutboundMessage"
import * as OutboundBatch from "@svc/cluster/mail/sending/OutboundBatch"
import { Writes } from "@svc/cluster/store/Database"
import type { Initiator } from "@svc/domain/account/Initiator"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Effect, Redacted } from "effect"
import { makeIdentity, makeOrg } from "../harness/Actors.ts"
import { newHandle } from "../harness/Client.ts"
import { accountHolder, rows } from "../harness/Stores.ts"

const dataKey = Redacted.make(createSecretKey(new Uint8Array(32)))
const key: Initiator = { ...accountHolder, kind: "identity_key" }

/** Makes an Identity that sends like its actor, with a Webhook for approval requests. */
export const makeSender = Effect.fnUntraced(function* (stem: string) {
  const sql = yield* Writes
  const orgId = yield* makeOrg
  const handle = newHandle(stem)
  const { id } = yield* makeIdentity(orgId, handle)
  yield* sql`
    insert into webhook (id, identity_id, url, event_types, status, created_at, version)
    values (${yield* makeUuidV7}::uuid, ${id}::uuid, 'https://receiver.example/', '{*}', 'active', now(), 1)`
  const [actor] = yield* sql<{ epoch: number }>`select epoch from actor where kind = 'Identity' and id = ${handle}`
  const identity: OwnIdentity = { id, handle, orgId, dataKey }
  let due = 0
  const write = (epochs: number): Write => ({
    sql,
    claim: { kind: "Identity", id: handle, epoch: actor!.epoch + epochs },
    fence: sql``,
    at: new Date(),
    by: key,
    due: () => due++,
    memory: new Map(),
    identity,
  })
  const departure = Effect.fnUntraced(function* (
    subject: string,
    change: Partial<OutboundMessage> & { readonly epochs?: number } = {},
  ) {
    const { epochs = 0, ...other } = change
    const message_id = yield* makeUuidV7
    const raw = Buffer.from(`Subject: ${subject}\r\n\r\n${handle} says ${subject}\r\n`)
    const person = (address: string) => ({ address, name: null })
    const departure: OutboundMessage = {
      write: write(epochs),
      mail: {
        message_id,
        message_id_header: `<${message_id}@mail.localhost>`,
        from: person(`${handle}@mail.localhost`),
        to: [person("grace@one.example"), person("alan@two.example")],
        cc: [],
        bcc: [],
        reply_to: [],
        subject,
        snippet: subject,
        in_reply_to: null,
        references: [],
        attachments: [],
        size: raw.length,
        sha256: new Uint8Array(32),
        content: { raw, text: subject, html: null, headers: [], search_text: `${subject} to find` },
      },
      recipient: "grace@one.example",
      rows: [
        { id: yield* makeUuidV7, domain: "one.example", addresses: ["grace@one.example"] },
        { id: yield* makeUuidV7, domain: "two.example", addresses: ["alan@two.example"] },
      ],
      answers: null,
      draftVersion: null,
      submissionKey: undefined,
      waits: false,
      near: null,
      ...other,
    }
    return departure
  })
  const stored = rows(
    (sql) => sql<{ subject: string; uid: number; raw: string; status: string; people: string; due: number }>`
      select m.summary ->> 'subject' as subject, p.uid, convert_from(c.raw, 'UTF8') as raw, g.status,
             (select string_agg(r.address, ' ' order by r.address) from outgoing_recipient r join outbox o on o.id = r.outbox_id
              where r.message_id = m.id and o.message_id = m.id) as people,
             (select count(*)::int from outbox o where o.message_id = m.id and o.next_attempt_at = g.created_at) as due
      from message m join placed p on p.message_id = m.id join folder f on f.id = p.folder_id and f.use = 'sent'
      join message_content c on c.message_id = m.id and c.identity_id = m.identity_id
      join outgoing g on g.message_id = m.id and g.identity_id = m.identity_id
      where m.identity_id = ${id} and m.direction = 'outbound' order by m.uid`,
  )
  const raisedEvents = rows(
    (sql) => sql<{ type: string; data: Record<string, unknown>; by: string; deliveries: number }>`
      select type, data, caused_by ->> 'kind' as by,
             (select count(*)::int from delivery d where d.event_id = e.id and d.identity_id = ${id}) as deliveries
      from event e where org_id = ${orgId}::uuid and (type like 'email.%' or type like 'limit.%') order by seq`,
  )
  return { id, handle, departure, stored, told: raisedEvents, due: () => due }
})

type Sender = Effect.Success<ReturnType<typeof makeSender>>

/** Sends messages in the same turn, and so in one statement. */
export const depart = (...departures: ReadonlyArray<OutboundMessage>) =>
  Effect.flatMap(OutboundBatch.OutboundBatch, ({ store }) =>
    Effect.all(
      departures.map((departure) => Effect.exit(store(departure))),
      { concurrency: "unbounded" },
    ),
  )

/** The number of statements that wait for a lock. */
export const blocked = rows(
  (sql) => sql<{ n: number }>`
    select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
)

export const subjects = ({ stored }: Sender) => Effect.map(stored, (found) => found.map(({ subject }) => subject))
