/**
 * An SMTP client session (RFC 5321): greeting, EHLO, STARTTLS (RFC 3207), AUTH (RFC 4954), and one transaction after
 * another. A missing reply ends the connection. DATA and content are only written under a send permit: it is requested
 * after the server has accepted every recipient, and checked in the turn of the event loop in which bytes are written.
 */
import type { ConnectionOptions, TLSSocket } from "node:tls"
import { Effect, Redacted, Schema } from "effect"
import type { SmtpReply } from "@svc/cluster/mail/sending/MailTransport"
import { Timing } from "../../../Timing.ts"
import { stuffed } from "./DotStuffing.ts"
import { writeWithPermit, writeWhilePermitted, type Letter } from "./Letter.ts"
import { type Reply, textOf } from "./Reply.ts"
import { type Address, Broken, Wire } from "./Wire.ts"

/** The server refused the session before any transaction, so the refusal does not concern a recipient. */
export class Unwelcome extends Schema.TaggedError<Unwelcome>()("Unwelcome", {
  stage: Schema.Literals(["greeting", "hello", "tls", "login"]),
  code: Schema.NullOr(Schema.Int),
  status: Schema.NullOr(Schema.String),
  text: Schema.String,
}) {}

/**
 * Timeouts in milliseconds: to connect, to greet, to reply to a command, to accept a block, and to reply to the
 * message.
 */
export interface Deadlines {
  readonly connect: number
  readonly greeting: number
  readonly command: number
  readonly block: number
  readonly final: number
}

const deadlines: Deadlines = {
  connect: Timing.smtpConnectMillis,
  greeting: Timing.smtpGreetingMillis,
  command: Timing.smtpCommandMillis,
  block: Timing.smtpBlockMillis,
  final: Timing.smtpFinalMillis,
}

export interface Terms {
  readonly deadlines?: Deadlines | undefined
  /** The server's name in replies and for TLS. */
  readonly name: string
  /** The service's host name for EHLO. */
  readonly helo: string
  /**
   * `required` also verifies the certificate; `judged` leaves that to `isIts`; `optional` uses TLS if it is offered and
   * works; `immediate` uses implicit TLS (RFC 8314).
   */
  readonly tls: "immediate" | "required" | "judged" | "optional" | "none"
  /** Returns whether the presented certificate is the server's. */
  readonly isIts?: ((socket: TLSSocket) => boolean) | undefined
  /** Certificate authorities trusted in place of those that Node.js knows. */
  readonly ca?: string | undefined
  readonly login?:
    | {
        readonly user: string
        readonly password: Redacted.Redacted<string>
        /** Whether the password may be sent without TLS. */
        readonly inTheClear: boolean
      }
    | undefined
}

/**
 * The outcome of a transaction. `Unknown`: no reply came after the content or parts of it were sent, so the server may
 * have the message. `Broken`: the connection failed before, so no server has it.
 */
export type Outcome =
  | { readonly _tag: "Answered"; readonly replies: ReadonlyArray<SmtpReply> }
  | { readonly _tag: "Held" }
  | { readonly _tag: "Broken" | "Unknown"; readonly message: string }

export interface Conversation {
  readonly isOpen: () => boolean
  readonly isSecure: boolean
  readonly rest: () => void
  readonly wake: () => void
  readonly transact: (letter: Letter) => Effect.Effect<Outcome>
  readonly quit: () => void
}

/** Encodes xtext (RFC 3461 section 4). */
const xtext = (text: string): string =>
  text.replace(/[^!-*,-<>-~]/g, (char) => `+${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`)

/** Parses the extensions that the server offers: upper-case keywords with their parameters. */
const offers = (reply: Reply): ReadonlyMap<string, string> =>
  new Map(
    reply.lines.slice(1).map((line) => {
      const [keyword = "", ...parameters] = line.trim().split(/[ =]/)
      return [keyword.toUpperCase(), parameters.join(" ").toUpperCase()]
    }),
  )

const isPositive = (reply: { readonly code: number | null }) =>
  reply.code !== null && reply.code >= 200 && reply.code < 300

