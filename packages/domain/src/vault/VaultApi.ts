/** Operations of the Vault, which has one namespace per Org and one per Identity. Only one endpoint returns values. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { byQuery, Confidential, inRealm } from "../account/Policy.ts"
import { HandleText } from "../handles/HandleParam.ts"
import { Tool } from "../mcp/Tool.ts"
import { pageOf, paging, wholePaging } from "../Paging.ts"
import { conditional, located } from "../Precondition.ts"
import {
  AuditUnavailable,
  IdentityNotReady,
  Conflict,
  InvalidCursor,
  NotFound,
  PayloadTooLarge,
  PreconditionFailed,
  SecretNameInvalid,
  Unavailable,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { namePattern, NewSecret, Secret, SecretValue, SecretVersion } from "./Vault.ts"
import { About, Reveals } from "../account/EndpointScope.ts"

/** The operation validates the name, since it has its own problem code. */
const NameParam = Text.check(
  Schema.isMaxLength(1000, { toJsonSchema: () => ({ pattern: namePattern.source, maxLength: 128 }) }),
).annotate({
  description:
    "The secret's name: 1 to 128 lowercase letters, digits, dots, dashes and underscores, starting with a letter or digit.",
})

/** The namespace: that of the Identity with this Handle, or the caller's own if it is omitted. */
const namespace = {
  identity: Schema.optionalKey(
    HandleText.annotate({ description: "Handle that names the namespace; default: the caller's own." }),
  ),
}

const Version = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 }))
const tag = { etag: Schema.String }
const replaced = HttpApiSchema.WithHeaders(Secret, tag)
const created = HttpApiSchema.WithHeaders(Secret.pipe(HttpApiSchema.status(201)), { ...tag, ...located })

export class VaultApi extends HttpApiGroup.make("vault")
  .add(
    HttpApiEndpoint.get("list", "/api/vault/secrets", {
      query: { ...namespace, ...wholePaging },
      success: pageOf("secrets", Secret),
      error: [NotFound, InvalidCursor, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "List secrets without their values")
      .annotate(Tool, {
        name: "svc_vault_list",
        effect: "read",
        columns: ["name", "size", "version", "description", "updated_at"],
      }),
    HttpApiEndpoint.get("value", "/api/vault/secrets/:name/value", {
      params: { name: NameParam },
      query: {
        ...namespace,
        version: Schema.optionalKey(
          Version.annotate({ description: "A stored version; defaults to the current one." }),
        ),
      },
      success: HttpApiSchema.WithHeaders(SecretValue, tag),
      error: [SecretNameInvalid, NotFound, Unavailable, AuditUnavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Read the value of a secret")
      .annotate(Reveals, true)
      .annotate(Confidential, true)
      .annotate(Tool, { name: "svc_vault_get", effect: "read", advice: "Keep the value out of messages and posts." }),
    HttpApiEndpoint.put("put", "/api/vault/secrets/:name", {
      params: { name: NameParam },
      query: namespace,
      headers: {
        ...conditional,
        "if-none-match": Schema.optionalKey(
          Schema.String.annotate({
            description: "`*`: create only. On reads: respond with 304 if the tag is current.",
          }),
        ),
      },
      payload: NewSecret,
      success: [replaced, created],
      error: [
        SecretNameInvalid,
        NotFound,
        PayloadTooLarge,
        PreconditionFailed,
        Conflict,
        IdentityNotReady,
        Unavailable,
      ],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Create or replace a secret")
      .annotate(Tool, {
        name: "svc_vault_set",
        effect: "idempotent_write",
        secret: ["value"],
        advice: "Keep secrets out of descriptions, which lists show.",
      }),
    HttpApiEndpoint.delete("remove", "/api/vault/secrets/:name", {
      params: { name: NameParam },
      query: namespace,
      headers: conditional,
      success: HttpApiSchema.NoContent,
      error: [SecretNameInvalid, NotFound, PreconditionFailed, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Delete a secret and all its versions")
      .annotate(Tool, { name: "svc_vault_delete", effect: "destructive" }),
    HttpApiEndpoint.get("versions", "/api/vault/secrets/:name/versions", {
      params: { name: NameParam },
      query: { ...namespace, ...paging },
      success: pageOf("versions", SecretVersion),
      error: [SecretNameInvalid, NotFound, InvalidCursor, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "List the stored versions of a secret"),
    HttpApiEndpoint.post("restore", "/api/vault/secrets/:name/restore", {
      params: { name: NameParam },
      query: namespace,
      headers: conditional,
      payload: Schema.Struct({ version: Version }),
      success: replaced,
      error: [SecretNameInvalid, NotFound, PreconditionFailed, IdentityNotReady, Unavailable],
    })
      .pipe(inRealm(byQuery("identity")))
      .annotate(OpenApi.Summary, "Restore an earlier version of a secret"),
  )
  .annotateEndpoints(About, "vault")
  .annotate(OpenApi.Description, "Encrypted secrets, one namespace per Org and one per Identity.") {}
