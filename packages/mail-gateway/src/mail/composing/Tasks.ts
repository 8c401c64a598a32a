/** The messages between the process and a composing thread: one task at a time, and its result. */
import type { Letter, SubmittedMessage } from "@svc/cluster/mail/sending/Composer"
import type { ParsedMail } from "@svc/domain/mail/Message"
import type { Outcome } from "./MessageRewriter.ts"
import type { NewMail } from "@svc/domain/mail/Sending"
import type { Picture } from "./DraftMessage.ts"
import type { Written } from "./MessageWriter.ts"

export type Task =
  | { readonly _tag: "Write"; readonly letter: Letter }
  | { readonly _tag: "Rewrite"; readonly manuscript: SubmittedMessage }
  | { readonly _tag: "Read"; readonly raw: Uint8Array }
  | { readonly _tag: "Picture"; readonly picture: Picture }
  | { readonly _tag: "Draft"; readonly raw: Uint8Array }

export type Done =
  | { readonly _tag: "Written"; readonly written: Written }
  | { readonly _tag: "Rewritten"; readonly outcome: Outcome }
  | { readonly _tag: "Read"; readonly parsed: ParsedMail }
  | { readonly _tag: "Pictured"; readonly raw: Uint8Array }
  | { readonly _tag: "Drafted"; readonly mail: NewMail | undefined }
  | { readonly _tag: "Threw"; readonly message: string }
