/** Where a public request goes: what {@link Requests} finds, and {@link PublicConnection} follows. */
import type { MuxStream } from "../protocol/Mux.ts"
import type { Head } from "../protocol/RequestHead.ts"
import type { Passage } from "./Metering.ts"

/** What is answered in place of the agent, or how it is reached. */
export type Route =
  | { readonly _tag: "Answer"; readonly bytes: Buffer }
  | {
      readonly _tag: "Stream"
      readonly open: (kind: number, meta: object) => MuxStream | undefined
      /** What `Host` becomes; as sent where it is undefined. */
      readonly host: string | undefined
      readonly ownAuthorization: boolean
      /** What a further request on the connection is refused with; undefined where it may pass. */
      readonly refuses: (head: Head) => Buffer | undefined
      readonly passage: (cut: () => void) => Passage
    }

export type StreamRoute = Extract<Route, { _tag: "Stream" }>
