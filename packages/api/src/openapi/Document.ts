/**
 * The OpenAPI 3.1.1 document: what the library derives from the API's definition, completed with what holds for every
 * operation (headers, who may call, problems that can really come of it) and with examples.
 */
import { Api } from "@svc/domain/Api"
import { CallPolicy, policyOf, type Scope, ShowsSecret, Tagged } from "@svc/domain/account/Policy"
import { scopeOf } from "@svc/domain/account/EndpointScope"
import { Context } from "effect"
import { type HttpApiEndpoint, OpenApi } from "effect/http-api"
import { tidy } from "./Components.ts"
import { completeBody, completeParameters, completeResponses, headers } from "./Completion.ts"
import { describeMembers } from "./Descriptions.ts"
import { addEvents } from "./EventSchemas.ts"
import { exampleOf, type JsonSchema } from "./Examples.ts"
import type { Json } from "./Json.ts"
import { introduction } from "./Introduction.ts"
import * as Problems from "./Problems.ts"
import { completeProblems, openAnswers, plain } from "./Shapes.ts"

/** Groups in the order in which they come to be used. */
const order: ReadonlyArray<string> = [
  "sign_in",
  "session",
  "api_keys",
  "device_login",
  "device_confirmation",
  "handles",
  "identities",
  "messages",
  "mail_settings",
  "events",
  "webhooks",
  "cards",
  "profiles",
  "tunnels",
  "vault",
  "exports",
  "account",
  "public",
  "health",
]

/** New groups without a position come last. */
const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)

/** Who may call an operation, for its description. */
export const who: { readonly [S in Scope]: string } = {
  public: "No credential is required.",
  any: "Accepts any credential. An Identity Key may only act on its own Identity.",
  org: "Requires an Admin Key or a session; Identity Keys are rejected.",
  admin: "Requires an Admin Key or a session; Identity Keys are rejected.",
  session: "Requires a console session, because only the account holder may do this.",
}

const endpoints: ReadonlyMap<string, HttpApiEndpoint.Top> = new Map(
  Object.entries(Api.groups).flatMap(([group, { endpoints }]) =>
    Object.entries(endpoints as Record<string, HttpApiEndpoint.Top>).map(([name, endpoint]) => [
      `${group}.${name}`,
      endpoint,
    ]),
  ),
)

const describeOperation = (operation: Json, method: string, resolve: (ref: string) => JsonSchema) => {
  const endpoint = endpoints.get(operation["operationId"])!
  const { scope } = policyOf(endpoint)
  const needed = scopeOf(endpoint)
  // Versioned resources set their entity tag themselves and also support 304.
  const tagged =
    Context.get(endpoint.annotations, Tagged) ||
    (method === "get" && operation["responses"]["200"]?.headers?.etag !== undefined)
  operation["description"] = [
    `${operation["summary"]}.`,
    who[scope],
    ...(needed === null ? [] : [`Requires the scope \`${needed}\`.`]),
    ...(Context.getOrUndefined(endpoint.annotations, CallPolicy) === undefined
      ? []
      : ["This operation has its own rate limit."]),
    ...(Context.get(endpoint.annotations, ShowsSecret)
      ? ["The response contains a secret that is returned only once."]
      : []),
  ].join(" ")
  if (scope === "public") operation["security"] = []
  // An extension, because linters and generators only accept scopes for OAuth schemes.
  if (needed !== null) operation["x-required-scope"] = needed
  Problems.narrow(operation, endpoint, method)
  completeBody(operation, endpoint)
  completeParameters(operation, endpoint, method !== "get" && scope !== "public", tagged)
  completeResponses(operation, scope !== "public" || operation["responses"]["429"] !== undefined, tagged)
  for (const carrier of [operation["requestBody"], ...Object.values<Json>(operation["responses"])]) {
    for (const [type, media] of Object.entries<Json>(carrier?.["content"] ?? {})) {
      delete media["x-effect-stream"]
      if (media["schema"] !== undefined && type.endsWith("json") && media["examples"] === undefined)
        media["example"] = exampleOf(media["schema"], resolve, operation["operationId"].split(".").at(-1))
    }
  }
}

const describe = (input: Json): Json => {
  const spec: Json = JSON.parse(JSON.stringify(input))
  spec["openapi"] = "3.1.1"
  spec["info"] = {
    title: "Agent Identity Service",
    version: spec["info"].version,
    summary: "One call gives a software agent an identity.",
    description: introduction,
    contact: { name: "Support", url: "https://agentidentity.example/contact", email: "support@agentidentity.example" },
    license: { name: "MIT", url: "https://opensource.org/license/mit" },
  }
  spec["servers"] = [{ url: "/", description: "This deployment" }]
  spec["security"] = [{ api_key: [] }]
  spec["tags"] = spec["tags"].toSorted((a: Json, b: Json) => place(a["name"]) - place(b["name"]))
  spec["components"].headers = headers
  spec["components"].securitySchemes = {
    api_key: {
      type: "http",
      scheme: "bearer",
      description: "A console session (`svc_sess_…`), an Admin Key (`svc_admin_…`) or an Identity Key (`svc_id_…`).",
    },
  }
  const resolve = (ref: string): JsonSchema => spec["components"].schemas[ref.replace("#/components/schemas/", "")]
  for (const path of Object.values<Json>(spec["paths"])) {
    for (const [method, operation] of Object.entries<Json>(path)) describeOperation(operation, method, resolve)
  }
  const document = tidy(spec)
  addEvents(document)
  // A failing health check returns the report, not a problem.
  document["paths"]["/api/healthz"].get.responses["503"] ??= document["paths"]["/api/healthz"].get.responses["200"]
  plain(document)
  openAnswers(document)
  completeProblems(document)
  describeMembers(document)
  return document
}

/** The only export is a plain value, so that the bundle can compute it at build time. */
export const document: Json = OpenApi.fromApi(
  Api.annotate(OpenApi.Transform, (spec) => describe(spec)),
) as unknown as Json
