/** Receiving mail servers for tests, compliant or scripted, and the transports to reach them. */
import { createServer, type Socket } from "node:net"
import { DkimKeys } from "@svc/cluster/mail/dkim/DkimKeys"
import { MailTransport, type Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { Dane } from "@svc/mail-gateway/mail/sending/dane/Dane"
import * as DirectTransport from "@svc/mail-gateway/mail/sending/DirectTransport"
import { Letters } from "@svc/mail-gateway/mail/sending/Letters"
import { MtaSts } from "@svc/mail-gateway/mail/sending/MtaSts"
import { Relay } from "@svc/mail-gateway/mail/sending/Relay"
import * as RelayTransport from "@svc/mail-gateway/mail/sending/RelayTransport"
import type { Deadlines } from "@svc/mail-gateway/mail/sending/smtp/Conversation"
import { parse } from "@svc/mail-gateway/mail/sending/RelayUrl"
import { LookupFailed, type Records, Resolver } from "@svc/mail-gateway/mail/Resolver"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { Effect, Layer, Redacted } from "effect"
import { SMTPServer, type SMTPServerOptions } from "smtp-server"

export const mailDomain = "mail.example"

/** A certificate for the test servers, and one of an untrusted authority. */
export const certificate = selfSigned(["localhost", "mx.example.org", "mx1.example.org"], new Date())
export const untrustedCertificate = selfSigned(["elsewhere.example"], new Date())

export interface ReceivedMail {
  readonly from: string
  readonly to: ReadonlyArray<string>
  /** The parameters of MAIL. */
  readonly parameters: Readonly<Record<string, unknown>>
  readonly raw: string
  readonly secure: boolean
}

export interface Sink {
  readonly port: number
  readonly taken: Array<ReceivedMail>
  readonly connections: () => number
  /** The number of open connections. */
  readonly open: () => number
}

/** A rejection as a server sends it. */
export const reply = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode })

export const sink = (options: SMTPServerOptions = {}, host = "127.0.0.1") =>
  Effect.acquireRelease(
    Effect.callback<Sink & { stop: () => void }>((resume) => {
      const received: Array<ReceivedMail> = []
      let connections = 0
      const server = new SMTPServer({
        ...certificate,
        authOptional: true,
        hideENHANCEDSTATUSCODES: false,
        logger: false,
        onConnect: (_, done) => {
          connections++
          done()
        },
        onData: (stream, session, done) => {
          const chunks: Array<Buffer> = []
          stream.on("data", (chunk: Buffer) => chunks.push(chunk))
          stream.on("end", () => {
            const { mailFrom, rcptTo } = session.envelope
            received.push({
              from: mailFrom === false ? "" : mailFrom.address,
              to: rcptTo.map(({ address }) => address),
              parameters: mailFrom === false || mailFrom.args === false ? {} : mailFrom.args,
              raw: Buffer.concat(chunks).toString("latin1"),
              secure: session.secure,
            })
            done()
          })
        },
        ...options,
      })
      server.on("error", () => {})
      server.listen(0, host, () => {
        const address = server.server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(
          Effect.succeed({
            port,
            taken: received,
            connections: () => connections,
            open: () => server.connections.size,
            stop: () => server.close(),
          }),
        )
      })
    }),
    ({ stop }) => Effect.sync(stop),
  )

/**
 * A server that replies to each line by a script, which sees no content except its end. The first line, before the greeting,
 * is empty. Null means no reply, and `close` ends the connection.
 */
export const scripted = (script: (line: string, socket: Socket) => string | null | "close") =>
  Effect.acquireRelease(
    Effect.callback<{ port: number; heard: Array<string>; stop: () => void }>((resume) => {
      const receivedLines: Array<string> = []
      const sockets = new Set<Socket>()
      const server = createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => {})
        const respond = (text: string | null) => {
          if (text === "close") socket.destroy()
          else if (text !== null && !socket.destroyed) socket.write(`${text}\r\n`)
        }
        let rest = ""
        let isContent = false
        respond(script("", socket))
        socket.on("data", (chunk) => {
          const lines = (rest + chunk.toString("latin1")).split("\r\n")
          rest = lines.pop()!
          for (const line of lines) {
            if (isContent && line !== ".") continue
            receivedLines.push(line)
            const answer = script(line, socket)
            isContent = answer?.startsWith("354") === true
            respond(answer)
          }
        })
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        const stop = () => {
          for (const socket of sockets) socket.destroy()
          server.close()
        }
        resume(Effect.succeed({ port, heard: receivedLines, stop }))
      })
    }),
    ({ stop }) => Effect.sync(stop),
  )

