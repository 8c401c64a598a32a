/**
 * A platform's way to the world: HTTP to addresses that users and servers name. Every address is judged and connected to
 * as judged (`net/GuardedClient`), a redirect is an answer, an answer that is longer than `atMost` is none, and nothing
 * leaves once the Connector is paused or belongs to another process.
 */
import type { Effect } from "effect"
import type { Halted, PlatformRateLimited, PlatformUnreachable } from "./Failure.ts"

export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** Bytes of the answer's body; 1 MiB where it is left out. */
  readonly atMost?: number
}

export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: Uint8Array
}

export interface Reach {
  readonly ask: (url: string | URL, asked?: Asked) => Effect.Effect<Answered, Halted | PlatformUnreachable>
  /**
   * The same as `fetch`, for libraries that take one. It follows no redirect, and rejects with a {@link Halted} or a
   * {@link PlatformUnreachable}, so that `failureOf` finds them again in what a library throws.
   */
  readonly fetch: typeof globalThis.fetch
  /** What an answer's `Retry-After` or `X-RateLimit-*`/`RateLimit-*` says, for an answer of 429 and for the last one left. */
  readonly rateLimit: (answer: {
    readonly status: number
    readonly headers: Headers
  }) => PlatformRateLimited | undefined
}
