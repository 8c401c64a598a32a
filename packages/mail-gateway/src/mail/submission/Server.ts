/**
 * The SMTP server as mail programs meet it (RFC 6409): the one that takes mail, and logging in as IMAP has it, by the same
 * exchanges ({@link module:imap/session/Authenticating}).
 */
import type { Socket } from "node:net"
import type { Networks } from "@svc/cluster/net/ClientNetwork"
import type { Redacted } from "effect"
import type { SMTPServerOptions, SMTPServerSession } from "smtp-server"
import type { SMTPConnectionOptions } from "smtp-server/lib/smtp-connection.js"
import * as Authenticating from "../imap/session/Authenticating.ts"
import type { Reply } from "../smtp/Replies.ts"
import { Connection, Server } from "../smtp/Server.ts"

/** Answers null where user and password belong together, and the session is the user's from then on. */
export type Login = (
  session: SMTPServerSession,
  user: string | undefined,
  password: Redacted.Redacted<string>,
  done: (refusal: Reply | null) => void,
) => void

/** How the exchange itself is refused (RFC 4954 section 4). */
const refusals: Readonly<Record<string, readonly [number, string]>> = {
  CANNOT: [504, "5.5.4"],
  AUTHORIZATIONFAILED: [535, "5.7.8"],
}

class SubmissionConnection extends Connection {
  readonly #login: Login

  constructor(server: SubmissionServer, socket: Socket, options: SMTPConnectionOptions | null | undefined) {
    super(server, socket, options)
    this.#login = server.login
  }

  override handler_AUTH(command: Buffer, callback: () => void): void {
    const [, mechanism = "", initial, ...rest] = command.toString().trim().split(/\s+/)
    if (this.session.user) {
      this.send(503, "5.5.1 You are logged in")
      callback()
    } else if (rest.length > 0) {
      this.send(501, "5.5.4 Expected a mechanism and its first answer")
      callback()
    } else {
      const begun = Authenticating.begin({ name: "AUTHENTICATE", mechanism: mechanism.toUpperCase(), initial })
      this.#follow(begun, callback)
    }
  }

  #follow(step: Authenticating.Step, callback: () => void): void {
    switch (step._tag) {
      case "Challenge": {
        const exchange = { tag: "", ...step.exchange }
        this._nextHandler = (line, next) => this.#follow(Authenticating.next(exchange, line.toString().trim()), next)
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
          if (refusal === null) this.send(235, "2.7.0 Logged in")
          else this.send(refusal.responseCode, refusal.message)
          callback()
        })
    }
  }

  override _validateMailParams(parsed: Parameters<Connection["_validateMailParams"]>[0]) {
    // Who first submitted it (RFC 4954 section 5); nobody hands in for another here.
    const { AUTH: _, ...args } = parsed.args || {}
    return super._validateMailParams({ ...parsed, args })
  }
}

export class SubmissionServer extends Server {
  readonly login: Login

  constructor(options: SMTPServerOptions, proxies: Networks, login: Login) {
    super(options, proxies)
    this.login = login
  }

  protected override conversation(socket: Socket, options?: SMTPConnectionOptions | null): Connection {
    return new SubmissionConnection(this, socket, options)
  }
}
