/**
 * Accepts messages to send: a message is checked, then stored in the Mailbox and the outbox in one commit, so an
 * accepted message is durable. The command determines the message id, so a repeated command sends once. A message that
 * a person must approve is stored in the same rows without a due time. Messages submitted again by a mail client are
 * recognized by their submission key.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { domainOf } from "@svc/domain/mail/AddrSpec"
import type { Acceptance, Recipient, SendMail } from "@svc/domain/mail/SendingProtocol"
import { nearAt } from "@svc/domain/limits/LimitApi"
import { Conflict, MessageInvalid, NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import type { Rpc } from "effect/rpc"
import type { ActorHandlers } from "../../actor/ActorHandlers.ts"
import type { Write } from "../../actor/Write.ts"
import type { OutboxRow } from "./OutboundMessage.ts"
import type { OutboundBatch } from "./OutboundBatch.ts"
import type { UsageCounters } from "../../usage/UsageCounters.ts"
import type { SendingState } from "./SendingState.ts"
import * as NearlyFull from "../NearlyFull.ts"
import { judgeRecipients, overHour, paused } from "./SendingPolicy.ts"

interface SendingLimits {
  /** Capacity of a Mailbox in bytes. */
  readonly mailboxBytes: number
  /** Messages that an Identity may send within an hour. */
  readonly mailHourly: number
}

type Command = Rpc.Payload<typeof SendMail>

type OutboundStore = OutboundBatch["Service"]

/** Checks and stores a message within one turn of the actor, in statements that may be shared with other Identities. */
export const handlers = (
  { onReady }: ActorHandlers,
  limits: SendingLimits,
  departures: OutboundStore,
  usage: UsageCounters["Service"],
) => ({
  SendMail: onReady((write, command: Command) => send(write, command, limits, departures, usage)),
})

/** Returns the acceptance of an earlier submission of the same message. */
const submitted = Effect.fnUntraced(function* ({ sql, identity }: Write, key: Uint8Array) {
  const [before] = yield* sql<{ id: string; status: string; message_id: string }>`
    select m.id, o.status, m.message_id from outgoing o join message m on m.id = o.message_id
    where o.identity_id = ${identity.id} and o.submission_key = ${key}`
  if (before === undefined) return undefined
  if (before.status === "refused") {
    return yield* new MessageInvalid({
      detail: "This message was submitted before and was not approved.",
      errors: [],
    })
  }
  const known: Acceptance = {
    status: before.status === "awaiting_approval" ? "awaiting_approval" : "queued",
    message_id_header: before.message_id,
    message_id: before.id,
  }
  return known
})

/** Whether the message was made from a draft version that is no longer current. */
const isAnother = ({ draft_version }: Command, { draft }: SendingState) =>
  draft_version !== null && draft !== draft_version

const otherDraft = ({ draft }: SendingState) =>
  draft === null
    ? new NotFound({ detail: "The draft does not exist." })
    : new Conflict({ detail: "The draft was changed meanwhile.", agent_hint: "wait" })

const noMailbox = () => new NotFound({ detail: "The Identity has no Mailbox." })

const send = Effect.fnUntraced(function* (
  write: Write,
  command: Command,
  limits: SendingLimits,
  departures: OutboundStore,
  usage: UsageCounters["Service"],
) {
  const { mail, recipients } = command
  const before = command.submission_key === undefined ? undefined : yield* submitted(write, command.submission_key)
  if (before !== undefined) return before
  const verdict = yield* departures.judge({ write, id: mail.message_id, recipients })
  if (verdict === undefined) return yield* noMailbox()
  if (verdict.known !== null) {
    const known: Acceptance = { status: verdict.known, message_id_header: verdict.known_id! }
    return known
  }
  if (isAnother(command, verdict)) return yield* otherDraft(verdict)
  if (verdict.stopped) return yield* paused(verdict.stop_reason)
  yield* judgeRecipients(write, mail.subject, recipients, verdict.refused)
  if (verdict.used >= limits.mailHourly) return yield* overHour(limits.mailHourly, verdict, write.at)
  if (Number(verdict.bytes_used) + mail.size > limits.mailboxBytes) {
    return yield* new Conflict({ detail: "The Mailbox is full: a copy of the message has no room. Remove messages." })
  }
  // A caller that may approve messages needs no approval.
  const waits = verdict.approval === "required" && write.by.kind !== "session" && write.by.approves !== true
  const used = verdict.used + 1
  // Raised once per hour, by the message that reaches four fifths of the limit.
  const isNear = !verdict.near && used >= nearAt(limits.mailHourly)
  const stored = yield* departures.store({
    write,
    mail,
    recipient: recipients[0]!.address,
    rows: yield* rowsOf(recipients),
    answers: command.answers,
    draftVersion: command.draft_version,
    submissionKey: command.submission_key,
    waits,
    near: isNear ? { used, quota: limits.mailHourly } : null,
  })
  if (!stored) {
    // Drafts are written outside the actor, so this one may have changed since the check.
    const since = yield* departures.judge({ write, id: mail.message_id, recipients })
    return yield* since !== undefined && isAnother(command, since) ? otherDraft(since) : noMailbox()
  }
  yield* NearlyFull.warn(write, Number(verdict.bytes_used) + mail.size, limits.mailboxBytes)
  if (!waits) {
    usage.add({ identity: write.identity.id }, "mail_sent", { count: 1 })
    write.due("outbox")
  }
  const acceptance: Acceptance = {
    status: waits ? "awaiting_approval" : "queued",
    message_id_header: mail.message_id_header,
  }
  return acceptance
})

/** Returns one outbox row per recipient domain. */
const rowsOf = Effect.fnUntraced(function* (recipients: ReadonlyArray<Recipient>) {
  const byDomain = Map.groupBy(recipients, ({ address }) => domainOf(address))
  return yield* Effect.forEach(byDomain, ([domain, of]) =>
    Effect.map(makeUuidV7, (id): OutboxRow => ({ id, domain, addresses: of.map(({ address }) => address) })),
  )
})
