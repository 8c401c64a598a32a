/** The port through which the API takes attachments and pictures out of a stored message; the mail gateway, which parses mail, implements it. */
import { Context, type Effect, type Stream } from "effect"

export interface AttachmentContent {
  readonly filename: string | null
  readonly content_type: string
  /** Bytes of the content. */
  readonly size: number
  /** The bytes from `start` to before `end`, in pieces, so that neither memory nor the event loop has all of them at once. */
  readonly content: (start: number, end: number) => Stream.Stream<Uint8Array>
}

export interface AttachmentText {
  readonly filename: string | null
  readonly content_type: string
  /** Bytes of the content. */
  readonly size: number
  /** What it says, in plain text; null if it is not text. */
  readonly text: string | null
  /** Whether `text` is all of it: of a large attachment only the beginning is decoded. */
  readonly whole: boolean
}

export class AttachmentReader extends Context.Service<
  AttachmentReader,
  {
    readonly read: (raw: Uint8Array, index: number) => Effect.Effect<AttachmentContent | undefined>
    readonly text: (raw: Uint8Array, index: number) => Effect.Effect<AttachmentText | undefined>
    /** The pictures that the message carries for its HTML, each as a `data:` URL by its Content-ID (RFC 2392). */
    readonly pictures: (raw: Uint8Array) => Effect.Effect<ReadonlyMap<string, string>>
  }
>()("@svc/cluster/mail/AttachmentReader") {}
