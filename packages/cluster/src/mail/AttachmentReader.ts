/**
 * The port through which the API reads attachments and embedded pictures of a stored message. The mail gateway, which
 * parses mail, implements it.
 */
import { Context, type Effect, type Stream } from "effect"

interface AttachmentContent {
  readonly filename: string | null
  readonly content_type: string
  /** Bytes of the content. */
  readonly size: number
  /**
   * Streams the bytes from `start` (inclusive) to `end` (exclusive) in chunks, which bounds memory and the time per
   * turn of the event loop.
   */
  readonly content: (start: number, end: number) => Stream.Stream<Uint8Array>
}

interface AttachmentText {
  readonly filename: string | null
  readonly content_type: string
  /** Bytes of the content. */
  readonly size: number
  /** The content as plain text; null if the attachment is not text. */
  readonly text: string | null
  /** Whether `text` is complete: only the beginning of a large attachment is decoded. */
  readonly whole: boolean
}

export class AttachmentReader extends Context.Service<
  AttachmentReader,
  {
    readonly read: (raw: Uint8Array, index: number) => Effect.Effect<AttachmentContent | undefined>
    readonly text: (raw: Uint8Array, index: number) => Effect.Effect<AttachmentText | undefined>
    /** Returns the pictures embedded in the message as `data:` URLs, keyed by Content-ID (RFC 2392). */
    readonly pictures: (raw: Uint8Array) => Effect.Effect<ReadonlyMap<string, string>>
  }
>()("@svc/cluster/mail/AttachmentReader") {}
