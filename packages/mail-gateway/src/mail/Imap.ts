/**
 * The IMAP server: Mailboxes for mail programs (RFC 9051, RFC 3501), on a port with STARTTLS and one with TLS from the
 * start. Here are the sockets; what is said on them is the session's ({@link module:imap/session/Session}).
 */
import { createServer, type Socket } from "node:net"
import { isWithin, type Networks } from "@svc/cluster/net/ClientNetwork"
import { readHeader } from "@svc/cluster/net/ProxiedSocket"
import { monotonicMillis } from "@svc/domain/MonotonicTime"
import { Context, Effect, Fiber, FiberSet, Layer, type Redacted, type Scope } from "effect"
import * as Certificates from "./imap/server/Certificates.ts"
import * as SessionLimits from "./imap/server/SessionLimits.ts"
import { imapDoor, Logins } from "./imap/server/Logins.ts"
import * as SpoolFiles from "./imap/server/SpoolFiles.ts"
import * as Turns from "./imap/server/SessionTurns.ts"
import { Wire } from "./imap/server/Wire.ts"
import type { Denied } from "./imap/session/Authenticating.ts"
import * as Session from "./imap/session/Session.ts"
import type { Store } from "./imap/session/Store.ts"
import * as PostgresStore from "./imap/store/PostgresStore.ts"
import * as VerdictPool from "./judging/VerdictPool.ts"
import { listening, withHealth } from "./MailListener.ts"
import { Timing } from "../Timing.ts"

export interface ImapSettings {
  readonly host: string
  /** 0 takes a free port. */
  readonly port: number
  readonly tlsPort: number
  readonly mailDomain: string
  /** Bytes of a message, and of a Mailbox. */
  readonly messageBytes: number
  readonly mailboxBytes: number
  readonly sessions: SessionLimits.Limits
  /** Whether passwords may be said in the clear (Development). */
  readonly allowsPlain: boolean
  /** Balancers that begin each connection with a PROXY protocol header. */
  readonly proxies: Networks
  readonly tls: Certificates.Pair | undefined
}

export class ImapListener extends Context.Service<ImapListener, { readonly port: number; readonly tlsPort: number }>()(
  "@svc/mail-gateway/mail/ImapListener",
) {}

/** Failed logins of one session. */
const triesInSession = 5

/** Bytes of messages on their way in, of all sessions of the process. */
const spoolBytes = 1024 * 1024 * 1024

interface Watched {
  readonly session: Session.Session
  readonly end: (text: string) => void
  loginBy: number
  heardAt: number
  stirredAt: number
}

