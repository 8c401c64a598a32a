/** How {@link module:Server} behaves, which a test may change as it goes. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { WebSocket } from "ws"

/**
 * Whom it acts like, where they differ from Mastodon, as read in their sources: the ids, the way a token goes to a stream,
 * what a form must be, what is not there.
 */
export type Kind = "mastodon" | "pleroma" | "gotosocial" | "snac"

export interface ServerOptions {
  readonly kind?: Kind
  /** GoToSocial before 0.19. */
  readonly revokesNone?: boolean
  /** What to do with a request in place of answering it; true where it was taken care of. */
  readonly instead?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Before PKCE and the metadata document. */
  readonly old?: boolean
  /** Tokens end after so many seconds, as Pleroma's do. */
  readonly tokenSeconds?: number
  /** Whether its answer to this call gets lost on the way. */
  loses?: (route: string) => boolean
  /** How often it says of a picture that it is not finished. */
  processing?: number
  /** It has the streaming API: one that works, or one that does this with whoever listens. */
  streaming?: true | ((socket: WebSocket) => void)
  /** It names an address for streams, where there are none. */
  readonly refusesStreams?: boolean
  /** What happens before a call is answered. */
  before?: (path: string) => Promise<void>
  /** What happens when a call was answered, before the answer leaves. */
  after?: (route: string) => Promise<void>
  /** When it takes calls again. */
  reset?: Date
}

export interface Settings extends ServerOptions {
  readonly kind: Kind
  /** It answers 429. */
  limited: boolean
  remaining: number
  /** How often a refresh token came that was spent before. */
  spentTwice: number
}
