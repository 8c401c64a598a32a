/**
 * The submission server: receives mail that an Identity's mail program sends (RFC 6409), on a port with STARTTLS and
 * one with implicit TLS (RFC 8314). Messages are handled like those of `POST …/messages/send` ({@link Sending}), with
 * the same refusals. A 250 to DATA means that the message is durable in the Mailbox, and either queued or awaiting
 * approval.
 */
import { OrgLimits } from "@svc/cluster/limits/OrgLimits"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import { Sending } from "@svc/cluster/mail/sending/Sending"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import { recipientsAtMost } from "@svc/domain/mail/Sending"
import { isProblem, type Problem } from "@svc/domain/problems/Problem"
import { Context, Effect, FiberSet, Layer } from "effect"
import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from "smtp-server"
import type { SubjectInfo } from "@svc/domain/account/Authorization"
import { Audit } from "@svc/cluster/audit/Audit"
import type { Act } from "@svc/cluster/audit/AuditWrite"
import * as SessionLimits from "./imap/server/SessionLimits.ts"
import { certificateOf, listening, type ListenerTls, withHealth } from "./MailListener.ts"
import * as MailMetrics from "./MailMetrics.ts"
import { isModest } from "./mime/Header.ts"
import * as RecipientAddress from "./RecipientAddress.ts"
import * as Data from "./smtp/Data.ts"
import { Reply, replies as receiving } from "./smtp/Replies.ts"
import { openConnection, responder, sessionTimers } from "./smtp/Server.ts"
import * as Accounts from "./submission/Accounts.ts"
import * as Refusals from "./submission/Refusals.ts"
import { type Admit, type Login, SubmissionServer } from "./submission/Server.ts"
import { Timing } from "../Timing.ts"
import { submissionPurpose } from "./imap/server/Logins.ts"

interface SubmissionSettings {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  readonly tlsPort: number
  readonly mailDomain: string
  /** The maximum size of a message as received, in bytes. */
  readonly messageBytes: number
  /** Whether passwords are accepted without TLS (Development). */
  readonly allowsPlain: boolean
  /** Load balancers that start each connection with a PROXY protocol header. */
  readonly proxies: Networks
  readonly tls: ListenerTls | undefined
}

class SubmissionListener extends Context.Service<
  SubmissionListener,
  { readonly port: number; readonly tlsPort: number }
>()("@svc/mail-gateway/mail/SubmissionListener") {}

/** Session limits. A mail program has one or two sessions; each may hold a message of maximum size. */
const limits: SessionLimits.Limits = { inAll: 2_000, perClient: 100, perMailbox: 20 }

/** The commands that a client may send before it logs in. */
const commandsBefore = 30

const { replies } = Refusals

/**
 * Audits submitted mail like a send request: who submitted it, from which address, as which message, and the outcome.
 */
const makeAudit = Effect.map(Effect.service(Audit), (audit) => {
  const actOf = ({ id, handle, orgId, by }: SubjectInfo, address: string, message: string | null): Act => ({
    org: orgId,
    class: "change",
    action: "submission.send",
    actor: {
      kind: by.credentialId === null ? "imap_password" : "identity_key",
      id: by.credentialId,
      name: null,
      client: null,
    },
    identity: { id, handle },
    target: { type: "message", id: message, name: null },
    outcome: "allowed",
    code: null,
    scope: submissionPurpose.scope,
    source: { address, via: submissionPurpose.via, tool: null, user_agent: null },
    requestId: null,
  })

  return {
    accepted: (subject: SubjectInfo, address: string, message: string) =>
      audit.record(actOf(subject, address, message)),
    refused: (subject: SubjectInfo, address: string, { code, status }: Problem) =>
      audit.record({ ...actOf(subject, address, null), outcome: status >= 500 ? "failed" : "refused", code }),
  }
})

const listen = Effect.fnUntraced(function* (settings: SubmissionSettings) {
  const sending = yield* Sending
  const orgLimits = yield* OrgLimits
  const guests = SessionLimits.make(limits)
  const accounts = yield* Accounts.make(guests)
  const recording = yield* makeAudit
  const run = yield* FiberSet.makeRuntime()
  /** The client address of each open session. */
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

  /** Requires the envelope sender to be the logged-in Identity. The return path of bounces is set by the service. */
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
      // The credential was revoked during the session.
      if (subject === undefined || openConnection(session) === undefined) return yield* Effect.fail(replies.logIn)
      const recipients = session.envelope.rcptTo.map(({ address }) => address)
      // Counts as a call like any other, whether the message is sent or refused.
      const { id, status } = yield* Effect.andThen(
        orgLimits.take(subject.orgId, "calls"),
        sending.submit({ subject, raw, recipients }),
      ).pipe(Effect.tapError((problem) => recording.refused(subject, session.remoteAddress, problem)))
      yield* recording.accepted(subject, session.remoteAddress, id)
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
        // The bytes after a bare line break may be smuggled message content, so none of them are read as commands.
        const { responseCode, message } = receiving[received]
        MailMetrics.submission(receiving[received])
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
      // AUTH is not offered without TLS if passwords require it. The reply to MAIL then asks for STARTTLS.
      if (!session.secure && !settings.allowsPlain) session.disabledCommands = ["AUTH", "WIZ", "SHELL", "KILL"]
      done()
    },
    onSecure: (_socket, session, done) => {
      delete session.disabledCommands
      accounts.logOut(session)
      done()
    },
    onClose: (session, done) => {
      timers.clear(session)
      accounts.logOut(session)
      const address = admitted.get(session.id)
      admitted.delete(session.id)
      if (address !== undefined) guests.disconnect(address)
      done()
    },
    onMailFrom: (address, session, done) => done(judgeSender(address, session)),
    onRcptTo: (address, session, done) => done(judgeRecipient(address, session)),
    onData,
  }

  const openPort = Effect.fnUntraced(function* (port: number, implicitTls: boolean) {
    // The handshake is started here because a load balancer's header precedes it.
    const own = implicitTls ? { ...options, secure: true, needsUpgrade: true } : options
    const server = new SubmissionServer(own, settings.proxies, { login, admit })
    // Connection errors concern the client only. An error event without a listener would end the process.
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

  return { port: yield* openPort(settings.port, false), tlsPort: yield* openPort(settings.tlsPort, true) }
})

export const layer = (settings: SubmissionSettings) =>
  Layer.effect(SubmissionListener, listen(settings)).pipe(withHealth("submission", SubmissionListener))
