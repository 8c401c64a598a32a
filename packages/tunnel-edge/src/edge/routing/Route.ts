/** The route of a public request, which {@link Requests} finds and {@link PublicConnection} uses. */
import type { MuxStream } from "../../protocol/Mux.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { ConnectionMeter } from "../Metering.ts"

/** An agent that signed a request. */
export interface AgentCaller {
  readonly origin: string
  /** The Handle, if the agent is an Identity of this service. */
  readonly handle: string | undefined
}

/** The current settings of the Tunnel, as they apply to one connection. */
export interface Terms {
  /** Returns the `Host` to forward, or undefined to keep the original. */
  host(): string | undefined
  /** Returns whether `Authorization` is meant for the edge and must not be forwarded. */
  ownAuthorization(): boolean
  /** Returns the response of the edge to a further request, or undefined if the request may pass. */
  refuses(head: Head): Buffer | Promise<Buffer> | undefined
  /** Returns the agent that signed a further request, undefined if none is proved, or the response that refuses it. */
  callerOf(head: Head): Promise<AgentCaller | Buffer | undefined>
  /** Returns whether a client whose last request had this `Authorization` and this caller may stay connected. */
  allows(authorization: string | undefined, caller: AgentCaller | undefined): boolean
  /** Unsubscribes when the connection closes. */
  leave(): void
}

/** A response of the edge, or a stream to the agent. */
export type Route =
  | { readonly _tag: "Answer"; readonly bytes: Buffer }
  | {
      readonly _tag: "Stream"
      /** The agent that signed the request. */
      readonly caller: AgentCaller | undefined
      readonly open: (kind: number, meta: object) => MuxStream | undefined
      /** Returns whether the agent is shutting down, so that responses must close their connection. */
      readonly isLeaving: () => boolean
      /** Subscribes to changes of the settings. */
      readonly enter: (changed: () => void) => Terms
      readonly openMeter: (cut: () => void) => ConnectionMeter
    }

export type StreamRoute = Extract<Route, { _tag: "Stream" }>