const lettersBy = (keys: typeof DkimKeys.layer) => Letters.layer({ mailDomain }).pipe(Layer.provide(keys))
const letters = lettersBy(DkimKeys.layer)

/** A relay transport. `host` is the actual address, `deadlines` overrides the timeouts. */
export const throughRelay = (url: string, ca?: string, host?: string, deadlines?: Deadlines, keys = DkimKeys.layer) =>
  RelayTransport.layer.pipe(
    Layer.provide([
      lettersBy(keys),
      Layer.unwrap(
        Effect.map(Effect.orDie(parse(Redacted.make(url))), (server) =>
          Relay.layer({
            server: { ...server, host: host ?? server.host },
            helo: "mx.mail.example",
            ...(ca === undefined ? {} : { ca }),
            ...(deadlines === undefined ? {} : { deadlines }),
          }),
        ),
      ),
    ]),
  )

export type Zone = Readonly<Record<string, ReadonlyArray<unknown> | string>>

/** Test DNS: records by `TYPE name`; a string is the error code of the look-up. */
export const dnsLayer = (zone: Zone) =>
  Layer.succeed(Resolver, {
    lookup: (name, type) => {
      const found = zone[`${type} ${name}`] ?? "ENOTFOUND"
      return typeof found === "string"
        ? Effect.fail(new LookupFailed({ code: found }))
        : // The record type depends on the query type, as with Node's resolver.
          Effect.succeed(found as unknown as Records)
    },
  })

export interface DirectTransportSettings extends Partial<DirectTransport.DirectSettings> {
  readonly port: number
  readonly zone: Zone
  /** MTA-STS policies by domain. */
  readonly policies?: Readonly<Record<string, string>>
  /** The port of a validating name server. If set, it is queried for servers and addresses. */
  readonly validating?: number
}

const unasked = () => Effect.die("nobody asks this")

/** A direct transport with this DNS and this port. */
export const directTransport = ({ port, zone, policies = {}, validating, ...settings }: DirectTransportSettings) => {
  const dane =
    validating === undefined ? Dane.none : Dane.layer({ resolver: { host: "127.0.0.1", port: validating }, port: 25 })
  const web = Layer.succeed(GuardedClient, {
    post: unasked,
    assertTarget: unasked,
    listen: unasked,
    ask: (url) => {
      const policy = policies[url.hostname.replace("mta-sts.", "")]
      return Effect.succeed({
        status: policy === undefined ? 404 : 200,
        headers: new Headers({ "content-type": "text/plain" }),
        body: Buffer.from(policy ?? ""),
      })
    },
  })
  return DirectTransport.layer({
    helo: "mx.mail.example",
    ours: [mailDomain],
    port,
    allowPrivate: true,
    ca: certificate.cert,
    ...settings,
  }).pipe(Layer.provide([letters, dane, MtaSts.layer.pipe(Layer.provide([dnsLayer(zone), web])), dnsLayer(zone)]))
}

export const content = Buffer.from(
  "From: Ada <ada@mail.example>\r\nTo: grace@example.org\r\nSubject: hello\r\nDate: Fri, 20 Nov 2026 12:00:00 +0000\r\n" +
    "Message-ID: <1@mail.example>\r\n\r\n.hidden dot\r\n..two\r\nlast\r\n",
)

export const transmission = (more: Partial<Transmission> = {}): Transmission => ({
  id: "msg_1",
  envelopeFrom: "bounce+abc@mail.example",
  recipients: ["grace@example.org"],
  domain: "example.org",
  content,
  mayLeave: Effect.succeed(true),
  isPermitted: () => true,
  ...more,
})

/** Sends each message over a new connection to the relay. */
export const sendEachOver = (url: string, ca?: string) => {
  const transport = throughRelay(url, ca)
  return (more: Partial<Transmission> = {}) =>
    Effect.flatMap(MailTransport, ({ send }) => send(transmission(more))).pipe(Effect.provide(transport))
}

/** Sends messages over one transport, hence one pool of connections. */
export const withTransport = <A, E, R>(
  url: string,
  work: (
    send: (more?: Partial<Transmission>) => ReturnType<MailTransport["Service"]["send"]>,
  ) => Effect.Effect<A, E, R>,
) =>
  Effect.flatMap(MailTransport, ({ send }) => work((more) => send(transmission(more)))).pipe(
    Effect.provide(throughRelay(url)),
  )
