/**
 * The only HTTP client for URLs that users supply. Each call resolves the host and checks all of its addresses with
 * {@link isPublic}. A new connection uses an address from its own checked lookup, which prevents DNS rebinding. A pooled
 * connection was checked when it was opened and is used for at most a minute. Redirects are not followed. One deadline covers
 * resolution, connection, headers and body.
 */
import { lookup, type LookupAddress } from "node:dns"
import { Resolver } from "node:dns/promises"
import { isIP, type LookupFunction } from "node:net"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import type { Agent, Dispatcher } from "undici"
import { Timing } from "../Timing.ts"
import { isPublic } from "./AddressGuard.ts"

import {
  type BeginningOfResponse,
  type BufferedResponse,
  type BufferedRequest,
  collecting,
  readingBeginning,
  TooLarge,
} from "./BufferedResponse.ts"
import * as GuardedSocket from "./GuardedSocket.ts"
import { type SendPermission, whilePermitted } from "./SendPermission.ts"

/**
 * The request received no response, or one above the size limit. `error` is a stable code.
 */
export class RequestFailed extends Schema.TaggedError<RequestFailed>()("RequestFailed", {
  error: Schema.Literals(["timeout", "dns", "refused_address", "tls", "connection", "too_large"]),
  durationMs: Schema.Int,
}) {}

/** The maximum number of WebSockets of a process; another one fails with `connection`. */
const socketsAtMost = 1_000

/** The URL is not allowed as a target. */
class TargetRefused extends Schema.TaggedError<TargetRefused>()("TargetRefused", { message: Schema.String }) {}

interface Message {
  readonly headers: Record<string, string>
  readonly body: string
}

interface GuardedResponse extends BeginningOfResponse {
  readonly durationMs: number
}

