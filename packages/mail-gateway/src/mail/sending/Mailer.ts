/** Sends the service's own mail to people, over the same transport and with the same signatures as all other mail. */
import { hash } from "node:crypto"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import { type Letter, SystemMailer, RelayUnavailable } from "@svc/cluster/mail/SystemMailer"
import { orUnavailable, Writes } from "@svc/cluster/store/Database"
import { within } from "@svc/cluster/store/Deadline"
import { EmailAddress } from "@svc/domain/account/Account"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Clock, Effect, Layer, Schema } from "effect"
import MailComposer from "nodemailer/lib/mail-composer"
import { Timing } from "../../Timing.ts"
import { type ArcSettings, seal } from "../ArcSeal.ts"

interface MailerSettings {
  readonly from: string
  /** Seals forwarded mail. */
  readonly arc?: ArcSettings | undefined
}

/**
 * Requires exactly one addr-spec. The library could parse anything looser as a list, a group, a name or a source
 * route.
 */
const isOneAddress = Schema.is(EmailAddress)

const unavailable = (message: string) => new RelayUnavailable({ message })

const composed = (from: string, letter: Letter) =>
  Effect.tryPromise({
    try: () =>
      new MailComposer({
        from,
        to: letter.to,
        ...(letter.replyTo === undefined ? {} : { replyTo: letter.replyTo }),
        subject: letter.subject,
        text: letter.text,
        ...(letter.html === undefined ? {} : { html: letter.html }),
        headers: { "Auto-Submitted": "auto-generated" },
        newline: "windows",
        disableFileAccess: true,
        disableUrlAccess: true,
      })
        .compile()
        .build(),
    catch: (error) => unavailable(String(error)),
  })

/** Stores a letter with the mail for `postmaster@` (`SystemMail`), to be forwarded with it. */
const keeping = (from: string) =>
  Effect.map(Writes, (sql) =>
    Effect.fnUntraced(function* (letter: Letter) {
      const raw = yield* composed(from, letter)
      const id = yield* makeUuidV7
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* orUnavailable(sql`
        insert into system_mail (id, envelope_from, sha256, subject, raw, received_at)
        values (${id}::uuid, ${from}::text, ${hash("sha256", raw, "buffer")}::bytea, ${letter.subject}::text, ${raw}::bytea,
                ${now}::timestamptz)`)
    }),
  )

/** Development without a transport: the API response carries the sign-in link, so no mail is needed. */
export const withoutRelay = ({ from }: Pick<MailerSettings, "from">) =>
  Layer.effect(
    SystemMailer,
    Effect.map(keeping(from), (keep) => ({ send: () => Effect.void, forward: () => Effect.void, keep })),
  )

export const layer = (settings: MailerSettings) =>
  Layer.effect(
    SystemMailer,
    Effect.gen(function* () {
      const transport = yield* MailTransport
      const keep = yield* keeping(settings.from)

      const hand = Effect.fnUntraced(
        function* (to: string, content: Uint8Array) {
          if (!isOneAddress(to)) return yield* unavailable("not one address")
          const [outcome] = yield* transport.send({
            id: yield* makeUuidV7,
            envelopeFrom: settings.from,
            recipients: [to],
            domain: to.slice(to.lastIndexOf("@") + 1).toLowerCase(),
            content,
            mayLeave: Effect.succeed(true),
            isPermitted: () => true,
          })
          if (outcome?.state !== "sent") {
            return yield* unavailable(`${outcome?.state} ${outcome?.reply?.code ?? ""} ${outcome?.reply?.text ?? ""}`)
          }
        },
        (effect) =>
          // Limited in time because a person is waiting for the letter.
          within(effect, Timing.letterMillis, () => Effect.fail(unavailable("timed out"))).pipe(
            Effect.tapError((error) => Effect.logWarning("A letter could not be sent", error.message)),
          ),
      )

      return {
        send: (letter: Letter) =>
          Effect.flatMap(composed(settings.from, letter), (content) => hand(letter.to, content)),
        forward: ({ to, raw }) =>
          Effect.flatMap(settings.arc === undefined ? Effect.succeed(raw) : seal(raw, settings.arc), (sealed) =>
            hand(to, sealed),
          ),
        keep,
      }
    }),
  )
