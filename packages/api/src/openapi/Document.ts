/**
 * The OpenAPI 3.1.1 document: what the library derives from the API's definition, completed with what holds for every
 * operation (headers, who may call, problems that can really come of it) and with examples.
 */
import { Api } from "@svc/domain/Api"
import { CallPolicy, policyOf, type Scope, ShowsSecret, Tagged } from "@svc/domain/account/Policy"
import { scopeOf } from "@svc/domain/account/EndpointScope"
import { Context } from "effect"
import { type HttpApiEndpoint, OpenApi } from "effect/http-api"
import { completeBody, completeParameters, completeResponses, headers } from "./Completion.ts"
import { describeMembers } from "./Descriptions.ts"
import { addEvents } from "./EventSchemas.ts"
import { exampleOf, type JsonSchema } from "./Examples.ts"
import { type Json, completeProblems, openAnswers, plain } from "./Shapes.ts"
import * as Problems from "./Problems.ts"

const pascal = (code: string) => code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Bounds that every JSON number has are redundant. */
const tidyBounds = (value: unknown): void => {
  if (Array.isArray(value)) return value.forEach(tidyBounds)
  if (typeof value !== "object" || value === null) return
  const node = value as Json
  if (node["minimum"] === -Number.MAX_SAFE_INTEGER) delete node["minimum"]
  if (node["maximum"] === Number.MAX_SAFE_INTEGER) delete node["maximum"]
  Object.values(node).forEach(tidyBounds)
}

/** The library creates a schema per media type of a body; equal ones are merged. */
const mergeTwins = (spec: Json) => {
  const schemas: Json = spec["components"].schemas
  const twins = Object.keys(schemas).filter((name) => {
    const base = /^(.*)_\d+$/.exec(name)?.[1]
    return base !== undefined && JSON.stringify(schemas[base]) === JSON.stringify(schemas[name])
  })
  for (const twin of twins) delete schemas[twin]
  const rename = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    const node = value as Json
    const base = /^(#\/components\/schemas\/.*)_\d+$/.exec(String(node["$ref"] ?? ""))
    if (base !== null && twins.includes(node["$ref"].split("/").at(-1))) node["$ref"] = base[1]
    Object.values(node).forEach(rename)
  }
  rename(spec)
}

/** Converts problem codes to type names, and removes the library's `Encoded` suffix. */
const rename = (spec: Json): Json => {
  const named = JSON.parse(
    JSON.stringify(spec).replace(
      /#\/components\/schemas\/([\w]+?)(?:Encoded)?"/g,
      (_, name: string) => `#/components/schemas/${pascal(name)}"`,
    ),
  )
  named.components.schemas = Object.fromEntries(
    Object.entries(named.components.schemas).map(([name, schema]) => [pascal(name.replace(/Encoded$/, "")), schema]),
  )
  return named
}

/** Renames and merges the components as a reader expects them. */
const tidy = (spec: Json): Json => {
  const named = rename(spec)
  mergeTwins(named)
  tidyBounds(named)
  return named
}

/** The introduction: from sign-up to the first message, and the conventions of every call. */
const introduction = `An identity for every software agent: a name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks.

## Getting started

1. **Sign up.** Request a magic link and exchange its token for a session. In development the response contains the link (\`dev_magic_link\`); in production it is sent by mail.

\`\`\`sh
curl -s $BASE/api/auth/magic-link -H 'content-type: application/json' \\
  -d '{"email":"you@example.org","tos_accepted":true}'
curl -s $BASE/api/auth/magic-link/consume -H 'content-type: application/json' -d '{"token":"…"}'
\`\`\`

2. **Create an Admin Key** for your programs, with the \`session_token\` of the response.

\`\`\`sh
curl -s $BASE/api/keys -H "authorization: Bearer $SESSION" -H 'content-type: application/json' -d '{"name":"laptop"}'
\`\`\`

3. **Create an Identity**, and poll it until its \`status\` is \`ready\`. Its key and mailbox password can then be read for an hour, or until you acknowledge them.

\`\`\`sh
curl -s $BASE/api/identities -H "authorization: Bearer $KEY" -H 'content-type: application/json' -d '{"handle":"ada"}'
curl -s $BASE/api/identities/ada -H "authorization: Bearer $KEY"
curl -s $BASE/api/identities/ada/identity-key -H "authorization: Bearer $KEY"
\`\`\`

4. **Wait for mail** to \`ada@…\`, or register a Webhook.

\`\`\`sh
curl -s "$BASE/api/identities/ada/messages?wait=60" -H "authorization: Bearer $KEY"
\`\`\`

## Conventions

- Send the credential as \`Authorization: Bearer …\`: a console session, an Admin Key, or an Identity Key, which may only act on its own Identity. URLs do not contain the Org.
- Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`, a \`doc_url\` and an \`agent_hint\`: \`fix_call\`, \`wait\` or \`stop\`.
- A request body may have up to 1 MiB: 10 MiB to send a message or store a draft, 8 MiB to post or send a direct message through a Connector, 64 KiB without a credential. A tool call over MCP has the limit of its endpoint. Larger bodies fail with 413 \`payload_too_large\`.
- Unknown members of a request are rejected. Responses may gain new members; ignore unknown ones.
- A request other than GET is safe to repeat with the same \`Idempotency-Key\`. The response to a repeat has \`Idempotent-Replayed: true\`.
- The API has dated versions (\`GET /api/versions\`). A request is answered in the version of its \`Svc-Version\` header, else in that of the account; the response has the same header. This document describes the newest version.
- Every response has a \`request-id\` header. Timestamps are RFC 3339 in UTC.`

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
  "proof",
  "tunnels",
  "vault",
  "exports",
  "account",
  "public",
  "health",
]

/** New groups without a position come last. */
const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length)

/** Sentences about the callers of an operation, for its description. */
export const who: { readonly [S in Scope]: string } = {
  public: "No credential is required.",
  any: "Accepts any credential. An Identity Key may only act on its own Identity.",
  org: "Requires an Admin Key or a session; Identity Keys are rejected.",
  admin: "Requires an Admin Key or a session; Identity Keys are rejected.",
  session: "Requires a console session, because only the account holder may do this.",
}

/** The sentence about the limit of an operation, for its description. */
export const ownRateLimit = "This operation has its own rate limit."

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
    ...(Context.getOrUndefined(endpoint.annotations, CallPolicy) === undefined ? [] : [ownRateLimit]),
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
