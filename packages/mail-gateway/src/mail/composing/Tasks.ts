/** What the process and a composing thread say to each other: one task at a time, and its answer. */
import type { Letter, Manuscript } from "@svc/cluster/mail/sending/Composer"
import type { ParsedMail } from "@svc/domain/mail/Message"
import type { Outcome } from "./Rewriting.ts"
import type { Written } from "./Writing.ts"

export type Task =
  | { readonly _tag: "Write"; readonly letter: Letter }
  | { readonly _tag: "Rewrite"; readonly manuscript: Manuscript }
  | { readonly _tag: "Read"; readonly raw: Uint8Array }

export type Done =
  | { readonly _tag: "Written"; readonly written: Written }
  | { readonly _tag: "Rewritten"; readonly outcome: Outcome }
  | { readonly _tag: "Read"; readonly parsed: ParsedMail }
  | { readonly _tag: "Threw"; readonly message: string }
