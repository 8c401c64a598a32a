/** What a {@link PublicConnection} stands on: its client, the rules of the edge, and the line to client and agent. */
import type { ResetCode } from "../../protocol/Manifest.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { ConnectionMeter } from "../Metering.ts"
import type { StreamRoute } from "../routing/Route.ts"

/** Where a connection is. */
export type State =
  /** The first head is not whole. */
  | "reading"
  /** It is: its way is being looked up, and the client waits. */
  | "routing"
  /** Requests go to the agent, which has not answered yet; what went out is kept while it may be repeated. */
  | "forwarding"
  /** The way led nowhere: another one is being looked up, and the client waits. */
  | "repeating"
  /** The agent has begun to answer; further requests go on. */
  | "answering"
  /** The agent accepted another protocol: bytes pass, silence is no matter. */
  | "upgraded"
  /** The agent has said everything; what the client still sends goes on. */
  | "answered"
  /** A further request was refused: what was asked before is answered first, and then it. */
  | "refusing"
  /** The last bytes are on their way to the client. */
  | "closing"
  /** A link was asked for, and the connection is handed over at the end of the turn. */
  | "linking"
  /** Gone, or somebody else's. */
  | "closed"

/** Who is at the other end. */
export interface Client {
  readonly address: string
  readonly proto: "http" | "https"
  /** The name that TLS was opened for (SNI); undefined where it named none, or there is no TLS. */
  readonly serverName: string | undefined
}

/** What the edge says of requests without looking anything up. */
export interface Rules {
  /** An agent, or another edge, asks for a link: the connection is its from here on. */
  readonly isLink: (head: Head) => boolean
  /** The answer where the stream came to nothing. */
  readonly failed: (head: Head, code: number) => Buffer
}

/**
 * What a connection does to the world: {@link PublicHttp} does it to a socket and a stream, a test writes it down. The
 * calls answer at once, and what comes of them is told by the connection's own methods.
 */
export interface ConnectionContext {
  /** Looks up the way of the first request; {@link PublicConnection.routed} tells of it. */
  readonly route: (head: Head) => void
  /** The stream is dead and the client waits: looks up another way, which is told as the first. */
  readonly reroute: (head: Head) => void
  /** Opens a stream and couples the client to it; false where there is none to be had. */
  readonly open: (route: StreamRoute, passage: ConnectionMeter) => boolean
  /** Bytes to the agent; the client is held back by itself while the stream takes no more. May tell of a reset. */
  readonly forward: (bytes: Buffer) => void
  /** Everything was said to the agent. */
  readonly finish: () => void
  readonly reset: (code: ResetCode) => void
  readonly pause: () => void
  readonly resume: () => void
  /** What the client still sends is read and dropped. */
  readonly discard: () => void
  /** Everything was said to the client, these bytes last. */
  readonly end: (bytes?: Buffer) => void
  readonly destroy: () => void
  /** As {@link destroy}, so that the client cannot take what it has for all there is. */
  readonly abort: () => void
  /** One timer, in place of the one that ran; {@link PublicConnection.deadlinePassed} tells of it. */
  readonly deadline: (millis: number | undefined) => void
  /** Tells by {@link PublicConnection.idled} of so much silence; 0 for no more of it. */
  readonly idle: (millis: number) => void
  /** Calls {@link PublicConnection.turned} once this turn's bytes have gone on. */
  readonly nextTurn: () => void
  /** Whether this turn of the event loop has been used up by requests. */
  readonly isTurnSpent: () => boolean
  /** The connection became one of another protocol. */
  readonly upgraded: () => void
  readonly handOver: (head: Head, rest: Buffer) => void
}
