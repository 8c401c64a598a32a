/** Which recipients are taken, of which clients: what RCPT is answered. */
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Effect } from "effect"
import type { SMTPServerAddress, SMTPServerSession } from "smtp-server"
import { Timing } from "../Timing.ts"
import * as RecipientAddress from "./RecipientAddress.ts"
import { type Recipient, Reception } from "./Reception.ts"
import { Screening } from "./Screening.ts"
import * as BounceAddress from "./sending/BounceAddress.ts"
import { Bounces } from "./sending/Bounces.ts"
import * as Clients from "./smtp/Clients.ts"
import { replies } from "./smtp/Replies.ts"

/** Local parts RFC 5321 section 4.5.1 and RFC 2142 require of every domain. */
const systemParts = new Set(["postmaster", "abuse"])

export const isSystemPart = (local: string) => systemParts.has(local.toLowerCase())

export const isForSystem = ({ address }: SMTPServerAddress) => isSystemPart(RecipientAddress.split(address).local)

/** A bounce address: only those that we made are taken. */
export const isForBounces = ({ address }: SMTPServerAddress) =>
  BounceAddress.isWritten(RecipientAddress.split(address).local)

/** Mailbox and tag; several spellings of one are one recipient. */
export const recipientsOf = (session: SMTPServerSession): ReadonlyArray<Recipient> => {
  const found = new Map<string, Recipient>()
  for (const to of session.envelope.rcptTo) {
    const parsed =
      isForSystem(to) || isForBounces(to) ? undefined : RecipientAddress.parse(RecipientAddress.split(to.address).local)
    if (parsed !== undefined) found.set(`${parsed.mailbox}+${parsed.tag}`, { ...parsed, address: to.address })
  }
  return [...found.values()]
}

export const senderOf = (session: SMTPServerSession) =>
  session.envelope.mailFrom === false ? "" : session.envelope.mailFrom.address

export const make = Effect.fnUntraced(function* (settings: { readonly mailDomain: string }, clients: Clients.Clients) {
  const reception = yield* Reception
  const screening = yield* Screening
  const bounces = yield* Bounces
  const ours = settings.mailDomain.toLowerCase()
  /** Recipients named in a session that do not exist. */
  const unknownIn = new WeakMap<SMTPServerSession, number>()

  /** Who guesses is answered ever more slowly, and in the end sent away. */
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
    // The library lets only `postmaster` come without a domain (RFC 5321 section 4.1.1.3).
    if (domain !== ours && domain !== "") return yield* Effect.fail(replies.elsewhere)
    // Whoever was refused must be able to ask why.
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
      yield* Effect.forkDetach(reception.refused(recipient.mailbox, { reason: "full", from: "" }))
      return yield* Effect.fail(replies.full)
    }
    const tooNew = screening.isTooNew(session.remoteAddress, senderOf(session), to.address)
    if (yield* Effect.mapError(tooNew, () => replies.later)) return yield* Effect.fail(replies.greylisted)
  })
})
