/**
 * Submission: mail that an Identity's mail program sends (RFC 6409), on a port with STARTTLS and one with TLS from the start
 * (RFC 8314). What it hands in is taken as `POST …/messages/send` takes it ({@link Sending}), with the same refusals; a 250
 * to DATA means that it is durable, in the Mailbox and in the outbox or before a person.
 */
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import { recipientsAtMost } from "@svc/domain/mail/Sending"
import { isProblem } from "@svc/domain/problems/Problem"
import { Context, Effect, FiberSet, Layer } from "effect"
import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from "smtp-server"
import * as SessionLimits from "./imap/server/SessionLimits.ts"
import { certificateOf, listening, type ListenerTls, withHealth } from "./MailListener.ts"
import * as MailMetrics from "./MailMetrics.ts"
import { isModest } from "./mime/Header.ts"
import * as RecipientAddress from "./RecipientAddress.ts"
import * as Data from "./smtp/Data.ts"
import { Reply, replies as receiving } from "./smtp/Replies.ts"
import { openConnection, responder, sessionTimers } from "./smtp/Server.ts"
import * as Accounts from "./submission/Accounts.ts"
import * as Recording from "./submission/SubmissionAudit.ts"
import * as Refusals from "./submission/Refusals.ts"
import { type Admit, type Login, SubmissionServer } from "./submission/Server.ts"
import { Timing } from "../Timing.ts"

export interface SubmissionSettings {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  readonly tlsPort: number
  readonly mailDomain: string
  /** Bytes of a message as it comes. */
  readonly messageBytes: number
  /** Whether passwords may be said in the clear (Development). */
  readonly allowsPlain: boolean
  /** Balancers that begin each connection with a PROXY protocol header. */
  readonly proxies: Networks
  readonly tls: ListenerTls | undefined
}

export class SubmissionListener extends Context.Service<
  SubmissionListener,
  { readonly port: number; readonly tlsPort: number }
>()("@svc/mail-gateway/mail/SubmissionListener") {}

/** Sessions: a program has one or two. Each may hold a message of the largest size. */
const limits: SessionLimits.Limits = { inAll: 2_000, perClient: 100, perMailbox: 20 }

/** Commands of a client that is not logged in. */
const commandsBefore = 30

const { replies } = Refusals

