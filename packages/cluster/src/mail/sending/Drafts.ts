/**
 * Stores drafts. Callers write drafts directly to the database, like Vault secrets: a draft can be large, queues no
 * work and raises no Event. Sending a draft is a command of the actor, whose commit deletes the draft. The message has
 * the draft's id, so a draft cannot be sent twice.
 */
import type { IdentityId } from "@svc/domain/IdentityRef"
import { fromPublic, toPublic } from "@svc/domain/Ids"
import { type Draft, type DraftSummary, NewMail } from "@svc/domain/mail/Sending"
import type { PageRequest } from "@svc/domain/Paging"
import { type IfVersion, matches } from "@svc/domain/Precondition"
import { notReady } from "@svc/domain/identity/NotReady"
import { Conflict, NotFound, PreconditionFailed } from "@svc/domain/problems/Problem"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { AuditNote } from "../../actor/Write.ts"
import { auditWriteWith } from "../../audit/AuditWrite.ts"
import { ChangeFeed } from "../../feed/ChangeFeed.ts"
import * as Cursors from "../../sealing/Cursors.ts"
import { Sealing } from "../../sealing/Sealing.ts"
import { orUnavailable, Reads, Writes } from "../../store/Database.ts"

/** Maximum drafts per Identity: at 10 MiB each as much as a Mailbox. */
const atMost = 100

interface Row {
  readonly id: string
  readonly version: number
  readonly content: string
  readonly created_at: Date
  readonly updated_at: Date
}

interface SummaryRow extends Omit<Row, "content"> {
  readonly summary: Pick<DraftSummary, "to" | "cc" | "bcc" | "subject" | "snippet" | "attachments">
}

const Stored = Schema.fromJsonString(NewMail)
const decode = Schema.decodeUnknownEffect(Stored)
const encode = Schema.encodeEffect(Stored)

const summaryOf = (mail: NewMail): SummaryRow["summary"] => ({
  to: mail.to ?? [],
  cc: mail.cc ?? [],
  bcc: mail.bcc ?? [],
  subject: mail.subject ?? "",
  snippet: (mail.text ?? "").slice(0, 2_000).replace(/\s+/g, " ").trim().slice(0, 200).toWellFormed(),
  attachments: (mail.attachments ?? []).map(({ filename, content_type }) => ({ filename, content_type })),
})

const missing = () => new NotFound({ detail: "The draft does not exist." })

