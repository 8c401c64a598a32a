/**
 * The IMAP server: Mailboxes for mail programs (RFC 9051, RFC 3501), on a port with STARTTLS and one with implicit TLS.
 * This module owns the sockets; the protocol is in {@link module:imap/session/Session}.
 */
import { createServer, type Socket } from "node:net"
import { createSecureContext } from "node:tls"
import { isWithin, type Networks } from "@svc/cluster/net/ClientNetwork"
import { readHeader } from "@svc/cluster/net/ProxiedSocket"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Context, Effect, Fiber, FiberSet, Layer, type Redacted, type Scope } from "effect"
import * as SessionLimits from "./imap/server/SessionLimits.ts"
import { imapPurpose, Logins } from "./imap/server/Logins.ts"
import * as SpoolFiles from "./imap/server/SpoolFiles.ts"
import * as Turns from "./imap/server/SessionTurns.ts"
import { Wire } from "./imap/server/Wire.ts"
import type { Denied } from "./imap/session/Authentication.ts"
import * as Session from "./imap/session/Session.ts"
import type { Store } from "./imap/session/Store.ts"
import * as PostgresStore from "./imap/store/PostgresStore.ts"
import * as VerdictPool from "./judging/VerdictPool.ts"
import { certificateOf, listening, type ListenerTls, withHealth } from "./MailListener.ts"
import { Timing } from "../Timing.ts"

interface ImapSettings {
  readonly host: string
  /** 0 chooses a free port. */
  readonly port: number
  readonly tlsPort: number
  readonly mailDomain: string
  /** The maximum size of a message, and of a Mailbox. */
  readonly messageBytes: number
  readonly mailboxBytes: number
  readonly sessions: SessionLimits.Limits
  /** Whether passwords are accepted without TLS (Development). */
  readonly allowsPlain: boolean
  /** Load balancers that start each connection with a PROXY protocol header. */
  readonly proxies: Networks
  readonly tls: ListenerTls | undefined
}

class ImapListener extends Context.Service<ImapListener, { readonly port: number; readonly tlsPort: number }>()(
  "@svc/mail-gateway/mail/ImapListener",
) {}

/** The failed logins after which a session is closed. */
const triesInSession = 5

/** The maximum size of all messages being appended in this process. */
const spoolBytes = 1024 * 1024 * 1024

interface Watched {
  readonly session: Session.Session
  readonly end: (text: string) => void
  loginBy: number
  lastInputAt: number
  lastKeepAliveAt: number
}

