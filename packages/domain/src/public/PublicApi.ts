/** Public operations: page views, the contact form, and the client metadata that platforms fetch. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { AddressLimit, open } from "../account/Policy.ts"
import { PlatformName } from "../connectors/Connector.ts"
import { EmailAddress } from "../account/Account.ts"
import { MailRelayUnavailable, NotFound, RateLimited, Unavailable } from "../problems/Problem.ts"
import { Line, Text } from "../Text.ts"
import { VersionDate } from "../Versions.ts"

/** One view of a page, counted by day, host, path and language. The visitor's data is not stored. */
export const PageView = Schema.Struct({
  host: Line(253),
  path: Line(500).check(Schema.isPattern(/^\//u, { expected: "a path that starts with /" })),
  language: Text.check(Schema.isPattern(/^[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8}){0,3}$/u, { expected: "a language tag" })),
})
export type PageView = typeof PageView.Type

const ContactMessage = Schema.Struct({
  name: Line(100),
  email: EmailAddress,
  message: Text.check(Schema.isMinLength(1), Schema.isMaxLength(10_000)),
  subject: Schema.optionalKey(Line(200)),
})
type ContactMessage = typeof ContactMessage.Type

export class PublicApi extends HttpApiGroup.make("public")
  .add(
    HttpApiEndpoint.post("hit", "/api/hits", {
      payload: PageView,
      success: HttpApiSchema.NoContent,
      error: [RateLimited, Unavailable],
    })
      .pipe(open)
      .annotate(AddressLimit, "hits")
      .annotate(OpenApi.Summary, "Count a page view"),
    HttpApiEndpoint.post("contact", "/api/contact", {
      payload: ContactMessage,
      success: HttpApiSchema.Accepted,
      error: [RateLimited, MailRelayUnavailable, Unavailable],
    })
      .pipe(open)
      .annotate(AddressLimit, "contact")
      .annotate(OpenApi.Summary, "Send a message to the operator"),
    HttpApiEndpoint.get("clientMetadata", "/api/connectors/:platform/client-metadata.json", {
      params: { platform: PlatformName.annotate({ description: "The platform." }) },
      success: Schema.Record(Schema.String, Schema.Unknown),
      error: [NotFound, Unavailable],
    })
      .pipe(open)
      .annotate(OpenApi.Summary, "Read the OAuth client metadata for a platform"),
  )
  .add(
    HttpApiEndpoint.get("versions", "/api/versions", {
      success: Schema.Struct({
        newest: VersionDate,
        /** The served versions, oldest first. */
        versions: Schema.Array(
          Schema.Struct({
            version: VersionDate,
            /** Changes since the previous version. */
            changes: Schema.Array(Schema.String),
          }).annotate({ identifier: "ApiVersion" }),
        ),
      }),
    })
      .pipe(open)
      .annotate(OpenApi.Summary, "List the versions of the API"),
  )
  .annotate(OpenApi.Description, "Public operations that need no credential.") {}
