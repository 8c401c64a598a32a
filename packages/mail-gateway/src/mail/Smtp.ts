/**
 * The SMTP server: receives mail for the Mailboxes of the service (RFC 5321). A 250 to DATA means that the message is
 * durable in every Mailbox it was addressed to. If a Mailbox or the store is unavailable the reply is 451, and the
 * sender keeps the message.
 */
import { makeUuidV7 } from "@svc/domain/Ids"
import { monotonicOf } from "@svc/domain/MonotonicTime"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import { Clock, Context, Effect, FiberSet, Layer } from "effect"
import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from "smtp-server"
import { certificateOf, listening, type ListenerTls, withHealth } from "./MailListener.ts"
import * as MailMetrics from "./MailMetrics.ts"
import * as VerdictPool from "./judging/VerdictPool.ts"
import { isModest } from "./mime/Header.ts"
import type { Arrival } from "./Origin.ts"
import { type IncomingMail, type Recipient, Reception } from "./Reception.ts"
import * as Recipients from "./Recipients.ts"
import { isForBounces, isForSystem, recipientsOf, senderOf } from "./Recipients.ts"
import type { Resolver } from "./Resolver.ts"
import { Bounces } from "./sending/Bounces.ts"
import * as Clients from "./smtp/Clients.ts"
import * as Data from "./smtp/Data.ts"
import { type Reply, replies } from "./smtp/Replies.ts"
import { openConnection, responder, Server, sessionTimers } from "./smtp/Server.ts"
import * as SessionLog from "./smtp/SessionLog.ts"
import * as Trace from "./smtp/Trace.ts"
import { SystemMail } from "./SystemMail.ts"
import { keyOf, operator, Transactions } from "./Transactions.ts"
import { Timing } from "../Timing.ts"

interface SmtpSettings {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  /** The domain of Mailbox addresses, and the server's own name. */
  readonly mailDomain: string
  readonly maxBytes: number
  /** Load balancers that start each connection with a PROXY protocol header. */
  readonly proxies: Networks
  readonly tls: ListenerTls | undefined
}

export class SmtpListener extends Context.Service<SmtpListener, { readonly port: number }>()(
  "@svc/mail-gateway/mail/SmtpListener",
) {}

