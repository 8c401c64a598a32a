/** Operations on the whole account: accepting the Terms, exporting data, deleting the account. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { HandleText } from "../handles/HandleParam.ts"
import { ExportId } from "../IdSchemas.ts"
import { pageOf, paging } from "../Paging.ts"
import { conditional, located } from "../Precondition.ts"
import {
  ConfirmationMismatch,
  InvalidCursor,
  InvalidRequest,
  NotFound,
  PreconditionFailed,
  TosVersionMismatch,
  Unavailable,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { Timestamp } from "../Timestamp.ts"
import { Language, Org, TermsStatus } from "./Account.ts"
import { callers, inRealm, inRealmOfBody, Tagged } from "./Policy.ts"
import { About, Reveals } from "./EndpointScope.ts"

const AccountDeletion = Schema.Struct({
  status: Schema.Literal("deleting"),
  requested_at: Timestamp,
  /** Number of Identities that are being deleted. */
  identities: Schema.Int,
}).annotate({ identifier: "AccountDeletion" })
type AccountDeletion = typeof AccountDeletion.Type

/** The body is optional. With `NoContent`, the schema would accept any body. */
const NoBody = Schema.Undefined

const Confirmation = Schema.Struct({ confirm: Schema.optionalKey(Text.check(Schema.isMaxLength(300))) })

/** Changes the language of the console and of mail to the account holder, and the version of the API for requests that name none. */
const AccountPatch = Schema.Struct({
  language: Schema.optionalKey(Language),
  api_version: Schema.optionalKey(Text.check(Schema.isMaxLength(40))),
})

const tagged = HttpApiSchema.WithHeaders(Org, { etag: Schema.String })

export class OrgApi extends HttpApiGroup.make("account")
  .add(
    HttpApiEndpoint.get("read", "/api/account", { success: tagged })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Read the account"),
    HttpApiEndpoint.post("acceptTerms", "/api/auth/tos/acceptance", {
      payload: Schema.Struct({ version: Text.check(Schema.isMaxLength(100)) }),
      success: TermsStatus,
      error: [TosVersionMismatch, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "Accept the current Terms of Service"),
    HttpApiEndpoint.patch("update", "/api/account", {
      payload: [AccountPatch, AccountPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      headers: conditional,
      success: tagged,
      error: [InvalidRequest, PreconditionFailed, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "Change the account's language or version of the API"),
    HttpApiEndpoint.post("remove", "/api/account/deletion", {
      payload: [NoBody, Confirmation],
      success: HttpApiSchema.WithHeaders(AccountDeletion.pipe(HttpApiSchema.status(202)), located),
      error: [ConfirmationMismatch, Unavailable],
    })
      .pipe(callers("session"))
      .annotate(OpenApi.Summary, "Delete the account and everything in it"),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Operations on the whole account.") {}

export const Export = Schema.Struct({
  id: ExportId,
  status: Schema.Literals(["queued", "running", "ready", "failed"]),
  /** Handle of the exported Identity; null for the whole Org. */
  identity: Schema.NullOr(Schema.String),
  /** Size of the files before compression, in bytes; null until the export is ready. */
  size: Schema.NullOr(Schema.Int),
  created_at: Timestamp,
  expires_at: Timestamp,
  download_url: Schema.NullOr(Schema.String),
}).annotate({ identifier: "Export" })
export type Export = typeof Export.Type

const params = { id: ExportId.annotate({ description: "The id of the resource." }) }

const ExportRequest = Schema.Struct({ identity: Schema.optionalKey(HandleText) })

export class ExportApi extends HttpApiGroup.make("exports")
  .add(
    HttpApiEndpoint.post("create", "/api/exports", {
      payload: [NoBody, ExportRequest],
      success: HttpApiSchema.WithHeaders(Export.pipe(HttpApiSchema.status(202)), located),
      error: [NotFound, Unavailable],
    })
      .pipe(inRealmOfBody((body: typeof ExportRequest.Type | undefined) => body?.identity))
      .annotate(OpenApi.Summary, "Request an export of the account or of one Identity"),
    HttpApiEndpoint.get("list", "/api/exports", {
      query: paging,
      success: pageOf("exports", Export),
      error: [InvalidCursor, Unavailable],
    })
      .pipe(inRealm())
      .annotate(OpenApi.Summary, "List exports, newest first"),
    HttpApiEndpoint.get("read", "/api/exports/:id", {
      params,
      success: Export,
      error: [NotFound, Unavailable],
    })
      .pipe(inRealm())
      .annotate(OpenApi.Summary, "Read one export")
      .annotate(Tagged, true),
    HttpApiEndpoint.get("archive", "/api/exports/:id/archive", {
      params,
      success: HttpApiSchema.StreamUint8Array({ contentType: "application/zip" }),
      error: [NotFound, Unavailable],
    })
      .pipe(inRealm())
      .annotate(OpenApi.Summary, "Download an export as a zip of JSON Lines and mbox files")
      .annotate(Reveals, true),
  )
  .annotateEndpoints(About, "account")
  .annotate(OpenApi.Description, "Exports of the account's data.") {}