const listen = Effect.fnUntraced(function* (settings: ImapSettings) {
  const logins = yield* Logins
  const judging = yield* VerdictPool.make({ workers: 2 })
  const openStore = yield* PostgresStore.make({
    judging,
    host: settings.mailDomain,
    mailboxBytes: settings.mailboxBytes,
  })
  const certificate = yield* certificateOf(settings.tls, "imap", settings.mailDomain)
  const contextOf = ({ cert, key }: ListenerTls) => createSecureContext({ cert, key, minVersion: "TLSv1.2" })
  let tlsContext = contextOf(certificate.pem)
  yield* certificate.follow((renewed) => {
    tlsContext = contextOf(renewed)
  })
  const spools = SpoolFiles.make(spoolBytes)
  const guests = SessionLimits.make(settings.sessions)
  const turns = Turns.make()
  const watched = new Set<Watched>()
  const run = yield* FiberSet.makeRuntime()

  const denied = (code: Denied["denied"], text: string, ends: boolean): Denied => ({ denied: code, text, ends })

  /**
   * Authenticates a client. The Mailbox's session slot is held until the session ends, and the session ends with its
   * credential.
   */
  const login = (address: string, end: (text: string) => void) => {
    let tries = 0
    return (
      user: string | undefined,
      password: Redacted.Redacted<string>,
    ): Effect.Effect<Store | Denied, never, Scope.Scope> =>
      Effect.gen(function* () {
        const login = yield* logins.judge(user, password, address, imapPurpose)
        const openPort = yield* Effect.acquireRelease(
          Effect.sync(() => guests.open(login.identityId)),
          (isOpen) => Effect.sync(() => isOpen && guests.close(login.identityId)),
        )
        if (!openPort) return denied("LIMIT", "This Mailbox has too many sessions.", false)
        yield* login.whenRevoked(() => end("The credential of this session has ended."))
        return yield* openStore({ ...login, address: `${login.handle}@${settings.mailDomain}` })
      }).pipe(
        Effect.catchTags({
          LoginRefused: () =>
            Effect.sync(() =>
              denied("AUTHENTICATIONFAILED", "User and password do not belong together.", ++tries >= triesInSession),
            ),
          unavailable: () => Effect.succeed(denied("UNAVAILABLE", "The service did not answer in time.", false)),
        }),
        Effect.catchDefect((defect) =>
          Effect.as(
            Effect.logError("An IMAP login ended in a defect", defect),
            denied("UNAVAILABLE", "Internal error.", false),
          ),
        ),
      )
  }

  const serve = Effect.fnUntraced(function* (socket: Socket, address: string, implicitTls: boolean) {
    const wire = new Wire(socket)
    if (implicitTls) yield* wire.secure(tlsContext)
    const own = yield* Effect.withFiber(Effect.succeed)
    /** Ends the session, whatever it is doing. An idle session is a single fiber that waits for input. */
    let isEnding = false
    const end = (text: string) => {
      if (isEnding) return
      isEnding = true
      const farewell = text === "" ? Effect.void : Effect.suspend(() => session.bye(text))
      run(Effect.andThen(farewell, Fiber.interrupt(own)))
    }
    // A client that does not read is disconnected without a BYE. After each write other sessions get a turn.
    const send = (bytes: string | Uint8Array) =>
      Effect.andThen(
        Effect.catch(wire.write(bytes), () => Effect.sync(() => end(""))),
        turns.take,
      )
    const session: Session.Session = yield* Session.make(
      {
        messageBytes: settings.messageBytes,
        spools,
        allowsPlain: settings.allowsPlain,
        send,
        run,
        login: login(address, end),
      },
      implicitTls,
    )
    const now = yield* monotonicMillis
    const entry: Watched = {
      session,
      end,
      loginBy: now + Timing.imapLoginMillis,
      lastInputAt: now,
      lastKeepAliveAt: now,
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => watched.add(entry)),
      () => Effect.sync(() => watched.delete(entry)),
    )
    yield* session.greet
    const converse = Effect.gen(function* () {
      while (true) {
        const portion = yield* wire.read
        if (portion === undefined) return
        entry.lastInputAt = yield* monotonicMillis
        turns.begin()
        const turn = yield* session.feed(portion)
        if (turn._tag === "Close") return
        if (turn._tag === "StartTls") {
          yield* wire.secure(tlsContext)
          session.secured()
        } else if (turn._tag === "Compress") wire.compress(portion.subarray(turn.at))
      }
    })
    yield* converse.pipe(
      Effect.onInterrupt(() =>
        isEnding ? Effect.void : Effect.timeoutOption(session.bye("The service is restarting."), "1 second"),
      ),
      Effect.ensuring(wire.end),
    )
  })

  const admit = (socket: Socket, address: string, implicitTls: boolean) => {
    socket.on("error", () => socket.destroy())
    if (!guests.connect(address)) {
      socket.end(implicitTls ? "" : "* BYE Too many sessions from your address.\r\n")
      return
    }
    run(
      serve(socket, address, implicitTls).pipe(
        Effect.scoped,
        Effect.ignore,
        Effect.catchDefect((defect) => Effect.logError("An IMAP session ended in a defect", defect)),
        Effect.ensuring(
          Effect.sync(() => {
            guests.disconnect(address)
            if (!socket.destroyed) setTimeout(() => socket.destroy(), 2_000).unref()
          }),
        ),
      ),
    )
  }

  const onConnection = (implicitTls: boolean) => (socket: Socket) => {
    const address = socket.remoteAddress
    if (address === undefined) return socket.destroy()
    if (!isWithin(settings.proxies, address)) return admit(socket, address, implicitTls)
    readHeader(socket, Timing.smtpProxyHeaderMillis, (source) => admit(socket, source?.address ?? address, implicitTls))
  }

  /** One timer checks the deadlines of all sessions. */
  const checkDeadlines = Effect.gen(function* () {
    const now = yield* monotonicMillis
    for (const entry of watched) {
      if (!entry.session.isLoggedIn() && now > entry.loginBy) entry.end("You did not log in.")
      else if (now - entry.lastInputAt > Timing.imapIdleMillis) entry.end("You were silent for too long.")
      else if (now - entry.lastKeepAliveAt > Timing.imapStirMillis) {
        entry.lastKeepAliveAt = now
        run(entry.session.stir)
      }
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.imapLookMillis), checkDeadlines)))

  const openPort = Effect.fnUntraced(function* (port: number, implicitTls: boolean) {
    const server = createServer({ noDelay: true, keepAlive: true }, onConnection(implicitTls))
    const close = Effect.sync(() => server.close())
    return yield* listening("IMAP", server, { host: settings.host, port }, (...at) => server.listen(...at), close)
  })
  return { port: yield* openPort(settings.port, false), tlsPort: yield* openPort(settings.tlsPort, true) }
})

export const layer = (settings: ImapSettings) =>
  Layer.effect(ImapListener, listen(settings)).pipe(withHealth("imap", ImapListener))