const listen = Effect.fnUntraced(function* (settings: SmtpSettings) {
  const reception = yield* Reception
  const system = yield* SystemMail
  const bounces = yield* Bounces
  const transactions = yield* Transactions
  const judging = yield* VerdictPool.make()
  const run = yield* FiberSet.makeRuntime<Resolver>()
  const clients = Clients.make()
  const log = SessionLog.make((line) => void run(line))
  const admitted = new Set<string>()
  yield* MailMetrics.sessions.scoped([], () => admitted.size)
  const timers = sessionTimers()

  const respond = responder<Resolver>(run, "An SMTP command failed unexpectedly")

  const judgeRecipient = yield* Recipients.make(settings, clients)

  /** Returns the recipients that a message to a bounce address reports as failed. */
  const judgeBounce = (received: Data.Received, arrival: Arrival) =>
    judging.judge(received.raw, { ...arrival, isBounce: true }).pipe(
      Effect.map(({ failures }) => failures),
      Effect.mapError(() => replies.later),
    )

  /** Judges and parses a message and stores it for every recipient. Succeeds only if nothing is left to retry. */
  const accept = Effect.fnUntraced(function* (
    session: SMTPServerSession,
    received: Data.Received,
    recipients: ReadonlyArray<Recipient>,
  ) {
    const arrival = {
      ip: session.remoteAddress,
      helo: session.hostNameAppearsAs || "unknown",
      mailFrom: senderOf(session),
      host: settings.mailDomain,
    }
    const reported = new Set(session.envelope.rcptTo.filter(isForBounces).map(({ address }) => address.toLowerCase()))
    if (reported.size > 0) {
      const failures = yield* judgeBounce(received, arrival)
      yield* Effect.forEach(reported, (address) => bounces.record(address, failures), { discard: true }).pipe(
        Effect.mapError(() => replies.later),
      )
      yield* bounces.accepted([...reported], session.remoteAddress)
      if (session.envelope.rcptTo.every(isForBounces)) return
    }
    const { origin, header, claim, parsed, cuts } = yield* Effect.mapError(
      judging.judge(received.raw, arrival),
      () => replies.later,
    )
    MailMetrics.verdict(origin.verdict)
    const at = new Date(yield* Clock.currentTimeMillis)
    const trace = Trace.received({
      ...arrival,
      secure: session.secure,
      isExtended: session.openingCommand === "EHLO",
      isUtf8: session.envelope.smtpUtf8 === true,
      id: yield* makeUuidV7,
      at,
    })
    const ours = [...(header === null ? [] : [header]), trace]
    const mail: IncomingMail = {
      raw: Trace.stamp(ours, received.raw, cuts),
      parsed: { ...parsed, headers: [...Trace.headers(ours), ...parsed.headers] },
      origin,
      ...(claim === undefined ? {} : { claim }),
      envelopeFrom: arrival.mailFrom,
      sha256: received.sha256,
    }

    const forSystem = session.envelope.rcptTo.filter(isForSystem)
    const outcomes = yield* Effect.forEach(
      recipients,
      (recipient) => Effect.result(reception.deliver(mail, recipient)),
      // A single recipient needs no separate fiber.
      { concurrency: Math.min(recipients.length, 10) },
    )
    if (forSystem.length > 0) yield* Effect.mapError(system.store(mail), () => replies.later)
    // DATA has one reply for all recipients. A retry does not store a second copy where the message is already stored.
    const failures = outcomes.flatMap((outcome) => (outcome._tag === "Failure" ? [outcome.failure] : []))
    if (failures.some((failure) => failure._tag === "ReceptionUnavailable" || failure.reason === "not_yet")) {
      return yield* Effect.fail(replies.later)
    }
    // A 250 would lose the message for the full Mailbox, because nothing would tell the sender.
    if (failures.some((failure) => failure._tag === "MailboxRefused" && failure.reason === "full")) {
      return yield* Effect.fail(replies.full)
    }
    if (failures.length > 0 && failures.length === outcomes.length && forSystem.length === 0) {
      return yield* Effect.fail(replies.unknown)
    }
    // The remaining Mailboxes were deleted and the others have the message, so a retry would change nothing.
  })

  /** Accepts the message after every equal transaction in progress has ended. */
  const transact = (session: SMTPServerSession, received: Data.Received) => {
    const mail = { sha256: received.sha256, envelopeFrom: senderOf(session) }
    const recipients = recipientsOf(session).map((one) => ({ ...one, key: keyOf(mail, one) }))
    const keys = recipients.map(({ key }) => key)
    if (session.envelope.rcptTo.some(isForSystem)) keys.push(keyOf(mail, operator))
    return transactions.within(keys, accept(session, received, recipients), replies.later)
  }

  const tellOversized = (session: SMTPServerSession) => {
    // Read before the reply, after which the library discards the envelope.
    const from = senderOf(session)
    return Effect.forEach(
      recipientsOf(session),
      ({ mailbox }) => reception.refused(mailbox, { reason: "size", from }),
      {
        discard: true,
      },
    )
  }

  const onData = (
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    done: (error?: Error | null, message?: string) => void,
  ) => {
    const data = Data.make(settings.maxBytes)
    const close = (why: SessionLog.Ending) => {
      log.ending(session, why)
      openConnection(session)?.close()
    }
    const late = setTimeout(() => close("data_too_slow"), Timing.smtpDataMillis)
    stream.on("data", (chunk: Buffer) => {
      data.push(chunk)
      // Disconnects a sender that keeps sending far beyond the limit.
      if (data.size() > settings.maxBytes * 2) close("too_large")
    })
    stream.once("error", () => clearTimeout(late))
    stream.once("close", () => clearTimeout(late))
    stream.once("end", () => {
      clearTimeout(late)
      const received = data.finish()
      const noted = (reply: Reply | null) => {
        MailMetrics.message(reply)
        log.message(session, reply)
      }
      const refuse = (reply: Reply) => {
        noted(reply)
        done(reply)
      }
      if (typeof received !== "string" && !isModest(received.raw)) refuse(replies.header)
      else if (typeof received !== "string") {
        const since = performance.now()
        respond(transact(session, received), (error, transaction) => {
          MailMetrics.judged(received.raw.length, since)
          noted(error)
          const isOpen = openConnection(session) !== undefined
          if (error === null) done(null, "Accepted")
          else done(error)
          transaction?.end(isOpen)
        })
      } else if (received === "too_large") {
        respond(Effect.forkDetach(tellOversized(session)), () => refuse(replies.tooLarge))
      } else if (received === "bare_line_break") {
        // The bytes after a bare line break may be smuggled message content, so none of them are read as commands.
        const connection = openConnection(session)
        noted(replies[received])
        connection?.send(replies[received].responseCode, replies[received].message)
        close("bare_line_break")
      } else refuse(replies[received])
    })
  }

  const certificate = yield* certificateOf(settings.tls, "smtp", settings.mailDomain)

  const clock = yield* Clock.Clock
  const options: SMTPServerOptions = {
    ...certificate.pem,
    name: settings.mailDomain,
    banner: "at your service",
    size: settings.maxBytes,
    rejectOversized: true,
    authOptional: true,
    disabledCommands: ["AUTH", "WIZ", "SHELL", "KILL"],
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    maxRecipients: 100,
    maxClients: Clients.limits.inAll + 100,
    socketTimeout: Timing.smtpIdleMillis,
    closeTimeout: Timing.smtpCloseMillis,
    logger: false,
    onConnect: (session, done) => {
      if (!clients.enter(session.remoteAddress, monotonicOf(clock))) return done(replies.busy)
      admitted.add(session.id)
      log.begin(session)
      timers.set(session, Timing.smtpSessionMillis, () => {
        log.ending(session, "too_long")
        openConnection(session)?.close()
      })
      done()
    },
    onClose: (session, done) => {
      timers.clear(session)
      log.end(session)
      if (admitted.delete(session.id)) clients.leave(session.remoteAddress)
      done()
    },
    onRcptTo: (address, session, done) =>
      respond(judgeRecipient(address, session), (error) => {
        MailMetrics.recipient(error)
        log.recipient(session, error)
        done(error)
      }),
    onData,
  }
  const server = new Server(options, settings.proxies)
  // Connection errors concern the client only. An error event without a listener would end the process.
  server.on("error", () => {})
  yield* certificate.follow((renewed) => server.updateSecureContext({ ...renewed }))

  const port = yield* listening(
    "SMTP",
    server.server,
    settings,
    (...at) => server.listen(...at),
    Effect.callback<void>((resume) => {
      log.leaving()
      server.close(() => {
        log.endAll()
        resume(Effect.void)
      })
    }),
  )
  return { port }
})

export const layer = (settings: SmtpSettings) =>
  Layer.effect(SmtpListener, listen(settings)).pipe(withHealth("smtp", SmtpListener))
