/**
 * The client's side of SMTP (RFC 5321): greeting, EHLO, STARTTLS (RFC 3207), AUTH (RFC 4954), and one transaction after the
 * other. What a server says decides; what it does not say in time ends the connection. DATA and content are written only
 * while the permission to leave holds: it is asked for when the server has agreed to every recipient, and looked at in the
 * turn of the event loop in which something is written.
 */
import type { ConnectionOptions, TLSSocket } from "node:tls"
import { Effect, Redacted, Schema } from "effect"
import type { SmtpReply } from "@svc/cluster/mail/sending/MailTransport"
import { Timing } from "../../../Timing.ts"
import { stuffed } from "./DotStuffing.ts"
import { begun, continued, type Letter } from "./Letter.ts"
import { type Reply, textOf } from "./Reply.ts"
import { type Address, Broken, Wire } from "./Wire.ts"

/** The server said no before there was a transaction: to us, not to a recipient. */
export class Unwelcome extends Schema.TaggedError<Unwelcome>()("Unwelcome", {
  stage: Schema.Literals(["greeting", "hello", "tls", "login"]),
  code: Schema.NullOr(Schema.Int),
  status: Schema.NullOr(Schema.String),
  text: Schema.String,
}) {}

/** How long a server may take, in milliseconds: to be connected, to greet, to answer, to take a piece, to answer it all. */
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
  /** What it is called in replies and by TLS. */
  readonly name: string
  /** Our own name, for EHLO. */
  readonly helo: string
  /**
   * `required` also checks the certificate; `judged` leaves that to `isIts`; `optional` takes what is offered, and clear
   * text where that fails; `immediate` begins with TLS (RFC 8314).
   */
  readonly tls: "immediate" | "required" | "judged" | "optional" | "none"
  /** Whether the certificate that is shown is the server's. */
  readonly isIts?: ((socket: TLSSocket) => boolean) | undefined
  /** Certificates trusted besides those of the system. */
  readonly ca?: string | undefined
  readonly login?:
    | {
        readonly user: string
        readonly password: Redacted.Redacted<string>
        /** Whether it may be said without TLS. */
        readonly inTheClear: boolean
      }
    | undefined
}

/**
 * What came of a transaction. `unknown`: the content is gone and no reply came, or the connection broke in the middle of
 * it; a server may have it. `broken`: it broke before, so nobody can have it.
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

/** RFC 3461 section 4: `+`, `=` and what is not printable are written by their numbers. */
const xtext = (text: string): string =>
  text.replace(/[^!-*,-<>-~]/g, (char) => `+${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`)

/** The keywords that the server offers, upper case, with their parameters. */
const offers = (reply: Reply): ReadonlyMap<string, string> =>
  new Map(
    reply.lines.slice(1).map((line) => {
      const [keyword = "", ...parameters] = line.trim().split(/[ =]/)
      return [keyword.toUpperCase(), parameters.join(" ").toUpperCase()]
    }),
  )

export const isPositive = (reply: { readonly code: number | null }) =>
  reply.code !== null && reply.code >= 200 && reply.code < 300

const open = Effect.fnUntraced(function* (wire: Wire, terms: Terms, patience: Deadlines) {
  const unwelcome = (stage: Unwelcome["stage"], reply: Reply) =>
    new Unwelcome({ stage, code: reply.code, status: reply.status, text: textOf(reply) })
  const tls: ConnectionOptions = tlsOptions(terms)

  const ask = (text: string) => {
    wire.say(`${text}\r\n`)
    return wire.reply(patience.command)
  }

  const hello = Effect.gen(function* () {
    const reply = yield* ask(`EHLO ${terms.helo}`)
    if (isPositive(reply)) return offers(reply)
    // A server of old, which knows no extensions.
    const old = reply.code >= 500 ? yield* ask(`HELO ${terms.helo}`) : reply
    if (!isPositive(old)) return yield* Effect.fail(unwelcome("hello", old))
    return new Map<string, string>()
  })

  const login = Effect.fnUntraced(function* (offered: ReadonlyMap<string, string>, as: NonNullable<Terms["login"]>) {
    const base64 = (text: string) => Buffer.from(text).toString("base64")
    const password = Redacted.value(as.password)
    const ways = (offered.get("AUTH") ?? "").split(" ")
    const reply = ways.includes("PLAIN")
      ? yield* ask(`AUTH PLAIN ${base64(`\0${as.user}\0${password}`)}`)
      : yield* Effect.gen(function* () {
          const asked = yield* ask("AUTH LOGIN")
          if (asked.code !== 334) return asked
          const named = yield* ask(base64(as.user))
          return named.code === 334 ? yield* ask(base64(password)) : named
        })
    if (!isPositive(reply)) return yield* Effect.fail(unwelcome("login", reply))
  })

  const greeting = yield* wire.reply(patience.greeting)
  if (!isPositive(greeting)) return yield* Effect.fail(unwelcome("greeting", greeting))
  const mustBeSecure = terms.tls === "required" || terms.tls === "judged"
  let offered = yield* hello
  if (!wire.isSecure && terms.tls !== "none") {
    if (offered.has("STARTTLS")) {
      const reply = yield* ask("STARTTLS")
      if (isPositive(reply)) {
        yield* Effect.mapError(
          wire.secure(tls, patience.command),
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
          text: "The server offers no STARTTLS, which is required",
        }),
      )
    }
  }
  if (terms.login !== undefined) {
    if (!wire.isSecure && !terms.login.inTheClear) {
      const text = "The server offers no STARTTLS, and the password is not said in the clear"
      return yield* Effect.fail(new Unwelcome({ stage: "tls", code: null, status: null, text }))
    }
    yield* login(offered, terms.login)
  }
  return offered
})

