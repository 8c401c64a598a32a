/**
 * The library's SMTP server with the service's own behaviour: the client address behind a load balancer is taken from
 * the PROXY header, a reply keeps the enhanced code that it names, unknown parameters are refused, and quoted local
 * parts are parsed. Messages may arrive in chunks ({@link ChunkingConnection}).
 */
import type { Socket } from "node:net"
import { isWithin, type Networks } from "@svc/cluster/net/ClientNetwork"
import { readHeader } from "@svc/cluster/net/ProxiedSocket"
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server"
import type { SMTPConnection, SMTPConnectionOptions } from "smtp-server/lib/smtp-connection.js"
import { Cause, Effect } from "effect"
import { Timing } from "../../Timing.ts"
import { ChunkingConnection } from "./Chunking.ts"
import { type Reply, replies } from "./Replies.ts"

/** An enhanced status code at the start of a reply (RFC 2034). */
const enhancedCode = /^[245]\.\d{1,3}\.\d{1,3} /

/** The parameters of MAIL that the offered extensions define. */
const mailParameters = new Set(["SIZE", "BODY", "SMTPUTF8"])

/** A mailbox with a quoted local part within its command (RFC 5321 section 4.1.2). */
const quotedMailbox = /^([^<]*<)"((?:[^"\\]|\\.){0,128})"(@[^<>\s]+>.*)$/s
const atoms = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
/** The placeholder for a quoted local part while the library parses the rest of the command. */
const placeholder = "quoted"

type Command = ReturnType<SMTPConnection["_parseAddressCommand"]>

const connections = new WeakMap<SMTPServerSession, Connection>()

/** Returns the connection of a session, or undefined after it was closed. */
export const openConnection = (session: SMTPServerSession): Connection | undefined => {
  const connection = connections.get(session)
  return connection !== undefined && connection._server.connections.has(connection) ? connection : undefined
}

export class Connection extends ChunkingConnection {
  constructor(server: SMTPServer, socket: Socket, options?: SMTPConnectionOptions | null) {
    super(server, socket, options)
    connections.set(this.session, this)
  }

  override send(code: number, data?: string | Array<string> | null, context?: string | false): void {
    super.send(code, data, typeof data === "string" && enhancedCode.test(data) ? false : context)
  }

  // RFC 6531 section 3.1: a non-ASCII sender must announce SMTPUTF8, since a reply to it could not be delivered
  // otherwise.
  override handler_MAIL(command: Buffer, callback: () => void): void {
    const text = command.toString("latin1")
    if (!/[\x80-\xff]/.test(text) || /\sSMTPUTF8(?:\s|$)/i.test(text)) return super.handler_MAIL(command, callback)
    this.send(553, "5.6.7 An address beyond ASCII needs SMTPUTF8")
    callback()
  }

  override handler_DATA(command: Buffer, callback: () => void): void {
    if (!/\s\S/.test(command.toString("latin1").trim())) return super.handler_DATA(command, callback)
    this.send(501, "5.5.4 DATA has no parameters")
    callback()
  }

  override _validateMailParams(parsed: Exclude<Command, false>): ReturnType<SMTPConnection["_validateMailParams"]> {
    const unknown = Object.keys(parsed.args || {}).find((name) => !mailParameters.has(name))
    return unknown === undefined
      ? super._validateMailParams(parsed)
      : { code: 555, message: "5.5.4 Unknown parameter of MAIL", enhancedCode: null }
  }

  override _parseAddressCommand(name: string, command: Buffer | string): Command {
    const text = command.toString()
    const [, before, quoted, after] = quotedMailbox.exec(text) ?? []
    if (before === undefined || quoted === undefined || after === undefined) {
      const parsed = super._parseAddressCommand(name, command)
      // The library accepts a lone quotation mark.
      return parsed !== false && parsed.address.includes('"') ? false : parsed
    }
    const content = quoted.replace(/\\(.)/gs, "$1")
    if (!/^[\x20-\x7e\u00a0-\uffff]{1,64}$/.test(content)) return false
    const parsed = super._parseAddressCommand(name, `${before}${placeholder}${after}`)
    if (parsed === false) return false
    const domain = parsed.address.slice(placeholder.length)
    const local = atoms.test(content) ? content : `"${content.replace(/["\\]/g, "\\$&")}"`
    return { ...parsed, address: `${local}${domain}` }
  }
}

export class Server extends SMTPServer {
  readonly #proxies: Networks

  constructor(options: SMTPServerOptions, proxies: Networks) {
    super(options)
    this.#proxies = proxies
  }

  override connect(socket: Socket, options?: SMTPConnectionOptions | null): void {
    if (!isWithin(this.#proxies, socket.remoteAddress)) return this.#admit(socket, options)
    readHeader(socket, Timing.smtpProxyHeaderMillis, (source) =>
      this.#admit(
        socket,
        source === undefined ? options : { ...options, remoteAddress: source.address, remotePort: source.port },
      ),
    )
  }

  /** Creates the connection of a client. */
  protected createConnection(socket: Socket, options?: SMTPConnectionOptions | null): Connection {
    return new Connection(this, socket, options)
  }

  #admit(socket: Socket, options?: SMTPConnectionOptions | null) {
    const connection = this.createConnection(socket, options)
    this.connections.add(connection)
    connection.on("error", (error: Error) => this.emit("error", error))
    connection.init()
  }
}

/**
 * Returns a function that runs the work behind a callback of the library and passes on its reply. Defects are logged as
 * `defect`; after a defect or an interruption the client gets a 451 and may try again.
 */
export const responder =
  <R>(run: (work: Effect.Effect<void, never, R>) => unknown, defect: string) =>
  <A>(work: Effect.Effect<A, Reply, R>, done: (refusal: Reply | null, value?: A) => void): void =>
    void run(
      Effect.matchCauseEffect(work, {
        onSuccess: (value) => Effect.sync(() => done(null, value)),
        onFailure: (cause) => {
          const refusal = cause.reasons.find((reason) => Cause.isFailReason(reason))?.error
          const reply = Effect.sync(() => done(refusal ?? replies.later))
          return refusal !== undefined || Cause.hasInterruptsOnly(cause)
            ? reply
            : Effect.andThen(Effect.logError(defect, cause), reply)
        },
      }),
    )

/** Returns the deadlines of sessions: at most one timer each. */
export const sessionTimers = () => {
  const timers = new Map<string, NodeJS.Timeout>()
  const clear = ({ id }: SMTPServerSession) => {
    clearTimeout(timers.get(id))
    timers.delete(id)
  }
  return {
    set: (session: SMTPServerSession, millis: number, expire: () => void) => {
      clear(session)
      timers.set(session.id, setTimeout(expire, millis))
    },
    clear,
  }
}
