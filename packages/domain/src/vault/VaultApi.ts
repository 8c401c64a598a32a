/** The Vault: one namespace per Org and one per Identity. The value is in the answer of one endpoint only. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Access, Authorization } from "../account/Authorization.ts"
import { HandleParam } from "../identity/IdentityApi.ts"
import { Tool } from "../mcp/Tool.ts"
import { conditional } from "../Precondition.ts"
import {
  IdentityNotReady,
  NotFound,
  PayloadTooLarge,
  PreconditionFailed,
  SecretNameInvalid,
  Unavailable,
} from "../problems/Problem.ts"
import { Text } from "../Text.ts"
import { NewSecret, Secret, SecretValue, SecretVersion } from "./Vault.ts"

/** Judged by the operation, which has a code of its own for it. */
const NameParam = Text.check(Schema.isMaxLength(1000))

/** The namespace: an Identity's, named by its Handle, or the caller's own where it is left out. */
const namespace = { identity: Schema.optionalKey(HandleParam) }

const Version = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 }))
const tag = { etag: Schema.String }
const written = (status: 200 | 201) => HttpApiSchema.WithHeaders(Secret.pipe(HttpApiSchema.status(status)), tag)

export class VaultApi extends HttpApiGroup.make("vault")
  .add(
    HttpApiEndpoint.get("list", "/api/vault/secrets", {
      query: namespace,
      success: Schema.Struct({ secrets: Schema.Array(Secret) }),
      error: [NotFound, Unavailable],
    }).annotate(Tool, { name: "svc_vault_list", effect: "read" }),
    HttpApiEndpoint.get("value", "/api/vault/secrets/:name/value", {
      params: { name: NameParam },
      query: { ...namespace, version: Schema.optionalKey(Version) },
      success: HttpApiSchema.WithHeaders(SecretValue, tag),
      error: [SecretNameInvalid, NotFound, Unavailable],
    }).annotate(Tool, { name: "svc_vault_get", effect: "read", without: ["version"] }),
    HttpApiEndpoint.put("put", "/api/vault/secrets/:name", {
      params: { name: NameParam },
      query: namespace,
      headers: { ...conditional, "if-none-match": Schema.optionalKey(Schema.String) },
      payload: NewSecret,
      success: [written(200), written(201)],
      error: [SecretNameInvalid, NotFound, PayloadTooLarge, PreconditionFailed, IdentityNotReady, Unavailable],
    }).annotate(Tool, { name: "svc_vault_set", effect: "idempotent_write" }),
    HttpApiEndpoint.delete("remove", "/api/vault/secrets/:name", {
      params: { name: NameParam },
      query: namespace,
      success: HttpApiSchema.NoContent,
      error: [SecretNameInvalid, NotFound, Unavailable],
    }).annotate(Tool, { name: "svc_vault_delete", effect: "destructive" }),
    HttpApiEndpoint.get("versions", "/api/vault/secrets/:name/versions", {
      params: { name: NameParam },
      query: namespace,
      success: Schema.Struct({ versions: Schema.Array(SecretVersion) }),
      error: [SecretNameInvalid, NotFound, Unavailable],
    }),
    HttpApiEndpoint.post("restore", "/api/vault/secrets/:name/restore", {
      params: { name: NameParam },
      query: namespace,
      headers: conditional,
      payload: Schema.Struct({ version: Version }),
      success: written(200),
      error: [SecretNameInvalid, NotFound, PreconditionFailed, IdentityNotReady, Unavailable],
    }),
  )
  .middleware(Authorization)
  .annotateEndpoints(Access, "any") {}
