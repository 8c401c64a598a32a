/** The route of a public request, which {@link Requests} finds and {@link PublicConnection} uses. */
import type { MuxStream } from "../../protocol/Mux.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { ConnectionMeter } from "../Metering.ts"

/** The current settings of the Tunnel, as they apply to one connection. */
export interface Terms {
  /** Returns the `Host` to forward, or undefined to keep the original. */
  host(): string | undefined
  /** Returns whether `Authorization` is meant for the edge and must not be forwarded. */
  ownAuthorization(): boolean
  /** Returns the response of the edge to a further request, or undefined if the request may pass. */
  refuses(head: Head): Buffer | Promise<Buffer> | undefined
  /** Returns whether a client that presented this `Authorization` may stay connected. */
  allows(authorization: string | undefined): boolean
  /** Unsubscribes when the connection closes. */
  leave(): void
}

/** A response of the edge, or a stream to the agent. */
export type Route =
  | { readonly _tag: "Answer"; readonly bytes: Buffer }
  | {
      readonly _tag: "Stream"
      readonly open: (kind: number, meta: object) => MuxStream | undefined
      /** Returns whether the agent is shutting down, so that responses must close their connection. */
      readonly isLeaving: () => boolean
      /** Subscribes to changes of the settings. */
      readonly enter: (changed: () => void) => Terms
      readonly openMeter: (cut: () => void) => ConnectionMeter
    }

export type StreamRoute = Extract<Route, { _tag: "Stream" }>
