/** Page views, the contact form, and the client metadata that platforms fetch. */
import { Versions } from "@svc/domain/Versions"
import { Addresses, type AddressBook } from "@svc/domain/Addresses"
import { Api } from "@svc/domain/Api"
import { MailRelayUnavailable, type Unavailable } from "@svc/domain/problems/Problem"
import * as Bluesky from "@svc/cluster/connectors/platforms/bluesky/ClientMetadata"
import { type RelayUnavailable, SystemMailer } from "@svc/cluster/mail/SystemMailer"
import { ServiceKey } from "@svc/cluster/sealing/ServiceKey"
import { PageViews } from "@svc/cluster/public/PageViews"
import { Effect, Option } from "effect"
import * as RequestServices from "../http/RequestServices.ts"

/**
 * The recipient of the contact form. Without one, development forwards messages to the postmaster and production rejects
 * them.
 */
interface ContactSettings {
  readonly to: Option.Option<string>
}

/** The client metadata that the service registers at a Mastodon instance. */
const mastodonMetadata = (book: AddressBook) => ({
  client_name: "Agent Identity Service",
  website: book.baseUrl,
  redirect_uris: [`${book.baseUrl}/connectors/callback`],
  scopes: "read write",
})

export const layer = (contact: ContactSettings) =>
  RequestServices.group(
    Api,
    "public",
    Effect.fn(function* (handlers) {
      const views = yield* PageViews
      const mailer = yield* SystemMailer
      const book = yield* Addresses
      const keys = yield* ServiceKey

      const versions = yield* Versions
      const listed = {
        newest: versions.at(-1)!.version,
        versions: versions.map(({ version, changes }) => ({ version, changes: changes.map(({ summary }) => summary) })),
      }

      return handlers.handleAll({
        versions: () => Effect.succeed(listed),
        hit: ({ payload }) => views.count(payload),
        contact: Effect.fnUntraced(function* ({ payload }) {
          const letter = {
            replyTo: payload.email,
            subject: `Contact: ${payload.subject ?? payload.name}`,
            text: `${payload.name} <${payload.email}> writes:\n\n${payload.message}\n`,
          }
          if (Option.isNone(contact.to) && book.environment !== "development") {
            return yield* new MailRelayUnavailable({
              detail: "This deployment does not accept contact messages.",
              retry_after_seconds: 3600,
            })
          }
          const sent: Effect.Effect<void, RelayUnavailable | Unavailable> = Option.isSome(contact.to)
            ? mailer.send({ ...letter, to: contact.to.value })
            : // In Development the message goes where mail for postmaster@ goes.
              mailer.keep({ ...letter, to: `postmaster@${book.mailDomain}` })
          yield* Effect.catchTag(sent, "RelayUnavailable", () =>
            Effect.fail(
              new MailRelayUnavailable({ detail: "The message could not be sent.", retry_after_seconds: 60 }),
            ),
          )
        }),
        clientMetadata: ({ params }) =>
          params.platform === "bluesky"
            ? Effect.map(keys.publicJwk, (jwk) => Bluesky.metadata(book, jwk))
            : Effect.succeed(mastodonMetadata(book)),
      })
    }),
  )
