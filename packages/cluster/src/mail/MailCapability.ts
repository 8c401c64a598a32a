/** Mail of an Identity: receiving, reading, sending, folders and settings. */
import { Effect } from "effect"
import { type Capability, cascades, derived, exportedRows, kept, shortLived, workState } from "../Capability.ts"
import * as Cursors from "../sealing/Cursors.ts"
import * as AgentClaims from "./AgentClaims.ts"
import * as Folders from "./folders/Folders.ts"
import { InboundBatch } from "./InboundBatch.ts"
import * as Mailbox from "./Mailbox.ts"
import * as MailExport from "./MailExport.ts"
import * as MailSettings from "./MailSettings.ts"
import { MailSettingsQueries } from "./MailSettingsQueries.ts"
import { MessageQueries } from "./MessageQueries.ts"
import * as Approvals from "./sending/Approvals.ts"
import * as Bounces from "./sending/Bounces.ts"
import { Drafts } from "./sending/Drafts.ts"
import { OutboundBatch } from "./sending/OutboundBatch.ts"
import * as OutboxQueue from "./sending/outbox/OutboxQueue.ts"
import * as SendHandlers from "./sending/SendHandlers.ts"
import { SendingGate } from "./sending/outbox/SendingGate.ts"
import { SendingQueries } from "./sending/SendingQueries.ts"
import { UsageCounters } from "../usage/UsageCounters.ts"
import { ThreadQueries } from "./ThreadQueries.ts"

export const mail = {
  name: "mail",
  handlers: Effect.fnUntraced(function* ({ handling, limits }) {
    const usage = yield* UsageCounters
    return {
      ...Mailbox.handlers(handling, limits, yield* InboundBatch, usage),
      ...Folders.handlers(handling, limits),
      ...MailSettings.handlers(handling, yield* SendingGate),
      ...SendHandlers.handlers(handling, limits, yield* OutboundBatch, usage),
      ...Approvals.handlers(handling, usage),
      ...Bounces.handlers(handling),
    }
  }),
  work: { identity: [OutboxQueue.source, Approvals.source, AgentClaims.source], org: [] },
  queries: [MessageQueries.layer, ThreadQueries.layer, MailSettingsQueries.layer, SendingQueries.layer, Drafts.layer],
  exports: [
    exportedRows(
      "allowed_recipients.jsonl",
      Effect.fnUntraced(function* ({ id }) {
        const settings = yield* MailSettingsQueries
        return yield* Cursors.all((request) => settings.recipients(id, request))
      }),
    ),
    { members: ["drafts.jsonl"], ofIdentity: MailExport.drafts },
    { members: ["folders.jsonl", "messages.jsonl", "*.mbox"], ofIdentity: MailExport.mailbox },
  ],
  tables: {
    placed: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from placed where ctid in (
            select p.ctid from folder f join placed p on p.folder_id = f.id where f.identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: "messages.jsonl",
    },
    vanished: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from vanished where ctid in (
            select v.ctid from folder f join vanished v on v.folder_id = f.id where f.identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: workState,
    },
    message: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from message where id in (select id from message where identity_id = ${id} limit ${limit}) returning id),
          contents as (delete from message_content c using gone where c.message_id = gone.id)
          select count(*)::int as n from gone`,
      },
      exported: "messages.jsonl",
    },
    message_content: { erased: { together: "message" }, exported: "*.mbox" },
    search_segment: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from search_segment where ctid in (
            select ctid from search_segment where identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: derived,
    },
    draft_picture: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from draft_picture where draft_id in (
            select draft_id from draft_picture where identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: derived,
    },
    thread_reference: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from thread_reference where ctid in (
            select ctid from thread_reference where identity_id = ${id} limit ${limit}) returning 1)
          select count(*)::int as n from gone`,
      },
      exported: derived,
    },
    draft: {
      erased: {
        inBatches: (sql, id, limit) => sql`
          with gone as (delete from draft where id in (select id from draft where identity_id = ${id} limit ${limit}) returning id)
          select count(*)::int as n from gone`,
      },
      exported: "drafts.jsonl",
    },
    thread: { erased: { by: "store/schema/mail.ts", statement: "delete from thread " }, exported: derived },
    agent_claim: cascades(workState),
    allowed_recipient: cascades("allowed_recipients.jsonl"),
    dkim_key: kept("of the service, not of an account"),
    folder: cascades("folders.jsonl"),
    folder_subscription: cascades(workState),
    greylist: shortLived,
    mail_use: cascades(workState),
    mailbox: cascades(derived),
    message_slice: kept("parts of a message that is being received, in an unlogged table"),
    outbox: cascades(workState),
    outgoing: cascades("messages.jsonl"),
    outgoing_recipient: cascades("messages.jsonl"),
    removed_message: cascades(workState),
    search_due: cascades(derived),
    system_mail: shortLived,
    unanswered_mail: shortLived,
  },
} satisfies Capability