const listen = Effect.fnUntraced(function* (settings: SubmissionSettings) {
  const sending = yield* Sending
  const orgLimits = yield* OrgLimits
  const guests = SessionLimits.make(limits)
  const accounts = yield* Accounts.make(guests)
  const recording = yield* Recording.make
  const run = yield* FiberSet.makeRuntime()
  /** Where the clients of open sessions are. */
  const admitted = new Map<string, string>()
  const timers = sessionTimers()
  yield* MailMetrics.submitters.scoped([], () => admitted.size)

  const respond = responder<never>(run, "A submission command failed unexpectedly")

  const admit: Admit = (session, address) => {
    const isAdmitted = guests.connect(address)
    if (isAdmitted) admitted.set(session.id, address)
    return isAdmitted
  }

  const login: Login = (session, user, password, done) =>
    respond(accounts.login(session, user, password), (refusal) => {
      MailMetrics.login(refusal)
      if (refusal === null && openConnection(session) !== undefined) {
        expireAfter(session, Timing.submissionSessionMillis)
      }
      done(refusal)
    })

  const expireAfter = (session: SMTPServerSession, millis: number) =>
    timers.set(session, millis, () => openConnection(session)?.close())

  /** The envelope's sender is who is logged in; where bounces go is ours to say. */
  const judgeSender = ({ address }: SMTPServerAddress, session: SMTPServerSession): Reply | null => {
    const account = accounts.of(session)
    if (account === undefined) return session.secure || settings.allowsPlain ? replies.logIn : replies.encrypt
    const { local, domain } = RecipientAddress.split(address)
    const parsed = domain === settings.mailDomain.toLowerCase() ? RecipientAddress.parse(local) : undefined
    return parsed?.mailbox === account.canonical && parsed.tag === null
      ? null
      : new Reply(550, `5.7.1 The sender can only be ${account.handle}@${settings.mailDomain}`)
  }

  const judgeRecipient = ({ address, args }: SMTPServerAddress, session: SMTPServerSession): Reply | null => {
    if (accounts.of(session) === undefined) return replies.logIn
    if (args !== false && Object.keys(args).length > 0) return replies.parameter
    const parsed = AddrSpec.parse(address)
    return parsed._tag === "Address" ? null : new Reply(553, `5.1.3 ${parsed.message}`)
  }

  const submit = Effect.fnUntraced(
    function* (session: SMTPServerSession, raw: Buffer) {
      const subject = accounts.of(session)
      // Its credential fell while it was still talking.
      if (subject === undefined || openConnection(session) === undefined) return yield* Effect.fail(replies.logIn)
      const recipients = session.envelope.rcptTo.map(({ address }) => address)
      // A call like any other: what is refused costs as much as what is sent.
      const { id, status } = yield* Effect.andThen(
        orgLimits.take(subject.orgId, "calls"),
        sending.submit({ subject, raw, recipients }),
      ).pipe(Effect.tapError((problem) => recording.refused(subject, session.remoteAddress, problem)))
      yield* recording.taken(subject, session.remoteAddress, id)
      return status === "awaiting_approval" ? `Waits for a person to approve it, as ${id}` : `Queued as ${id}`
    },
    Effect.mapError((error) => (isProblem(error) ? Refusals.of(error) : error)),
  )

  const onData = (
    stream: SMTPServerDataStream,
    session: SMTPServerSession,
    done: (error?: Error | null, message?: string) => void,
  ) => {
    const data = Data.make(settings.messageBytes)
    const close = () => openConnection(session)?.close()
    const late = setTimeout(close, Timing.submissionDataMillis)
    stream.on("data", (chunk: Buffer) => {
      data.push(chunk)
      if (data.size() > settings.messageBytes * 2) close()
    })
    stream.once("error", () => clearTimeout(late))
    stream.once("close", () => clearTimeout(late))
    stream.once("end", () => {
      clearTimeout(late)
      const received = data.finish()
      const refuse = (reply: Reply) => {
        MailMetrics.submission(reply)
        done(reply)
      }
      if (received === "bare_line_break") {
        // What follows was perhaps never meant as commands; none of it is read.
        const { responseCode, message } = receiving[received]
        openConnection(session)?.send(responseCode, message)
        close()
      } else if (received === "too_large") refuse(receiving.tooLarge)
      else if (typeof received === "string") refuse(receiving[received])
      else if (!isModest(received.raw)) refuse(receiving.header)
      else {
        respond(submit(session, received.raw), (refusal, text) => {
          MailMetrics.submission(refusal)
          done(refusal, text)
        })
      }
    })
  }

  const certificate = yield* certificateOf(settings.tls, "submission", settings.mailDomain)

  const options: SMTPServerOptions = {
    ...certificate.pem,
    minVersion: "TLSv1.2",
    name: settings.mailDomain,
    banner: "submission",
    size: settings.messageBytes,
    rejectOversized: true,
    authMethods: ["PLAIN", "LOGIN", "OAUTHBEARER"],
    allowInsecureAuth: true,
    maxAllowedUnauthenticatedCommands: commandsBefore,
    disabledCommands: ["WIZ", "SHELL", "KILL"],
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: false,
    maxRecipients: recipientsAtMost,
    maxClients: limits.inAll + 100,
    socketTimeout: Timing.submissionLoginMillis,
    closeTimeout: Timing.smtpCloseMillis,
    logger: false,
    onConnect: (session, done) => {
      expireAfter(session, Timing.submissionLoginMillis)
      // Where no password is taken none is asked for; MAIL is refused by what it lacks.
      if (!session.secure && !settings.allowsPlain) session.disabledCommands = ["AUTH", "WIZ", "SHELL", "KILL"]
      done()
    },
    onSecure: (_socket, session, done) => {
      delete session.disabledCommands
      accounts.leave(session)
      done()
    },
    onClose: (session, done) => {
      timers.clear(session)
      accounts.leave(session)
      const address = admitted.get(session.id)
      admitted.delete(session.id)
      if (address !== undefined) guests.disconnect(address)
      done()
    },
    onMailFrom: (address, session, done) => done(judgeSender(address, session)),
    onRcptTo: (address, session, done) => done(judgeRecipient(address, session)),
    onData,
  }

  const opened = Effect.fnUntraced(function* (port: number, tlsAtOnce: boolean) {
    // The handshake is ours to begin, since a balancer's header comes before it.
    const own = tlsAtOnce ? { ...options, secure: true, needsUpgrade: true } : options
    const server = new SubmissionServer(own, settings.proxies, { login, admit })
    // A connection that breaks is the client's affair; without a listener it would end the process.
    server.on("error", () => {})
    yield* certificate.follow((renewed) => server.updateSecureContext({ ...renewed }))
    return yield* listening(
      "Submission",
      server.server,
      { host: settings.host, port },
      (...at) => server.listen(...at),
      Effect.callback<void>((resume) => void server.close(() => resume(Effect.void))),
    )
  })

  return { port: yield* opened(settings.port, false), tlsPort: yield* opened(settings.tlsPort, true) }
})

export const layer = (settings: SubmissionSettings) =>
  Layer.effect(SubmissionListener, listen(settings)).pipe(withHealth("submission", SubmissionListener))
