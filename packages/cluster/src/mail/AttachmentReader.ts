/** The port through which the API takes an attachment out of a stored message; the mail gateway, which parses mail, implements it. */
import { Context } from "effect"

export interface AttachmentContent {
  readonly filename: string | null
  readonly content_type: string
  readonly content: Uint8Array
}

export class AttachmentReader extends Context.Service<
  AttachmentReader,
  { readonly read: (raw: Uint8Array, index: number) => AttachmentContent | undefined }
>()("@svc/cluster/mail/AttachmentReader") {}