const tlsOptions = (terms: Terms): ConnectionOptions => ({
  // A name for TLS is never an address (RFC 6066 section 3).
  ...(/^[\d.]+$|:/.test(terms.name) ? {} : { servername: terms.name }),
  // Where anybody's certificate is better than none it is not looked at, and where we judge it ourselves not by TLS.
  rejectUnauthorized: terms.tls !== "optional" && terms.tls !== "judged",
  ...(terms.ca === undefined ? {} : { ca: [terms.ca] }),
  minVersion: "TLSv1.2",
})

const connect = Effect.fnUntraced(function* (address: Address, terms: Terms) {
  const patience = terms.deadlines ?? deadlines
  const wire = yield* Wire.open(address, patience.connect, terms.tls === "immediate" ? tlsOptions(terms) : undefined)
  const offered = yield* open(wire, terms, patience).pipe(
    Effect.onExit((exit) => Effect.sync(() => exit._tag === "Failure" && wire.close())),
  )
  return conversation(wire, offered, terms.name, patience)
})

/**
 * Connects and gets as far as the first transaction. Where TLS is optional and its handshake fails, it connects once more
 * and stays in clear text, like any server that offers no STARTTLS (RFC 7435). A password that needs TLS is never sent so.
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
  patience: Deadlines,
): Conversation => {
  const isPipelining = offered.has("PIPELINING")
  const hasDsn = offered.has("DSN")
  const most = Number(offered.get("SIZE") ?? 0)

  /** The reply to a command that was for this many recipients. */
  const said = (reply: Reply, command: NonNullable<SmtpReply["command"]>, recipients = 1): SmtpReply => ({
    code: reply.code,
    status: reply.status,
    text: textOf(reply),
    host,
    command,
    ...(recipients > 1 ? { shared: true } : {}),
  })

  const asked = Effect.fnUntraced(function* (commands: ReadonlyArray<string>) {
    const replies: Array<Reply> = []
    if (isPipelining) {
      wire.say(commands.map((command) => `${command}\r\n`).join(""))
      for (const _ of commands) replies.push(yield* wire.reply(patience.command))
      return replies
    }
    for (const command of commands) {
      wire.say(`${command}\r\n`)
      const reply = yield* wire.reply(patience.command)
      replies.push(reply)
      // Without a sender there is no use in recipients.
      if (replies.length === 1 && !isPositive(reply)) return replies
    }
    return replies
  })

  const reset = Effect.flatMap(asked(["RSET"]), ([reply]) => {
    if (!isPositive(reply!)) wire.close()
    return Effect.void
  })

  const transact = Effect.fnUntraced(function* (letter: Letter) {
    const size = letter.content.reduce((sum, { length }) => sum + length, 0)
    if (most > 0 && size > most) {
      const reply = {
        code: 552,
        status: "5.3.4",
        text: `The server takes ${most} bytes at most, and the message has ${size}`,
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
    const [sender, ...each] = yield* asked([mail, ...rcpt])
    if (!isPositive(sender!)) {
      yield* Effect.ignore(reset)
      return { _tag: "Answered", replies: letter.recipients.map(() => said(sender!, "MAIL")) } satisfies Outcome
    }
    if (!each.some(isPositive)) {
      yield* Effect.ignore(reset)
      return { _tag: "Answered", replies: each.map((reply) => said(reply, "RCPT")) } satisfies Outcome
    }
    const accepted = each.filter(isPositive).length
    /** What became of each recipient once the server replied to DATA or to the content. */
    const answered = (final: Reply): Outcome => ({
      _tag: "Answered",
      replies: each.map((reply) => (isPositive(reply) ? said(final, "DATA", accepted) : said(reply, "RCPT"))),
    })
    const go = yield* begun(letter, () => {
      wire.say("DATA\r\n")
      return wire.reply(patience.command)
    })
    if (go === undefined) {
      yield* Effect.ignore(reset)
      return { _tag: "Held" } satisfies Outcome
    }
    if (go.code !== 354) {
      yield* Effect.ignore(reset)
      return answered(go)
    }
    return yield* Effect.gen(function* () {
      for (const piece of stuffed(letter.content)) {
        // Who answers before the end has not heard it out.
        if (wire.isOpen && !wire.isQuiet) return yield* new Broken({ message: "The server spoke before the end" })
        const written = yield* continued(letter, () => Effect.as(wire.write(piece, patience.block), true))
        if (written !== true) {
          // A server keeps nothing of a message whose end it has not seen.
          wire.close()
          return { _tag: "Held" } satisfies Outcome
        }
      }
      return answered(yield* wire.reply(patience.final))
    }).pipe(
      Effect.catchTag("Broken", ({ message }) => {
        // Some say no in the middle of it and leave.
        const last = wire.heard()
        const isRefusal = last !== undefined && last.code >= 400
        wire.close()
        return Effect.succeed<Outcome>(isRefusal ? answered(last) : { _tag: "Unknown", message })
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
        // Who was cut off in the middle has left the server in a state that nobody knows.
        Effect.onInterrupt(() => Effect.sync(() => wire.close())),
      ),
    quit: () => {
      wire.end("QUIT\r\n")
    },
  }
}

/** What a failure to begin says of each recipient. */
export const replyOf = (error: Broken | Unwelcome, host: string | null): SmtpReply =>
  error._tag === "Broken"
    ? { code: null, status: null, text: error.message.slice(0, 500), host }
    : { code: error.code, status: error.status, text: error.text, host }
