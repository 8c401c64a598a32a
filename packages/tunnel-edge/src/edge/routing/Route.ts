/** Where a public request goes: what {@link Requests} finds, and {@link PublicConnection} follows. */
import type { MuxStream } from "../../protocol/Mux.ts"
import type { Head } from "../../protocol/RequestHead.ts"
import type { ConnectionMeter } from "../Metering.ts"

/** What the Tunnel's settings say of a connection, at each moment anew. */
export interface Terms {
  /** What `Host` becomes; as sent where it is undefined. */
  host(): string | undefined
  /** `Authorization` is for the edge. */
  ownAuthorization(): boolean
  /** What a further request is refused with; undefined where it may pass. */
  refuses(head: Head): Buffer | undefined
  /** Whether a client that showed this `Authorization` may be here still. */
  allows(authorization: string | undefined): boolean
  /** The connection is over. */
  leave(): void
}

/** What is answered in place of the agent, or how it is reached. */
export type Route =
  | { readonly _tag: "Answer"; readonly bytes: Buffer }
  | {
      readonly _tag: "Stream"
      readonly open: (kind: number, meta: object) => MuxStream | undefined
      /** Whether the agent is about to go: answers are to be the last of their connection. */
      readonly isLeaving: () => boolean
      /** `changed`: the terms are others than before. */
      readonly enter: (changed: () => void) => Terms
      readonly openMeter: (cut: () => void) => ConnectionMeter
    }

export type StreamRoute = Extract<Route, { _tag: "Stream" }>
