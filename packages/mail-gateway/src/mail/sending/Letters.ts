/**
 * Prepares a message for a mail server: validates it and signs it with the active keys. Bare line breaks and NUL are
 * refused for every author, since a signature over them would break, and a server could read a second message out of
 * them.
 */
import { DkimKeys } from "@svc/cluster/mail/dkim/DkimKeys"
import type { Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as Header from "../mime/Header.ts"
import type * as Signing from "./Signing.ts"
import * as Data from "../smtp/Data.ts"
import type { Letter } from "./smtp/Letter.ts"
import { inTurns } from "../SlicedWork.ts"

/** The message must not be sent to any server. */
class Unfit extends Schema.TaggedError<Unfit>()("Unfit", { message: Schema.String }) {}

const piece = 64 * 1024

function* inspected(content: Uint8Array): Generator<void, Data.Flaw | undefined> {
  const data = Data.make(Infinity)
  for (let from = 0; from < content.length; from += piece) {
    data.push(Buffer.from(content.buffer, content.byteOffset + from, Math.min(piece, content.length - from)))
    yield
  }
  return data.flaw() ?? (content.at(-1) === 13 ? "bare_line_break" : undefined)
}

/** Returns the domain of the author. */
const authorDomain = (content: Uint8Array): string | undefined => {
  const raw = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const { rows } = Header.read(raw, 0, raw.length)
  return /@([a-z0-9.-]+)>?$/i.exec(Header.header(raw, rows, "from") ?? "")?.[1]?.toLowerCase()
}

/** Loaded with the first message to sign, since its dependencies take long to load. */
let signer: Promise<typeof Signing> | undefined
const signing = Effect.promise(() => (signer ??= import("./Signing.ts")))

const make = (settings: { readonly mailDomain: string }) =>
  Effect.gen(function* () {
    const keys = yield* DkimKeys
    const domain = settings.mailDomain

    /** Returns the signature fields. Mail of other domains (forwarded mail) is not signed. */
    const signatures = Effect.fnUntraced(function* (content: Uint8Array) {
      if (authorDomain(content) !== domain.toLowerCase()) return new Uint8Array()
      const found = yield* keys.signing(domain)
      if (found.length === 0) yield* keys.ensure(domain)
      const active = found.length === 0 ? yield* keys.signing(domain) : found
      const { sign } = yield* signing
      return yield* sign(content, active, new Date(yield* Clock.currentTimeMillis))
    })

    return {
      /** Fails with `unavailable` if the keys cannot be read. */
      of: Effect.fn("Letters.of")(function* (transmission: Transmission) {
        const { content, envelopeFrom, recipients, id, mayLeave, isPermitted } = transmission
        const flaw = yield* inTurns(() => inspected(content))
        if (flaw !== undefined)
          return yield* new Unfit({ message: `The message is malformed and cannot be sent: ${flaw}` })
        const letter: Letter = {
          from: envelopeFrom,
          recipients,
          id,
          content: [yield* signatures(content), content],
          mayLeave,
          isPermitted,
        }
        return letter
      }),
    }
  })

export class Letters extends Context.Service<Letters, Effect.Success<ReturnType<typeof make>>>()(
  "@svc/mail-gateway/mail/sending/Letters",
) {
  static readonly layer = (settings: { readonly mailDomain: string }) => Layer.effect(Letters, make(settings))
}
