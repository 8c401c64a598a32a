/** Stops or starts outgoing mail for all Identities of the Org. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { callers } from "../account/Policy.ts"
import { conditional } from "../Precondition.ts"
import { PreconditionFailed, Unavailable } from "../problems/Problem.ts"
import { OrgMailPatch, OrgMailStatus } from "./MailSettings.ts"
import { About } from "../account/EndpointScope.ts"

export class OrgMailApi extends HttpApiGroup.make("org_mail")
  .add(
    HttpApiEndpoint.patch("switch", "/api/account/mail", {
      payload: [OrgMailPatch, OrgMailPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      headers: conditional,
      success: OrgMailStatus,
      error: [PreconditionFailed, Unavailable],
    })
      .pipe(callers("org"))
      .annotate(OpenApi.Summary, "Stop or resume the outgoing mail of all Identities"),
  )
  .annotateEndpoints(About, "mail")
  .annotate(OpenApi.Description, "Stops or resumes outgoing mail for all Identities of the Org.") {}
