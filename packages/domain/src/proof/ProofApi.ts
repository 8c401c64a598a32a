/** The keys of an Identity with which others verify what it signs. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { About, Issues, Unscoped } from "../account/EndpointScope.ts"
import { callers, Confidential, onIdentity, ShowsSecret, Tagged } from "../account/Policy.ts"
import { conditional } from "../Precondition.ts"
import { HandleParam } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import {
  AlgorithmUnsupported,
  AudienceNotAllowed,
  Conflict,
  IdentityNotReady,
  KeyProofInvalid,
  MailPaused,
  NotFound,
  PreconditionFailed,
  InvalidRequest,
  ScopeExceeds,
  Unavailable,
  UrlInvalid,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { IdentityToken, NewToken, ProofPatch, ProofSettings } from "./IdentityToken.ts"
import { NewSignature, RequestSignature } from "./RequestSignature.ts"
import { NewVerification, Verification } from "./Verification.ts"
import { NewSigningKey, SigningKey, SigningKeys } from "./SigningKey.ts"

const params = { handle: HandleParam }

export class ProofApi extends HttpApiGroup.make("proof")
  .add(
    HttpApiEndpoint.get("listKeys", "/api/identities/:handle/signing-keys", {
      params,
      success: SigningKeys,
      error: [NotFound, IdentityNotReady, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "List the public keys of an Identity"),
    HttpApiEndpoint.post("registerKey", "/api/identities/:handle/signing-keys", {
      params,
      payload: NewSigningKey,
      success: SigningKey.pipe(HttpApiSchema.status(201)),
      error: [NotFound, IdentityNotReady, AlgorithmUnsupported, KeyProofInvalid, ScopeExceeds, Conflict, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Register a public key of the agent"),
    HttpApiEndpoint.delete("removeKey", "/api/identities/:handle/signing-keys/:kid", {
      params: {
        handle: HandleParam,
        kid: Text.check(Schema.isMaxLength(100)).annotate({ description: "The thumbprint of the key." }),
      },
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Conflict, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Remove a public key that the agent registered, or a rotated one"),
    HttpApiEndpoint.post("rotateKey", "/api/identities/:handle/signing-key/rotate", {
      params,
      success: SigningKeys,
      error: [NotFound, IdentityNotReady, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(OpenApi.Summary, "Replace the key with which the service signs for an Identity"),
    HttpApiEndpoint.get("settings", "/api/identities/:handle/proof", {
      params,
      success: ProofSettings,
      error: [NotFound, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(
        OpenApi.Summary,
        "Read for which audiences an Identity may get tokens, and at which sites it may sign in",
      )
      .annotate(Tagged, true),
    HttpApiEndpoint.patch("updateSettings", "/api/identities/:handle/proof", {
      params,
      headers: conditional,
      payload: [ProofPatch, ProofPatch.pipe(HttpApiSchema.asJson({ contentType: "application/merge-patch+json" }))],
      success: ProofSettings,
      error: [NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(onIdentity("admin"))
      .annotate(
        OpenApi.Summary,
        "Set for which audiences an Identity may get tokens, and at which sites it may sign in",
      ),
    HttpApiEndpoint.post("createToken", "/api/identities/:handle/tokens", {
      params,
      payload: NewToken,
      success: IdentityToken.pipe(HttpApiSchema.status(201)),
      error: [
        NotFound,
        IdentityNotReady,
        AudienceNotAllowed,
        AlgorithmUnsupported,
        MailPaused,
        ScopeExceeds,
        Unavailable,
      ],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Create a short-lived identity token for another service")
      .annotate(Issues, true)
      .annotate(ShowsSecret, true)
      .annotate(Confidential, true)
      .annotate(Tool, {
        name: "svc_token_create",
        effect: "write",
        advice: "Secret: send it only to the service that `audience` names.",
      }),
    HttpApiEndpoint.post("createSignature", "/api/identities/:handle/signatures", {
      params,
      payload: NewSignature,
      success: RequestSignature.pipe(HttpApiSchema.status(201)),
      error: [NotFound, IdentityNotReady, InvalidRequest, UrlInvalid, MailPaused, Unavailable],
    })
      .pipe(onIdentity("any"))
      .annotate(OpenApi.Summary, "Sign a web request, so that the site knows that it comes from the Identity")
      .annotate(Issues, true)
      .annotate(ShowsSecret, true)
      .annotate(Confidential, true),
    HttpApiEndpoint.post("verify", "/api/verify", {
      payload: NewVerification,
      success: Verification,
      error: [InvalidRequest],
    })
      .pipe(callers("any"))
      .annotate(OpenApi.Summary, "Verify who signed a token, an A2A card or a request")
      .annotate(Unscoped, true),
  )
  .annotateEndpoints(About, "proof")
  .annotate(OpenApi.Description, "The keys with which others verify an Identity.") {}
