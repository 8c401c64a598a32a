/**
 * The SMTP server for mail programs (RFC 6409): {@link Server} with login, by the same SASL exchanges as IMAP ({@link
 * module:imap/session/Authentication}).
 */
import type { Socket } from "node:net"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import type { Redacted } from "effect"
import type { SMTPServerOptions, SMTPServerSession } from "smtp-server"
import type { SMTPConnectionOptions } from "smtp-server/lib/smtp-connection.js"
import * as Authentication from "../imap/session/Authentication.ts"
import type { Reply } from "../smtp/Replies.ts"
import { Connection, Server } from "../smtp/Server.ts"
import { Timing } from "../../Timing.ts"
import { replies } from "./Refusals.ts"

/** Authenticates a session and calls `done` with null, or with the refusal. */
export type Login = (
  session: SMTPServerSession,
  user: string | undefined,
  password: Redacted.Redacted<string>,
  done: (refusal: Reply | null) => void,
) => void

/** Returns whether a client may connect. An admitted client counts until its session is closed. */
export type Admit = (session: SMTPServerSession, address: string) => boolean

/** Replies to a failed SASL exchange (RFC 4954 section 4). */
const refusals: Readonly<Record<string, readonly [number, string]>> = {
  CANNOT: [504, "5.5.4"],
  AUTHORIZATIONFAILED: [535, "5.7.8"],
}

class SubmissionConnection extends Connection {
  readonly #login: Login
  readonly #isAdmitted: boolean

  constructor(server: SubmissionServer, socket: Socket, options: SMTPConnectionOptions | null | undefined) {
    super(server, socket, options)
    this.#login = server.login
    this.#isAdmitted = server.admit(this.session, this.remoteAddress)
  }

  /** Refuses a client with too many connections before the TLS handshake. */
  override init(): void {
    if (this.#isAdmitted) return super.init()
    const socket = this._socket
    socket.on("error", () => {})
    this._server.connections.delete(this)
    if (this.needsUpgrade) socket.destroy()
    else {
      socket.end(`${replies.busy.responseCode} ${replies.busy.message}\r\n`)
      setTimeout(() => socket.destroy(), Timing.smtpCloseMillis).unref()
    }
  }

  /** Logged-in clients have longer timeouts. The handshake and the login must be quick. */
  override _armTimeout(socket: Socket = this._socket): void {
    const millis = this.session.user ? Timing.submissionIdleMillis : Timing.submissionLoginMillis
    socket.setTimeout(millis, () => this._onTimeout())
  }

  override handler_AUTH(command: Buffer, callback: () => void): void {
    const [, mechanism = "", initial, ...rest] = command.toString().trim().split(/\s+/)
    if (this.session.user) {
      this.send(503, "5.5.1 Already logged in")
      callback()
    } else if (rest.length > 0) {
      this.send(501, "5.5.4 Expected a mechanism and an optional initial response")
      callback()
    } else {
      const firstStep = Authentication.begin({ name: "AUTHENTICATE", mechanism: mechanism.toUpperCase(), initial })
      this.#follow(firstStep, callback)
    }
  }

  #follow(step: Authentication.Step, callback: () => void): void {
    switch (step._tag) {
      case "Challenge": {
        const exchange = { tag: "", ...step.exchange }
        this._nextHandler = (line, next) => this.#follow(Authentication.next(exchange, line.toString().trim()), next)
        this.send(334, step.text)
        return callback()
      }
      case "Refused": {
        const { code = "", text } = step.completion
        const [reply, enhanced] = refusals[code] ?? [501, "5.5.2"]
        this.send(reply, `${enhanced} ${text}`)
        return callback()
      }
      case "Said":
        return this.#login(this.session, step.user, step.password, (refusal) => {
          if (refusal === null) {
            // Changes the timeout without adding a second listener.
            this._socket.setTimeout(Timing.submissionIdleMillis)
            this.send(235, "2.7.0 Logged in")
          } else this.send(refusal.responseCode, refusal.message)
          callback()
        })
    }
  }

  override _validateMailParams(parsed: Parameters<Connection["_validateMailParams"]>[0]) {
    // AUTH names the original submitter (RFC 4954 section 5) and is ignored: nobody submits for another Identity here.
    const { AUTH: _, ...args } = parsed.args || {}
    return super._validateMailParams({ ...parsed, args })
  }
}

export class SubmissionServer extends Server {
  readonly login: Login
  readonly admit: Admit

  constructor(
    options: SMTPServerOptions,
    proxies: Networks,
    callbacks: { readonly login: Login; readonly admit: Admit },
  ) {
    super(options, proxies)
    this.login = callbacks.login
    this.admit = callbacks.admit
  }

  protected override createConnection(socket: Socket, options?: SMTPConnectionOptions | null): Connection {
    return new SubmissionConnection(this, socket, options)
  }
}
