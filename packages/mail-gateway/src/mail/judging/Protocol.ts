/** What the process and a judging thread say to each other. */
import type { Arrival } from "../Origin.ts"
import type { Judgement } from "./Verdict.ts"

export type ToThread =
  | { readonly _tag: "Judge"; readonly job: number; readonly raw: Uint8Array; readonly arrival: Arrival }
  /** Of a look-up; `code` is node's where it failed. */
  | { readonly _tag: "Answer"; readonly lookup: number; readonly records: Records }
  | { readonly _tag: "Failure"; readonly lookup: number; readonly code: string }
  /** Answered as soon as the thread has a free moment, which a thread in a loop never has. */
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
  /** The judgement threw, which is ours to explain; the message goes the way of one that killed its thread. */
  | { readonly _tag: "Threw"; readonly job: number; readonly message: string }

export type Records = Array<string> | Array<Array<string>>
