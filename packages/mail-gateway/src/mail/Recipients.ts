/** Decides the reply to RCPT: which recipients are accepted, from which clients. */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect } from "effect"
import type { SMTPServerAddress, SMTPServerSession } from "smtp-server"
import { Timing } from "../Timing.ts"
import * as RecipientAddress from "./RecipientAddress.ts"
import { Reception } from "./Reception.ts"
import { Screening } from "./Screening.ts"
import * as BounceAddress from "./sending/BounceAddress.ts"
import { Bounces } from "./sending/Bounces.ts"
import * as Clients from "./smtp/Clients.ts"
import { replies } from "./smtp/Replies.ts"

/** Local parts that RFC 5321 section 4.5.1 and RFC 2142 require of every domain. */
const systemParts = new Set(["postmaster", "abuse"])

export const isSystemPart = (local: string) => systemParts.has(local.toLowerCase())

export const isForSystem = ({ address }: SMTPServerAddress) => isSystemPart(RecipientAddress.split(address).local)

/** Returns whether the recipient looks like a bounce address. Only authentic ones are accepted. */
export const isForBounces = ({ address }: SMTPServerAddress) =>
  BounceAddress.hasFormat(RecipientAddress.split(address).local)

/** Returns the Mailboxes of a session's recipients, each with its addresses. */
export const recipientsOf = (session: SMTPServerSession): ReadonlyArray<RecipientAddress.Recipient> =>
  RecipientAddress.byMailbox(
    session.envelope.rcptTo.filter((to) => !isForSystem(to) && !isForBounces(to)).map(({ address }) => address),
  )

export const senderOf = (session: SMTPServerSession) =>
  session.envelope.mailFrom === false ? "" : session.envelope.mailFrom.address

export const make = Effect.fnUntraced(function* (settings: { readonly mailDomain: string }, clients: Clients.Clients) {
  const reception = yield* Reception
  const screening = yield* Screening
  const bounces = yield* Bounces
  const ours = settings.mailDomain.toLowerCase()
  /** The number of unknown recipients of each session. */
  const unknownIn = new WeakMap<SMTPServerSession, number>()

  /** Delays the reply to a client that guesses addresses more with every attempt, and finally disconnects it. */
  const unknown = Effect.fnUntraced(function* (session: SMTPServerSession) {
    const inSession = (unknownIn.get(session) ?? 0) + 1
    unknownIn.set(session, inSession)
    const byClient = clients.unknown(session.remoteAddress, yield* monotonicMillis)
    const worst = Math.max(inSession, byClient * (Clients.limits.unknownInSession / Clients.limits.unknownByClient))
    yield* Effect.sleep(Math.max(0, worst - Clients.limits.unknownAtOnce) * Timing.tarpitStepMillis)
    return yield* Effect.fail(worst >= Clients.limits.unknownInSession ? replies.tooManyUnknown : replies.unknown)
  })

  return Effect.fnUntraced(function* (to: SMTPServerAddress, session: SMTPServerSession) {
    if (to.args !== false && Object.keys(to.args).length > 0) return yield* Effect.fail(replies.parameter)
    const { local, domain } = RecipientAddress.split(to.address)
    // The library accepts only `postmaster` without a domain (RFC 5321 section 4.1.1.3).
    if (domain !== ours && domain !== "") return yield* Effect.fail(replies.elsewhere)
    // A refused client must be able to reach the operator.
    if (systemParts.has(local.toLowerCase())) return
    if (yield* screening.isListed(session.remoteAddress)) return yield* Effect.fail(replies.listed)
    if (isForBounces(to)) {
      const bounce = yield* bounces.judge(to.address, senderOf(session), session.remoteAddress)
      if (bounce === "take") return
      if (bounce === "not_a_server") return yield* Effect.fail(replies.bouncesOnly)
      if (bounce === "too_many") return yield* Effect.fail(replies.tooManyBounces)
    }
    const recipient = RecipientAddress.parse(local)
    if (recipient === undefined) return yield* unknown(session)
    const status = yield* Effect.mapError(reception.status(recipient.mailbox), () => replies.later)
    if (status === "unknown") return yield* unknown(session)
    if (status === "not_yet") return yield* Effect.fail(replies.notYet)
    if (status === "full") {
      yield* Effect.forkDetach(reception.refused(recipient.mailbox, { reason: "full", from: senderOf(session) }))
      return yield* Effect.fail(replies.full)
    }
    const tooNew = screening.isTooNew(session.remoteAddress, senderOf(session), to.address)
    if (yield* Effect.mapError(tooNew, () => replies.later)) return yield* Effect.fail(replies.greylisted)
  })
})
