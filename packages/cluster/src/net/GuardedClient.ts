/**
 * The one HTTP client for URLs that users gave. At every call the host is resolved, every address it has is judged by
 * {@link isPublic}, and a new connection goes to an address that was judged; a kept one was judged when it was made.
 * Redirects are answers, not instructions. One deadline covers resolution, connection, headers and body.
 */
import { lookup, type LookupAddress } from "node:dns"
import { isIP } from "node:net"
import type { LookupFunction } from "node:net"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { Agent, errors, request } from "undici"
import { Timing } from "../Timing.ts"
import { isPublic } from "./AddressGuard.ts"

/** What a receiver's answer is worth reading: at most this many bytes of it. */
const readAtMost = 64 * 1024

/** No answer arrived. `error` is a short stable word: `timeout`, `dns`, `refused_address`, `tls` or `connection`. */
export class DeliveryFailed extends Schema.TaggedError<DeliveryFailed>()("DeliveryFailed", {
  error: Schema.Literals(["timeout", "dns", "refused_address", "tls", "connection"]),
  durationMs: Schema.Int,
}) {}

/** The URL may not be a target at all. */
export class TargetRefused extends Schema.TaggedError<TargetRefused>()("TargetRefused", { message: Schema.String }) {}

export interface Answer {
  readonly statusCode: number
  readonly durationMs: number
}

/** Every address of a host, as `dns.lookup` answers with `all`. */
export type Resolve = (
  host: string,
  done: (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void,
) => void

export interface GuardOptions {
  /** Development: http and addresses that are not public are allowed. */
  readonly allowPrivate: boolean
  readonly resolve?: Resolve
  readonly timeoutMillis?: number
}

class RefusedAddress extends Error {}

const systemResolve: Resolve = (host, done) =>
  lookup(host, { all: true, verbatim: true }, (error, addresses) => done(error, addresses ?? []))

const make = (options: GuardOptions) =>
  Effect.gen(function* () {
    const resolve = options.resolve ?? systemResolve
    const timeout = options.timeoutMillis ?? Timing.deliveryTimeoutMillis

    const judged = (host: string, done: (error: Error | null, addresses: ReadonlyArray<LookupAddress>) => void) =>
      resolve(host, (error, addresses) => {
        if (error !== null) return done(error, [])
        const refused = !options.allowPrivate && addresses.some(({ address }) => !isPublic(address))
        done(refused || addresses.length === 0 ? new RefusedAddress(host) : null, addresses)
      })

    /** The connection goes to an address this very look-up judged, whatever a later one would say. */
    const guardedLookup: LookupFunction = (host, wanted, done) =>
      judged(host, (error, addresses) => {
        if (error !== null) return done(error, "", 4)
        if (wanted.all === true) return done(null, [...addresses])
        done(null, addresses[0]!.address, addresses[0]!.family)
      })

    const agent = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Agent({
            connect: { lookup: guardedLookup, timeout },
            connections: 8,
            pipelining: 1,
            keepAliveTimeout: 10_000,
          }),
      ),
      (agent) => Effect.promise(() => agent.destroy()),
    )

    /** A kept connection was judged when it was made; the name is judged again for this call. */
    const checkHost = (host: string) =>
      new Promise<void>((accept, reject) => {
        const literal = host.replace(/^\[|\]$/g, "")
        if (isIP(literal) !== 0) {
          return options.allowPrivate || isPublic(literal) ? accept() : reject(new RefusedAddress(host))
        }
        if (options.allowPrivate) return accept()
        judged(host, (error) => (error === null ? accept() : reject(error)))
      })

    const exchange = async (
      url: URL,
      message: { readonly headers: Record<string, string>; readonly body: string },
      signal: AbortSignal,
    ) => {
      await abortable(checkHost(url.hostname), signal)
      const response = await request(url, {
        dispatcher: agent,
        method: "POST",
        headers: message.headers,
        body: message.body,
        signal,
        headersTimeout: timeout,
        bodyTimeout: timeout,
      })
      let read = 0
      for await (const chunk of response.body) {
        read += (chunk as Uint8Array).length
        if (read > readAtMost) break
      }
      return response.statusCode
    }

    return {
      post: (
        url: string,
        message: { readonly headers: Record<string, string>; readonly body: string },
      ): Effect.Effect<Answer, DeliveryFailed> =>
        Effect.gen(function* () {
          const start = yield* Clock.currentTimeNanos
          const elapsed = Effect.map(Clock.currentTimeNanos, (end) => Math.round(Number(end - start) / 1e6))
          const deadline = AbortSignal.timeout(timeout)
          const result = yield* Effect.tryPromise({
            try: (signal) => exchange(new URL(url), message, AbortSignal.any([signal, deadline])),
            catch: (error) => nameOf(error, deadline.aborted),
          }).pipe(Effect.result)
          const durationMs = yield* elapsed
          return result._tag === "Success"
            ? { statusCode: result.success, durationMs }
            : yield* new DeliveryFailed({ error: result.failure, durationMs })
        }),

      /** Judges a URL before it is stored; its addresses are judged again at every call. */
      assertTarget: (text: string): Effect.Effect<void, TargetRefused> =>
        Effect.gen(function* () {
          const url = URL.canParse(text) ? new URL(text) : undefined
          const refuse = (message: string) => new TargetRefused({ message })
          if (url === undefined) return yield* refuse("The target is not an absolute URL.")
          if (url.protocol !== "https:" && !(options.allowPrivate && url.protocol === "http:")) {
            return yield* refuse("The target must be an https URL.")
          }
          if (url.username !== "" || url.password !== "") return yield* refuse("The target's URL carries credentials.")
          yield* Effect.tryPromise({
            try: (signal) =>
              abortable(checkHost(url.hostname), AbortSignal.any([signal, AbortSignal.timeout(timeout)])),
            catch: (error) =>
              error instanceof RefusedAddress
                ? refuse("The target's host does not resolve to public addresses only.")
                : refuse("The target's host does not resolve."),
          })
        }),
    }
  })

const abortable = <A>(promise: Promise<A>, signal: AbortSignal): Promise<A> =>
  Promise.race([
    promise,
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
  ])

const nameOf = (error: unknown, late: boolean): DeliveryFailed["error"] => {
  if (
    late ||
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError
  ) {
    return "timeout"
  }
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RefusedAddress) return "refused_address"
    const code = "code" in cause ? String(cause.code) : ""
    if (code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "ENODATA") return "dns"
    if (/CERT|SSL|TLS|SELF_SIGNED|ALTNAME/.test(code)) return "tls"
  }
  return "connection"
}

export class GuardedClient extends Context.Service<GuardedClient, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/cluster/net/GuardedClient",
) {
  static readonly layer = (options: GuardOptions) => Layer.effect(GuardedClient, make(options))
}
