/**
 * A message as it goes to a mail server: signed by the keys that sign now. What no server may get (bare line breaks, NUL)
 * is found here, whoever wrote it: a signature over it would not hold, and a server could read two messages out of it.
 */
import { DkimKeys } from "@svc/cluster/mail/dkim/DkimKeys"
import type { Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import * as Header from "../mime/Header.ts"
import * as Data from "../smtp/Data.ts"
import type { Letter } from "./smtp/Letter.ts"
import { inTurns } from "./SlicedLoop.ts"

/** No server may get it. */
export class Unfit extends Schema.TaggedError<Unfit>()("Unfit", { message: Schema.String }) {}

const piece = 64 * 1024

function* inspected(content: Uint8Array): Generator<void, Data.Flaw | undefined> {
  const data = Data.make(Infinity)
  for (let from = 0; from < content.length; from += piece) {
    data.push(Buffer.from(content.buffer, content.byteOffset + from, Math.min(piece, content.length - from)))
    yield
  }
  return data.flaw() ?? (content.at(-1) === 13 ? "bare_line_break" : undefined)
}

/** The domain of the one author. */
const authorDomain = (content: Uint8Array): string | undefined => {
  const raw = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const { rows } = Header.read(raw, 0, raw.length)
  return /@([a-z0-9.-]+)>?$/i.exec(Header.header(raw, rows, "from") ?? "")?.[1]?.toLowerCase()
}

/** Loaded with the first message that is signed: what it stands on takes long to load. */
const signer = Effect.promise(() => import("./Signing.ts"))

const make = (settings: { readonly mailDomain: string }) =>
  Effect.gen(function* () {
    const keys = yield* DkimKeys
    const domain = settings.mailDomain

    /** The fields that go on top. What another domain's author wrote (mail that is handed on) is not ours to sign. */
    const signatures = Effect.fnUntraced(function* (content: Uint8Array) {
      if (authorDomain(content) !== domain.toLowerCase()) return new Uint8Array()
      const found = yield* keys.signing(domain)
      if (found.length === 0) yield* keys.ensure(domain)
      const signing = found.length === 0 ? yield* keys.signing(domain) : found
      const { sign } = yield* signer
      return yield* sign(content, signing, new Date(yield* Clock.currentTimeMillis))
    })

    return {
      /** Fails with `unavailable` where the keys cannot be read. */
      of: Effect.fn("Letters.of")(function* (transmission: Transmission) {
        const { content, envelopeFrom, recipients, id, mayLeave, isPermitted } = transmission
        const flaw = yield* inTurns(() => inspected(content))
        if (flaw !== undefined) return yield* new Unfit({ message: `The message is not fit to be sent: ${flaw}` })
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
