/**
 * The environment of a {@link PublicConnection}: its client, the rules of the edge, and the I/O towards client and
 * agent.
 */
import type { ResetCode } from "../../protocol/Manifest.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { ConnectionMeter } from "../Metering.ts"
import type { StreamRoute } from "../routing/Route.ts"

/** The state of a public connection. */
export type State =
  /** The head of the first request is incomplete. */
  | "reading"
  /** The head is complete and its route is being looked up. Reads from the client are paused. */
  | "routing"
  /** Requests are forwarded and no response byte has arrived. Sent bytes are buffered so that they can be replayed. */
  | "forwarding"
  /** The route failed and another one is being looked up. Reads from the client are paused. */
  | "repeating"
  /** The agent has started to respond. Further requests are forwarded. */
  | "answering"
  /** The agent accepted another protocol. Bytes pass unparsed and without an idle limit. */
  | "upgraded"
  /** The agent has ended the stream. Further bytes of the client are still forwarded. */
  | "answered"
  /** A later request was refused. Earlier responses are completed before the refusal is sent. */
  | "refusing"
  /** The last bytes are being written to the client. */
  | "closing"
  /** A link was requested. The socket is handed over at the end of the turn. */
  | "linking"
  /** The connection is closed or was handed over. */
  | "closed"

export const takesRequests = (state: State) => state === "forwarding" || state === "answering" || state === "answered"

/** The client of a connection. */
export interface Client {
  readonly address: string
  readonly proto: "http" | "https"
  /** Server name of the TLS handshake (SNI); undefined without TLS or without SNI. */
  readonly serverName: string | undefined
}

/** Decisions of the edge about a request that need no lookup. */
export interface Rules {
  /** Returns whether an agent or another edge requests a link. */
  readonly isLink: (head: Head) => boolean
  /** Returns the response for a stream that failed with this reset code. */
  readonly failed: (head: Head, code: number) => Buffer
}

/**
 * The I/O of a connection. {@link PublicHttp} implements it with a socket and a stream, tests record the calls. Calls
 * return immediately; results arrive through methods of the connection.
 */
export interface ConnectionContext {
  /** Looks up the route of the first request and passes it to {@link PublicConnection.routed}. */
  readonly route: (head: Head) => void
  /** Looks up another route after the stream failed and passes it to {@link PublicConnection.routed}. */
  readonly reroute: (head: Head) => void
  /** Opens a stream and splices the client with it. Returns false if no stream is available. */
  readonly open: (route: StreamRoute, passage: ConnectionMeter) => boolean
  /** Sends bytes to the agent and pauses the client while the stream applies backpressure. May call `streamReset`. */
  readonly forward: (bytes: Buffer) => void
  /** Ends the stream towards the agent. */
  readonly finish: () => void
  readonly reset: (code: ResetCode) => void
  readonly pause: () => void
  readonly resume: () => void
  /** Reads and drops all further bytes of the client. */
  readonly discard: () => void
  /** Ends the connection towards the client after writing these bytes. */
  readonly end: (bytes?: Buffer) => void
  readonly destroy: () => void
  /** Resets the connection, so that the client cannot mistake a truncated response for a complete one. */
  readonly abort: () => void
  /**
   * Sets the only timer, replacing the previous one. {@link PublicConnection.deadlinePassed} is called when it expires.
   */
  readonly deadline: (millis: number | undefined) => void
  /** Calls {@link PublicConnection.idled} after this many milliseconds without traffic; 0 disables the limit. */
  readonly idle: (millis: number) => void
  /** Calls {@link PublicConnection.turned} in the next turn of the event loop. */
  readonly nextTurn: () => void
  /** Returns whether requests have used up their share of this turn of the event loop. */
  readonly isTurnSpent: () => boolean
  /** Marks the connection as upgraded to another protocol. */
  readonly upgraded: () => void
  readonly handOver: (head: Head, rest: Buffer) => void
}