const make = Effect.gen(function* () {
  const reads = yield* Reads
  const writes = yield* Writes
  const sealing = yield* Sealing
  const feed = yield* ChangeFeed

  /** Notifies mail clients, which show drafts in a folder. */
  const announce = (org: string, identity: string) => Effect.sync(() => feed.announce({ org, identity }))

  const uuidOf = (id: string) => {
    const uuid = fromPublic("msg_", id)
    return uuid === undefined ? Effect.fail(missing()) : Effect.succeed(uuid)
  }

  const read = Effect.fnUntraced(function* (identityId: IdentityId, uuid: string) {
    const [row] = yield* reads<Row>`
      select id, version, content, created_at, updated_at from draft where id = ${uuid} and identity_id = ${identityId}`
    if (row === undefined) return yield* missing()
    const mail = yield* Effect.orDie(decode(row.content))
    const draft: Draft = {
      id: toPublic("msg_", row.id),
      ...mail,
      created_at: row.created_at,
      updated_at: row.updated_at,
    }
    return { draft, mail, version: row.version }
  })

  const versionOf = Effect.fnUntraced(function* (identityId: IdentityId, uuid: string, condition: IfVersion) {
    const [row] = yield* reads<{ version: number }>`
      select version from draft where id = ${uuid} and identity_id = ${identityId}`
    // A precondition on a missing resource fails, whatever it names (RFC 9110 section 13.1.1).
    if (row === undefined) {
      return yield* condition === null ? missing() : new PreconditionFailed({ detail: "The draft does not exist." })
    }
    if (!matches(condition, row.version)) {
      return yield* new PreconditionFailed({ detail: `The draft is at version ${row.version}.` })
    }
    return row.version
  })

  /**
   * The draft was changed or deleted since it was read; a caller without a precondition can only have missed a
   * deletion.
   */
  const overtaken = (condition: IfVersion) =>
    condition === null ? missing() : new PreconditionFailed({ detail: "The draft was changed meanwhile." })

  return {
    /** Lists drafts, oldest first. */
    list: (identityId: IdentityId, request: PageRequest) =>
      orUnavailable(
        Cursors.page(
          sealing,
          `drafts/${identityId}`,
          request,
          (behind, most) => reads<SummaryRow>`
            select id, version, summary, created_at, updated_at from draft
            where identity_id = ${identityId} ${behind === undefined ? reads`` : reads`and id > ${behind}::uuid`}
            order by id limit ${most}`,
          ({ id }) => id,
          ({ id, summary, created_at, updated_at }): DraftSummary => ({
            id: toPublic("msg_", id),
            ...summary,
            created_at,
            updated_at,
          }),
        ),
      ),

    read: Effect.fn("Drafts.read")(function* (identityId: IdentityId, id: string) {
      return yield* read(identityId, yield* uuidOf(id))
    }, orUnavailable),

    /** Returns the Identity's id if it may store another draft. */
    ownerWithRoom: (identityId: string) =>
      orUnavailable(
        Effect.map(
          reads<{ id: IdentityId }>`
            select i.id from identity i where i.id = ${identityId}::uuid
              and (select count(*) from draft d where d.identity_id = i.id) < ${atMost}`,
          ([row]) => row?.id,
        ),
      ),

    /** Creates a draft under the id of the command: a repeat does not create another. */
    create: Effect.fn("Drafts.create")(function* (
      identityId: IdentityId,
      uuid: string,
      mail: NewMail,
      note?: AuditNote,
    ) {
      const at = new Date(yield* Clock.currentTimeMillis)
      const content = yield* Effect.orDie(encode(mail))
      const [row] = yield* writes.withTransaction(
        Effect.andThen(
          // The drafts of an Identity are created one after another, so that the count is exact.
          writes`select from identity where id = ${identityId} for no key update`,
          writes<{ status: string; org_id: string; made: boolean }>`
            with owner as (select id, org_id, status from identity where id = ${identityId}),
            made as (
              insert into draft (id, identity_id, version, summary, content, created_at, updated_at)
              select ${uuid}::uuid, owner.id, 1, ${JSON.stringify(summaryOf(mail))}::jsonb, ${content}::text, ${at}::timestamptz, ${at}::timestamptz
              from owner
              where owner.status = 'ready'
                and (select count(*) from draft where identity_id = owner.id) < ${atMost}
              on conflict (id) do nothing
              returning id
            ) ${auditWriteWith(writes, note, "made")}
            select status, org_id, exists (select from made) or exists (select from draft where id = ${uuid}::uuid) as made from owner`,
        ),
      )
      if (row === undefined) return yield* new NotFound({ detail: "The Identity does not exist." })
      if (row.status !== "ready") return yield* notReady(row.status)
      if (!row.made) return yield* new Conflict({ detail: `An Identity keeps at most ${atMost} drafts.` })
      yield* announce(row.org_id, identityId)
    }, orUnavailable),

    replace: Effect.fn("Drafts.replace")(function* (
      identityId: IdentityId,
      id: string,
      mail: NewMail,
      condition: IfVersion,
      note?: AuditNote,
    ) {
      const uuid = yield* uuidOf(id)
      const version = yield* versionOf(identityId, uuid, condition)
      const at = new Date(yield* Clock.currentTimeMillis)
      const content = yield* Effect.orDie(encode(mail))
      const [changed] = yield* writes<{ org_id: string }>`
        with changed as (
          update draft d set version = version + 1, summary = ${JSON.stringify(summaryOf(mail))}::jsonb, content = ${content}::text,
                 updated_at = ${at}::timestamptz
          from identity i
          where d.id = ${uuid} and d.identity_id = ${identityId} and i.id = d.identity_id
            ${condition === null ? writes`` : writes`and version = ${version}`}
          returning i.org_id
        ) ${auditWriteWith(writes, note, "changed")}
        select org_id from changed`
      if (changed === undefined) return yield* overtaken(condition)
      yield* announce(changed.org_id, identityId)
    }, orUnavailable),

    remove: Effect.fn("Drafts.remove")(function* (
      identityId: IdentityId,
      id: string,
      condition: IfVersion,
      note?: AuditNote,
    ) {
      const uuid = yield* uuidOf(id)
      const version = yield* versionOf(identityId, uuid, condition)
      const [deleted] = yield* writes<{ org_id: string }>`
        with gone as (
          delete from draft d using identity i where d.id = ${uuid} and d.identity_id = ${identityId} and i.id = d.identity_id
            ${condition === null ? writes`` : writes`and version = ${version}`} returning i.org_id
        ) ${auditWriteWith(writes, note, "gone")}
        select org_id from gone`
      if (deleted === undefined) return yield* overtaken(condition)
      yield* announce(deleted.org_id, identityId)
    }, orUnavailable),
  }
})

export class Drafts extends Context.Service<Drafts, Effect.Success<typeof make>>()("@svc/cluster/mail/sending/Drafts") {
  static readonly layer = Layer.effect(Drafts, make)
}
