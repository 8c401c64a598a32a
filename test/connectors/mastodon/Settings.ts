/** How {@link module:Server} behaves, which a test may change as it goes. */
import type { IncomingMessage, ServerResponse } from "node:http"

export interface ServerOptions {
  /** What to do with a request in place of answering it; true where it was taken care of. */
  readonly instead?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Before PKCE and the metadata document. */
  readonly old?: boolean
  /** Tokens end after so many seconds, as Pleroma's do. */
  readonly tokenSeconds?: number
  /** What happens before a call is answered. */
  before?: (path: string) => Promise<void>
  /** When it takes calls again. */
  reset?: Date
}

export interface Settings extends ServerOptions {
  /** It answers 429. */
  limited: boolean
  remaining: number
  /** How often a refresh token came that was spent before. */
  spentTwice: number
}
