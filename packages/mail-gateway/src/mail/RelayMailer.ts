/** The service's own mail to people, handed to the relay of `SVC_SMTP_RELAY_URL` (`smtp://` or `smtps://`, with credentials). */
import { type Letter, SystemMailer, RelayUnavailable } from "@svc/cluster/mail/SystemMailer"
import { EmailAddress } from "@svc/domain/account/Account"
import { Effect, Layer, Redacted, Schema } from "effect"
import { createTransport, type SendMailOptions } from "nodemailer"
import { type ArcSettings, seal } from "./ArcSeal.ts"
import { Timing } from "../Timing.ts"

export interface RelaySettings {
  readonly url: Redacted.Redacted<string>
  readonly from: string
  /** Seals what is handed on. */
  readonly arc?: ArcSettings | undefined
}

/** Exactly one addr-spec: the library would read a list, a group, a name or a source route out of anything looser. */
const isOneAddress = Schema.is(EmailAddress)

export const layer = (settings: RelaySettings) =>
  Layer.effect(
    SystemMailer,
    Effect.gen(function* () {
      const transport = yield* Effect.acquireRelease(
        Effect.sync(() =>
          createTransport({
            url: Redacted.value(settings.url),
            pool: true,
            connectionTimeout: Timing.relayConnectMillis,
            greetingTimeout: Timing.relayGreetingMillis,
            socketTimeout: Timing.relaySilenceMillis,
            disableFileAccess: true,
            disableUrlAccess: true,
          }),
        ),
        (transport) => Effect.sync(() => transport.close()),
      )
      const hand = (to: string, mail: SendMailOptions) =>
        isOneAddress(to)
          ? Effect.tryPromise({
              try: () => transport.sendMail({ ...mail, envelope: { from: settings.from, to: [to] } }),
              catch: (error) => new RelayUnavailable({ message: String(error) }),
            }).pipe(
              Effect.tapError((error) => Effect.logWarning("The relay did not take a letter", error.message)),
              Effect.asVoid,
            )
          : Effect.fail(new RelayUnavailable({ message: "not one address" }))
      return {
        send: (letter: Letter) =>
          hand(letter.to, {
            from: settings.from,
            to: letter.to,
            ...(letter.replyTo === undefined ? {} : { replyTo: letter.replyTo }),
            subject: letter.subject,
            text: letter.text,
            ...(letter.html === undefined ? {} : { html: letter.html }),
            headers: { "Auto-Submitted": "auto-generated" },
          }),
        forward: ({ to, raw }) =>
          Effect.flatMap(settings.arc === undefined ? Effect.succeed(raw) : seal(raw, settings.arc), (sealed) =>
            hand(to, { raw: Buffer.from(sealed) }),
          ),
      }
    }),
  )
