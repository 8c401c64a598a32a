/** Takes one attachment out of a message, by the index that `ParsedMail` gives it. */
import { AttachmentReader } from "@svc/cluster/mail/AttachmentReader"
import { Layer } from "effect"
import * as Decode from "./mime/Decode.ts"
import { index } from "./mime/Part.ts"
import { attachmentsOf } from "./ParsedMail.ts"

export const layer = Layer.succeed(AttachmentReader, {
  read: (bytes, at) => {
    const raw = Buffer.from(bytes)
    const part = attachmentsOf(index(raw))[at]
    return part === undefined
      ? undefined
      : {
          filename: part.filename === null ? null : Decode.clean(part.filename),
          content_type: part.type,
          content: Decode.bytes(raw, part),
        }
  },
})
