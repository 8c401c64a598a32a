/**
 * The HTTP client of platforms, for addresses that users and servers provide. Every address is validated and pinned
 * (`net/GuardedClient`), redirects are returned instead of followed, responses are limited in size, and no request
 * leaves once the Connector is paused or owned by another process.
 */
import { Clock, Effect } from "effect"
import type { GuardedClient, RequestFailed } from "../../net/GuardedClient.ts"
import type { Listening } from "../../net/GuardedSocket.ts"
import type { SendPermission } from "../../net/SendPermission.ts"
import { type Halted, PlatformRateLimited, PlatformUnreachable, Unsupported } from "./Failure.ts"

interface PlatformRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | undefined
  /** Largest response body in bytes; default 1 MiB. */
  readonly atMost?: number
}

export interface PlatformResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

type AskFailure = Halted | PlatformUnreachable | PlatformRateLimited

export interface PlatformHttp {
  /** Sends a request. A 429, or a 503 with `Retry-After`, fails with `PlatformRateLimited`. */
  readonly request: (url: string | URL, asked?: PlatformRequest) => Effect.Effect<PlatformResponse, AskFailure>
  /**
   * A `fetch` for libraries. Does not follow redirects, returns 429 as a response, and rejects with {@link Halted} or
   * {@link PlatformUnreachable}.
   */
  readonly fetch: typeof globalThis.fetch
  /**
   * Listens to a WebSocket, given by its http address, until it closes. Fails with `Unsupported` if the server opens
   * none. Messages are limited in size.
   */
  readonly listen: (url: string | URL, listening: Listening) => Effect.Effect<never, AskFailure | Unsupported>
  /** Returns the earliest time for the next request, if the last response defined one. */
  readonly quietUntil: () => Date | undefined
}

/** Default for the largest response body in bytes. */
const defaultAtMost = 1024 * 1024

const descriptions: { readonly [E in RequestFailed["error"]]: string } = {
  timeout: "did not respond in time",
  dns: "has no address",
  refused_address: "is not a public https address",
  tls: "has no valid certificate",
  connection: "cannot be reached",
  too_large: "sent a response that is too large",
}

const userAgent = "agent-identity-service"

const bodyless = new Set(["GET", "HEAD"])

export const make = (client: GuardedClient["Service"], permission: SendPermission<Halted>): PlatformHttp => {
  let quiet: Date | undefined

  const exchange = Effect.fnUntraced(function* (target: string | URL, options: PlatformRequest) {
    const url = URL.parse(target)
    if (url === null) return yield* new PlatformUnreachable({ message: "The address is not valid." })
    const answer = yield* client
      .ask(
        url,
        {
          method: options.method ?? "GET",
          headers: { accept: "application/json", "user-agent": userAgent, ...options.headers },
          body: options.body,
          atMost: options.atMost ?? defaultAtMost,
        },
        permission,
      )
      .pipe(
        Effect.catchTag("RequestFailed", ({ error }) =>
          Effect.fail(new PlatformUnreachable({ message: `${url.host} ${descriptions[error]}.` })),
        ),
      )
    quiet = quietUntil(answer.status, answer.headers, yield* Clock.currentTimeMillis)
    return answer
  })

  const request: PlatformHttp["request"] = (target, options = {}) =>
    Effect.flatMap(exchange(target, options), (answer) =>
      answer.status === 429 || (answer.status === 503 && quiet !== undefined)
        ? Effect.fail(
            new PlatformRateLimited({ message: "The platform limits the rate of calls.", until: quiet ?? null }),
          )
        : Effect.succeed(answer),
    )

  return {
    request,
    fetch: async (input, init) => {
      const request = new Request(input, init)
      const body = bodyless.has(request.method) ? undefined : new Uint8Array(await request.arrayBuffer())
      const answer = await Effect.runPromise(
        Effect.result(
          exchange(request.url, {
            method: request.method,
            headers: Object.fromEntries(request.headers),
            body,
          }),
        ),
        { signal: request.signal },
      )
      if (answer._tag === "Failure") throw answer.failure
      const { status, headers, body: bytes } = answer.success
      // The constructor rejects a body for these statuses.
      const empty = status === 204 || status === 205 || status === 304
      const response = new Response(empty ? null : Uint8Array.from(bytes), {
        status: status < 200 ? 502 : status,
        headers,
      })
      // Libraries check the URL for redirects; none was followed.
      Object.defineProperty(response, "url", { value: request.url })
      return response
    },
    listen: Effect.fnUntraced(function* (target, listening) {
      const url = URL.parse(target)
      if (url === null) return yield* new PlatformUnreachable({ message: "The address is not valid." })
      return yield* client
        .listen(url, { ...listening, headers: { "user-agent": userAgent, ...listening.headers } }, permission)
        .pipe(
          Effect.catchTags({
            RequestFailed: ({ error }) =>
              Effect.fail(new PlatformUnreachable({ message: `${url.host} ${descriptions[error]}.` })),
            NotOpened: ({ status }) =>
              Effect.fail(new Unsupported({ message: `${url.host} opens no stream: it responded with ${status}.` })),
          }),
        )
    }),
    quietUntil: () => quiet,
  }
}

const number = (text: string | null): number | undefined =>
  text !== null && /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : undefined

/** Longest accepted delay. */
const longestMillis = 60 * 60 * 1000

const at = (text: string | null, now: number): number | undefined => {
  if (text === null) return undefined
  const seconds = number(text)
  // Large numbers are epoch seconds; small ones are delays.
  if (seconds !== undefined) return seconds > 1_000_000_000 ? seconds * 1000 : now + seconds * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : date
}

/**
 * Returns the earliest time for the next request, or undefined if it may be sent now. Reads `Retry-After` (RFC 9110
 * section 10.2.3), Mastodon's `X-RateLimit-Remaining` and `-Reset` (a date), and Bluesky's `RateLimit-Remaining` and
 * `-Reset` (epoch seconds or a delay in seconds).
 */
const quietUntil = (status: number, headers: Headers, now: number): Date | undefined => {
  const remaining = number(headers.get("x-ratelimit-remaining") ?? headers.get("ratelimit-remaining"))
  const refused = status === 429
  if (!refused && remaining !== 0 && !(status === 503 && headers.has("retry-after"))) return undefined
  const stated =
    at(headers.get("retry-after"), now) ?? at(headers.get("x-ratelimit-reset") ?? headers.get("ratelimit-reset"), now)
  if (stated === undefined) return refused ? new Date(now + 60_000) : undefined
  return stated <= now ? undefined : new Date(Math.min(stated, now + longestMillis))
}