type Resolved = (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void

/** Resolves all addresses of a host, like `dns.lookup` with `all`. */
export type Resolve = (host: string, done: Resolved) => void

export interface GuardOptions {
  /** Whether http and private addresses are allowed (Development). */
  readonly allowPrivate: boolean
  readonly resolve?: Resolve
  readonly timeoutMillis?: number
}

class TookTooLong extends Error {}
class RefusedAddress extends Error {}
class CannotResolve extends Error {}

const make = (options: GuardOptions) =>
  Effect.gen(function* () {
    const resolve = options.resolve ?? (options.allowPrivate ? systemResolve : nameServers())
    const duration = options.timeoutMillis ?? Timing.deliveryTimeoutMillis

    const resolveChecked = (host: string, done: Resolved) =>
      resolve(host, (error, addresses) => {
        if (error !== null || addresses.length === 0) return done(new CannotResolve(host, { cause: error }), [])
        const refused = !options.allowPrivate && addresses.some(({ address }) => !isPublic(address))
        done(refused ? new RefusedAddress(host) : null, addresses)
      })

    const guardedLookup: LookupFunction = (host, wanted, done) =>
      resolveChecked(host, (error, addresses) => {
        if (error !== null) return done(error, "", 4)
        if (wanted.all === true) return done(null, [...addresses])
        done(null, addresses[0]!.address, addresses[0]!.family)
      })

    // Loaded with the first call: the library costs a tenth of the start time and 18 MB, and many processes never need it.
    let agent: Agent | undefined
    let opening: Promise<Agent> | undefined
    const open = async () => {
      const undici = await import("undici")
      agent = new undici.Agent({
        connect: { lookup: guardedLookup, timeout: duration },
        // Unlimited: users who share a host must not wait for each other's hanging paths. The delivery queue limits the
        // attempts of each Webhook.
        connections: null,
        pipelining: 1,
        // HTTP/2 has no benefit here, and Node can abort when it takes over a TLS socket.
        allowH2: false,
        keepAliveTimeout: 10_000,
        clientTtl: 60_000,
      })
      return agent
    }
    const opened = Effect.suspend(() =>
      agent === undefined ? Effect.promise(() => (opening ??= open())) : Effect.succeed(agent),
    )
    yield* Effect.addFinalizer(() => Effect.promise(async () => (await opening)?.destroy()))
    /** Starts the deadline after the library is loaded. */
    const started = <A, E>(call: (agent: Agent, start: bigint) => Effect.Effect<A, E>) =>
      Effect.flatMap(opened, (agent) => Effect.flatMap(Clock.currentTimeNanos, (start) => call(agent, start)))

    let sockets = 0

    /** Whether the scheme is allowed (https, and http in Development) and the URL has no credentials. */
    const speaks = ({ protocol, username, password }: URL) =>
      (protocol === "https:" || (options.allowPrivate && protocol === "http:")) && username === "" && password === ""

    /** Checks a host. A literal address is not looked up; `URL` has normalized its decimal, octal and hexadecimal forms. */
    const judge = (hostname: string, done: (error: Error | null) => void): void => {
      if (options.allowPrivate) return done(null)
      const literal = hostname.replace(/^\[|\]$/g, "")
      if (isIP(literal) !== 0) return done(isPublic(literal) ? null : new RefusedAddress(hostname))
      resolveChecked(hostname, done)
    }
    const judgeHost = (hostname: string) =>
      Effect.callback<void, Error>((resume) =>
        judge(hostname, (error) => resume(error === null ? Effect.void : Effect.fail(error))),
      )

    /** Sends a request once its host is checked, and reads its response, until the deadline. */
    const exchange = (agent: Agent, url: URL, message: Message) =>
      Effect.callback<BeginningOfResponse, Error>((resume) => {
        const handler = readingBeginning((exit) => {
          clearTimeout(deadline)
          resume(exit)
        })
        const cancel = () => {
          clearTimeout(deadline)
          handler.cancel()
        }
        // A timer of the machine: a timeout of the library would cost two fibers for each delivery.
        const deadline = setTimeout(() => {
          resume(Effect.fail(new TookTooLong()))
          handler.cancel()
        }, duration)
        judge(url.hostname, (error) => {
          if (error !== null) return handler.failed(error)
          if (handler.isCancelled()) return
          agent.dispatch(
            {
              origin: url.origin,
              path: url.pathname + url.search,
              method: "POST",
              headers: message.headers,
              body: message.body,
              headersTimeout: duration,
              bodyTimeout: duration,
            },
            handler,
          )
        })
        return Effect.sync(cancel)
      })

    const wholeExchange = (agent: Agent, url: URL, question: BufferedRequest, isPermitted: () => boolean) =>
      Effect.callback<BufferedResponse, Error>((resume) => {
        const handler = collecting(question.atMost, isPermitted, resume)
        agent.dispatch(
          {
            origin: url.origin,
            path: url.pathname + url.search,
            method: question.method as Dispatcher.HttpMethod,
            // The size of compressed content cannot be limited before it is decompressed.
            headers: { ...question.headers, "accept-encoding": "identity" },
            body: question.body ?? null,
            headersTimeout: duration,
            bodyTimeout: duration,
          },
          handler,
        )
        return Effect.sync(handler.cancel)
      })

    return {
      /**
       * Requests a whole response. The permission to send is requested after the host was checked, and renewed while the
       * request waits for its connection.
       */
      ask: <E>(
        url: URL,
        question: BufferedRequest,
        permission: SendPermission<E>,
      ): Effect.Effect<BufferedResponse, E | RequestFailed> =>
        started((agent, start) => {
          const failed = (error: RequestFailed["error"]) =>
            Effect.flatMap(Clock.currentTimeNanos, (end) =>
              Effect.fail(new RequestFailed({ error, durationMs: Math.round(Number(end - start) / 1e6) })),
            )
          if (!speaks(url)) return failed("refused_address")
          return judgeHost(url.hostname).pipe(
            Effect.catch((error) => failed(nameOf(error))),
            Effect.andThen(
              whilePermitted(
                permission,
                (isPermitted) => wholeExchange(agent, url, question, isPermitted),
                (error) => failed(error instanceof TooLarge ? "too_large" : nameOf(error)),
              ),
            ),
            Effect.timeoutOrElse({ duration, orElse: () => failed("timeout") }),
          )
        }),

      /**
       * Receives the messages of a WebSocket, given by its http URL, until it closes. The permission is requested before it opens.
       */
      listen: <E>(
        url: URL,
        listening: GuardedSocket.Listening,
        permission: SendPermission<E>,
      ): Effect.Effect<never, E | RequestFailed | GuardedSocket.NotOpened> =>
        Effect.suspend(() => {
          const failed = (error: RequestFailed["error"]) => Effect.fail(new RequestFailed({ error, durationMs: 0 }))
          if (!speaks(url)) return failed("refused_address")
          if (sockets >= socketsAtMost) return failed("connection")
          sockets++
          return judgeHost(url.hostname).pipe(
            Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(new CannotResolve(url.hostname)) }),
            Effect.catch((error) => failed(nameOf(error))),
            Effect.andThen(permission.request),
            Effect.andThen(
              Effect.catch(
                GuardedSocket.listen(url, listening, guardedLookup),
                (end): Effect.Effect<never, RequestFailed | GuardedSocket.NotOpened> =>
                  end instanceof GuardedSocket.NotOpened
                    ? Effect.fail(end)
                    : failed(end instanceof Error ? nameOf(end) : end),
              ),
            ),
            Effect.ensuring(Effect.sync(() => sockets--)),
          )
        }),

      post: (url: string, message: Message): Effect.Effect<GuardedResponse, RequestFailed> =>
        started((agent, start) => {
          const ended = <A, E>(outcome: (durationMs: number) => Effect.Effect<A, E>) =>
            Effect.flatMap(Clock.currentTimeNanos, (end) => outcome(Math.round(Number(end - start) / 1e6)))
          const failed = (error: RequestFailed["error"]) =>
            ended((durationMs) => Effect.fail(new RequestFailed({ error, durationMs })))
          return Effect.matchEffect(exchange(agent, new URL(url), message), {
            onSuccess: (read) => ended((durationMs) => Effect.succeed({ ...read, durationMs })),
            onFailure: (error) => failed(nameOf(error)),
          })
        }),

      /** Checks a URL before it is stored; its addresses are checked again for each call. */
      assertTarget: (text: string): Effect.Effect<void, TargetRefused> => {
        const refuse = (message: string) => Effect.fail(new TargetRefused({ message }))
        const url = URL.parse(text)
        if (url === null) return refuse("The target is not an absolute URL.")
        if (url.protocol !== "https:" && !(options.allowPrivate && url.protocol === "http:")) {
          return refuse("The target must be an https URL.")
        }
        if (url.username !== "" || url.password !== "") return refuse("The target's URL contains credentials.")
        return judgeHost(url.hostname).pipe(
          Effect.catch((error) =>
            error instanceof RefusedAddress
              ? refuse("The target's host does not resolve to public addresses only.")
              : refuse("The target's host does not resolve."),
          ),
          Effect.timeoutOrElse({ duration, orElse: () => refuse("The target's host does not resolve.") }),
        )
      },
    }
  })