const open = Effect.fnUntraced(function* (wire: Wire, terms: Terms, timeouts: Deadlines) {
  const unwelcome = (stage: Unwelcome["stage"], reply: Reply) =>
    new Unwelcome({ stage, code: reply.code, status: reply.status, text: textOf(reply) })
  const tls: ConnectionOptions = tlsOptions(terms)

  const ask = (text: string) => {
    wire.send(`${text}\r\n`)
    return wire.reply(timeouts.command)
  }

  const hello = Effect.gen(function* () {
    const reply = yield* ask(`EHLO ${terms.helo}`)
    if (isPositive(reply)) return offers(reply)
    // Some old servers only support HELO.
    const old = reply.code >= 500 ? yield* ask(`HELO ${terms.helo}`) : reply
    if (!isPositive(old)) return yield* Effect.fail(unwelcome("hello", old))
    return new Map<string, string>()
  })

  const login = Effect.fnUntraced(function* (offered: ReadonlyMap<string, string>, as: NonNullable<Terms["login"]>) {
    const base64 = (text: string) => Buffer.from(text).toString("base64")
    const password = Redacted.value(as.password)
    const mechanisms = (offered.get("AUTH") ?? "").split(" ")
    const reply = mechanisms.includes("PLAIN")
      ? yield* ask(`AUTH PLAIN ${base64(`\0${as.user}\0${password}`)}`)
      : yield* Effect.gen(function* () {
          const sendCommands = yield* ask("AUTH LOGIN")
          if (sendCommands.code !== 334) return sendCommands
          const named = yield* ask(base64(as.user))
          return named.code === 334 ? yield* ask(base64(password)) : named
        })
    if (!isPositive(reply)) return yield* Effect.fail(unwelcome("login", reply))
  })

  const greeting = yield* wire.reply(timeouts.greeting)
  if (!isPositive(greeting)) return yield* Effect.fail(unwelcome("greeting", greeting))
  const mustBeSecure = terms.tls === "required" || terms.tls === "judged"
  let offered = yield* hello
  if (!wire.isSecure && terms.tls !== "none") {
    if (offered.has("STARTTLS")) {
      const reply = yield* ask("STARTTLS")
      if (isPositive(reply)) {
        yield* Effect.mapError(
          wire.secure(tls, timeouts.command),
          ({ message }) => new Unwelcome({ stage: "tls", code: null, status: null, text: message }),
        )
        if (terms.tls === "judged" && (wire.tls === undefined || terms.isIts?.(wire.tls) !== true)) {
          const text = "TLS failed: the server's certificate is not one that its TLSA records name (DANE)"
          return yield* Effect.fail(new Unwelcome({ stage: "tls", code: null, status: "4.7.5", text }))
        }
        offered = yield* hello
      } else if (mustBeSecure) return yield* Effect.fail(unwelcome("tls", reply))
    } else if (mustBeSecure) {
      return yield* Effect.fail(
        new Unwelcome({
          stage: "tls",
          code: null,
          status: null,
          text: "The server does not offer STARTTLS, which is required",
        }),
      )
    }
  }
  if (terms.login !== undefined) {
    if (!wire.isSecure && !terms.login.inTheClear) {
      const text = "The server does not offer STARTTLS, and the password is only sent over TLS"
      return yield* Effect.fail(new Unwelcome({ stage: "tls", code: null, status: null, text }))
    }
    yield* login(offered, terms.login)
  }
  return offered
})

const tlsOptions = (terms: Terms): ConnectionOptions => ({
  // The TLS server name must not be an address (RFC 6066 section 3).
  ...(/^[\d.]+$|:/.test(terms.name) ? {} : { servername: terms.name }),
  // The certificate is not verified if TLS is optional, and verified by `isIts` if it is `judged`.
  rejectUnauthorized: terms.tls !== "optional" && terms.tls !== "judged",
  ...(terms.ca === undefined ? {} : { ca: [terms.ca] }),
  minVersion: "TLSv1.2",
})

const connect = Effect.fnUntraced(function* (address: Address, terms: Terms) {
  const timeouts = terms.deadlines ?? deadlines
  const wire = yield* Wire.open(address, timeouts.connect, terms.tls === "immediate" ? tlsOptions(terms) : undefined)
  const offered = yield* open(wire, terms, timeouts).pipe(
    Effect.onExit((exit) => Effect.sync(() => exit._tag === "Failure" && wire.close())),
  )
  return conversation(wire, offered, terms.name, timeouts)
})

/**
 * Connects and logs in. If TLS is optional and the handshake fails, connects again without TLS (opportunistic security,
 * RFC 7435), but never sends a password that requires TLS.
 */
export const begin = (address: Address, terms: Terms) =>
  connect(address, terms).pipe(
    Effect.catchIf(
      (error) => error._tag === "Unwelcome" && error.stage === "tls" && mayFallBack(terms),
      () => connect(address, { ...terms, tls: "none" }),
    ),
  )

const mayFallBack = ({ tls, login }: Terms) => tls === "optional" && (login === undefined || login.inTheClear)