const listen = Effect.fnUntraced(function* (settings: ImapSettings) {
  const logins = yield* Logins
  const judging = yield* VerdictPool.make({ threads: 2 })
  const openStore = yield* PostgresStore.make({
    judging,
    host: settings.mailDomain,
    mailboxBytes: settings.mailboxBytes,
  })
  const certificate = yield* Certificates.make(settings.tls, [settings.mailDomain, "localhost"])
  const spools = SpoolFiles.make(spoolBytes)
  const guests = SessionLimits.make(settings.sessions)
  const turns = Turns.make()
  const watched = new Set<Watched>()
  const run = yield* FiberSet.makeRuntime()

  const denied = (code: Denied["denied"], text: string, ends: boolean): Denied => ({ denied: code, text, ends })

  /** Logs in a client; its Mailbox's place is taken until the session ends, which its credential's end is. */
  const login = (address: string, end: (text: string) => void) => {
    let tries = 0
    return (
      user: string | undefined,
      password: Redacted.Redacted<string>,
    ): Effect.Effect<Store | Denied, never, Scope.Scope> =>
      Effect.gen(function* () {
        const login = yield* logins.judge(user, password, address, imapDoor)
        const opened = yield* Effect.acquireRelease(
          Effect.sync(() => guests.open(login.identityId)),
          (isOpen) => Effect.sync(() => isOpen && guests.close(login.identityId)),
        )
        if (!opened) return denied("LIMIT", "This Mailbox has too many sessions.", false)
        yield* login.whenGone(() => end("The credential of this session has ended."))
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

  const serve = Effect.fnUntraced(function* (socket: Socket, address: string, tlsAtOnce: boolean) {
    const wire = new Wire(socket)
    if (tlsAtOnce) yield* wire.secure(certificate())
    const own = yield* Effect.withFiber(Effect.succeed)
    /** Ends the session, whatever it is at; an idle one is one fiber, which waits for what the client says. */
    let isEnding = false
    const end = (text: string) => {
      if (isEnding) return
      isEnding = true
      const farewell = text === "" ? Effect.void : Effect.suspend(() => session.bye(text))
      run(Effect.andThen(farewell, Fiber.interrupt(own)))
    }
    // Whoever does not read ends here; what else would come after it is not said. Whoever was answered lets others go on.
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
      tlsAtOnce,
    )
    const now = yield* monotonicMillis
    const one: Watched = {
      session,
      end,
      loginBy: now + Timing.imapLoginMillis,
      heardAt: now,
      stirredAt: now,
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => watched.add(one)),
      () => Effect.sync(() => watched.delete(one)),
    )
    yield* session.greet
    const talk = Effect.gen(function* () {
      while (true) {
        const portion = yield* wire.read
        if (portion === undefined) return
        one.heardAt = yield* monotonicMillis
        turns.begin()
        const turn = yield* session.feed(portion)
        if (turn._tag === "Close") return
        if (turn._tag === "StartTls") {
          yield* wire.secure(certificate())
          session.secured()
        } else if (turn._tag === "Compress") wire.compress(portion.subarray(turn.at))
      }
    })
    yield* talk.pipe(
      Effect.onInterrupt(() =>
        isEnding ? Effect.void : Effect.timeoutOption(session.bye("The service is restarting."), "1 second"),
      ),
      Effect.ensuring(wire.end),
    )
  })

  const admit = (socket: Socket, address: string, tlsAtOnce: boolean) => {
    socket.on("error", () => socket.destroy())
    if (!guests.connect(address)) {
      socket.end(tlsAtOnce ? "" : "* BYE Too many sessions from your address.\r\n")
      return
    }
    run(
      serve(socket, address, tlsAtOnce).pipe(
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

  const onConnection = (tlsAtOnce: boolean) => (socket: Socket) => {
    const address = socket.remoteAddress
    if (address === undefined) return socket.destroy()
    if (!isWithin(settings.proxies, address)) return admit(socket, address, tlsAtOnce)
    readHeader(socket, Timing.smtpProxyHeaderMillis, (source) => admit(socket, source?.address ?? address, tlsAtOnce))
  }

  /** All sessions share one look at the time. */
  const look = Effect.gen(function* () {
    const now = yield* monotonicMillis
    for (const one of watched) {
      if (!one.session.isLoggedIn() && now > one.loginBy) one.end("You did not log in.")
      else if (now - one.heardAt > Timing.imapIdleMillis) one.end("You were silent for too long.")
      else if (now - one.stirredAt > Timing.imapStirMillis) {
        one.stirredAt = now
        run(one.session.stir)
      }
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(Timing.imapLookMillis), look)))

  const opened = Effect.fnUntraced(function* (port: number, tlsAtOnce: boolean) {
    const server = createServer({ noDelay: true, keepAlive: true }, onConnection(tlsAtOnce))
    const close = Effect.sync(() => server.close())
    return yield* listening("IMAP", server, { host: settings.host, port }, (...at) => server.listen(...at), close)
  })
  return { port: yield* opened(settings.port, false), tlsPort: yield* opened(settings.tlsPort, true) }
})

export const layer = (settings: ImapSettings) =>
  Layer.effect(ImapListener, listen(settings)).pipe(withHealth("imap", ImapListener))
