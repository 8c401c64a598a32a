/** Behavior of {@link module:Server}. A test may change it at any time. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { WebSocket } from "ws"

/**
 * The software that the server imitates. The differences to Mastodon are taken from the sources: id formats, where a stream takes its
 * token, accepted body formats, and missing endpoints.
 */
export type Kind = "mastodon" | "pleroma" | "gotosocial" | "snac"

export interface ServerOptions {
  readonly kind?: Kind
  /** Has no endpoint to revoke tokens, like GoToSocial before 0.19. */
  readonly revokesNone?: boolean
  /** Handles a request instead of the server; returns true if it did. */
  readonly instead?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Imitates a version without PKCE and the metadata document. */
  readonly old?: boolean
  /** Issues this token to every authorization. */
  readonly token?: string
  /** Lifetime of tokens in seconds; Pleroma's tokens expire. */
  readonly tokenSeconds?: number
  /** Returns whether the response to this call is lost. */
  loses?: (route: string) => boolean
  /** Number of status requests that report an image as still being processed. */
  processing?: number
  /** Provides the streaming API, or calls this function with each client instead. */
  streaming?: true | ((socket: WebSocket) => void)
  /** Announces a streaming address, but rejects all streams. */
  readonly refusesStreams?: boolean
  /** Runs before a call is processed. */
  before?: (path: string) => Promise<void>
  /** Runs after a call is processed, before the response is sent. */
  after?: (route: string) => Promise<void>
  /** Time at which the rate limit resets. */
  reset?: Date
}

export interface Settings extends ServerOptions {
  readonly kind: Kind
  /** Responds with 429. */
  limited: boolean
  remaining: number
  /** Number of refresh requests with a token that was already used. */
  spentTwice: number
}