/**
 * Resolves names like the operating system, including its hosts file. Names below `localhost`, such as those of Tunnels in
 * Development, are loopback (RFC 6761 section 6.3), which not every resolver knows.
 */
const systemResolve: Resolve = (host, done) =>
  host.endsWith(".localhost")
    ? done(null, [{ address: "127.0.0.1", family: 4 }])
    : lookup(host, { all: true, verbatim: true }, (error, addresses) => done(error, addresses ?? []))

/**
 * Resolves names without `getaddrinfo`, which would block one of the process's few worker threads while a malicious name server
 * does not respond.
 */
const nameServers = (): Resolve => {
  const dns = new Resolver({ timeout: 2_000, tries: 2 })
  return async (host, done) => {
    const [four, six] = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)])
    const found = (family: 4 | 6, answer: PromiseSettledResult<ReadonlyArray<string>>) =>
      answer.status === "fulfilled" ? answer.value.map((address) => ({ address, family })) : []
    done(null, [...found(4, four), ...found(6, six)])
  }
}

const nameOf = (error: Error): RequestFailed["error"] => {
  if (error instanceof TookTooLong) return "timeout"
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RefusedAddress) return "refused_address"
    if (cause instanceof CannotResolve) return "dns"
    const code = "code" in cause ? String(cause.code) : ""
    if (timeouts.has(code)) return "timeout"
    if (ofCertificates.test(code)) return "tls"
  }
  return "connection"
}

/** Error codes of Node and of undici. */
const timeouts = new Set(["ETIMEDOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "UND_ERR_CONNECT_TIMEOUT"])

/** Error codes of a failed handshake or certificate; those of certificates are OpenSSL's (`X509_V_ERR_…`). */
const ofCertificates = /CERT|SSL|TLS|CRL|^EPROTO$|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_/

export class GuardedClient extends Context.Service<GuardedClient, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/net/GuardedClient",
) {
  static readonly layer = (options: GuardOptions) => Layer.effect(GuardedClient, make(options))
}
