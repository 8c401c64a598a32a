/** The messages between the process and a verdict worker. */
import type { Arrival } from "../Origin.ts"
import type { Judgement } from "./Verdict.ts"

export type ToThread =
  | { readonly _tag: "Judge"; readonly job: number; readonly raw: Uint8Array; readonly arrival: Arrival }
  /** The reply to a look-up. `code` is Node's error code. */
  | { readonly _tag: "Answer"; readonly lookup: number; readonly records: Records }
  | { readonly _tag: "Failure"; readonly lookup: number; readonly code: string }
  /** Answered when the worker's event loop is free, so a worker stuck in a loop does not answer. */
  | { readonly _tag: "Ping" }

export type FromThread =
  | { readonly _tag: "Pong" }
  | {
      readonly _tag: "Lookup"
      readonly job: number
      readonly lookup: number
      readonly name: string
      readonly type: string
    }
  | { readonly _tag: "Judged"; readonly job: number; readonly judgement: Judgement }
  /** The judgement threw. The message is handled like one that killed its worker. */
  | { readonly _tag: "Threw"; readonly job: number; readonly message: string }

export type Records = Array<string> | Array<Array<string>>