const conversation = (
  wire: Wire,
  offered: ReadonlyMap<string, string>,
  host: string,
  timeouts: Deadlines,
): Conversation => {
  const isPipelining = offered.has("PIPELINING")
  const hasDsn = offered.has("DSN")
  const maxSize = Number(offered.get("SIZE") ?? 0)

  /** Converts the reply to a command that concerned this many recipients. */
  const toSmtpReply = (reply: Reply, command: NonNullable<SmtpReply["command"]>, recipients = 1): SmtpReply => ({
    code: reply.code,
    status: reply.status,
    text: textOf(reply),
    host,
    command,
    ...(recipients > 1 ? { shared: true } : {}),
  })

  const sendCommands = Effect.fnUntraced(function* (commands: ReadonlyArray<string>) {
    const replies: Array<Reply> = []
    if (isPipelining) {
      wire.send(commands.map((command) => `${command}\r\n`).join(""))
      for (const _ of commands) replies.push(yield* wire.reply(timeouts.command))
      return replies
    }
    for (const command of commands) {
      wire.send(`${command}\r\n`)
      const reply = yield* wire.reply(timeouts.command)
      replies.push(reply)
      // Recipients are pointless if the sender was refused.
      if (replies.length === 1 && !isPositive(reply)) return replies
    }
    return replies
  })

  const reset = Effect.flatMap(sendCommands(["RSET"]), ([reply]) => {
    if (!isPositive(reply!)) wire.close()
    return Effect.void
  })

  const transact = Effect.fnUntraced(function* (letter: Letter) {
    const size = letter.content.reduce((sum, { length }) => sum + length, 0)
    if (maxSize > 0 && size > maxSize) {
      const reply = {
        code: 552,
        status: "5.3.4",
        text: `The server accepts at most ${maxSize} bytes, and the message has ${size}`,
        host,
      }
      return { _tag: "Answered", replies: letter.recipients.map(() => reply) } satisfies Outcome
    }
    const mail = [
      `MAIL FROM:<${letter.from}>`,
      ...(offered.has("SIZE") ? [`SIZE=${size}`] : []),
      ...(hasDsn ? ["RET=HDRS", `ENVID=${xtext(letter.id)}`] : []),
    ].join(" ")
    const rcpt = letter.recipients.map(
      (recipient) => `RCPT TO:<${recipient}>${hasDsn ? ` NOTIFY=FAILURE,DELAY ORCPT=rfc822;${xtext(recipient)}` : ""}`,
    )
    const [sender, ...recipientReplies] = yield* sendCommands([mail, ...rcpt])
    if (!isPositive(sender!)) {
      yield* Effect.ignore(reset)
      return { _tag: "Answered", replies: letter.recipients.map(() => toSmtpReply(sender!, "MAIL")) } satisfies Outcome
    }
    if (!recipientReplies.some(isPositive)) {
      yield* Effect.ignore(reset)
      return {
        _tag: "Answered",
        replies: recipientReplies.map((reply) => toSmtpReply(reply, "RCPT")),
      } satisfies Outcome
    }
    const accepted = recipientReplies.filter(isPositive).length
    /** Returns the outcome for each recipient after the reply to DATA or to the content. */
    const outcomeAfter = (final: Reply): Outcome => ({
      _tag: "Answered",
      replies: recipientReplies.map((reply) =>
        isPositive(reply) ? toSmtpReply(final, "DATA", accepted) : toSmtpReply(reply, "RCPT"),
      ),
    })
    const dataReply = yield* writeWithPermit(letter, () => {
      wire.send("DATA\r\n")
      return wire.reply(timeouts.command)
    })
    if (dataReply === undefined) {
      yield* Effect.ignore(reset)
      return { _tag: "Held" } satisfies Outcome
    }
    // A server that acknowledges DATA before the content was sent has not received the message.
    if (isPositive(dataReply)) {
      wire.close()
      return { _tag: "Broken", message: "The server did not ask for the content" } satisfies Outcome
    }
    if (dataReply.code !== 354) {
      yield* Effect.ignore(reset)
      return outcomeAfter(dataReply)
    }
    return yield* Effect.gen(function* () {
      for (const piece of stuffed(letter.content)) {
        // A server that replies early has not received the whole message.
        if (wire.isOpen && !wire.isQuiet)
          return yield* new Broken({ message: "The server replied before the end of the message" })
        const written = yield* writeWhilePermitted(letter, () => Effect.as(wire.write(piece, timeouts.block), true))
        if (written !== true) {
          // A server discards a message whose end it has not received.
          wire.close()
          return { _tag: "Held" } satisfies Outcome
        }
      }
      return outcomeAfter(yield* wire.reply(timeouts.final))
    }).pipe(
      Effect.catchTag("Broken", ({ message }) => {
        // Some servers refuse the message while receiving it and disconnect.
        const last = wire.unsolicited()
        const isRefusal = last !== undefined && last.code >= 400
        wire.close()
        return Effect.succeed<Outcome>(isRefusal ? outcomeAfter(last) : { _tag: "Unknown", message })
      }),
    )
  })

  return {
    isOpen: () => wire.isQuiet,
    isSecure: wire.isSecure,
    rest: () => wire.rest(),
    wake: () => wire.wake(),
    transact: (letter) =>
      transact(letter).pipe(
        Effect.catchTag("Broken", ({ message }) => Effect.succeed<Outcome>({ _tag: "Broken", message })),
        // The server's state is unknown after an interruption.
        Effect.onInterrupt(() => Effect.sync(() => wire.close())),
      ),
    quit: () => {
      wire.end("QUIT\r\n")
    },
  }
}

/** Returns the reply for every recipient when a session could not be started. */
export const replyOf = (error: Broken | Unwelcome, host: string | null): SmtpReply =>
  error._tag === "Broken"
    ? { code: null, status: null, text: error.message.slice(0, 500), host }
    : { code: error.code, status: error.status, text: error.text, host }
