/**
 * The OpenAPI 3.1.1 document: what the library derives from the API's definition, completed with what holds for every
 * operation (headers, who may call, problems that can really come of it) and with summaries and examples.
 */
import { Api } from "@svc/domain/Api"
import { Access, type AccessLevel, CallPolicy, ShowsSecret, Tagged } from "@svc/domain/account/Authorization"
import { type Code, table } from "@svc/domain/problems/Table"
import { Context } from "effect"
import { type HttpApiEndpoint, OpenApi } from "effect/http-api"
import { addEvents } from "./EventSchemas.ts"
import { exampleOf, type JsonSchema } from "./Examples.ts"
import { groups, summaries } from "./Operations.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- the document is JSON that the library's types describe only in part
type Json = Record<string, any>

const description = `An identity for every software agent: a name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks.

Errors are \`application/problem+json\` (RFC 9457) with a stable \`code\`, a \`doc_url\` and an \`agent_hint\`: \`fix_call\`, \`wait\` or \`stop\`.
Every answer carries \`request-id\`. Timestamps are RFC 3339 in UTC. Unknown members of a request are refused.`

const who: { readonly [L in AccessLevel]: string } = {
  any: "Any credential may call it; an Identity Key only for its own Identity.",
  org: "An Admin Key or a session may call it; an Identity Key is refused.",
  admin: "An Admin Key or a session may call it; an Identity Key is refused.",
  session: "Only a console session may call it: it is the account holder's own act.",
}

/** Problems of the credential's judgement that each level can give. */
const denials: { readonly [L in AccessLevel]: ReadonlyArray<Code> } = {
  any: ["foreign_identity"],
  org: ["org_scope_required"],
  admin: ["admin_required"],
  session: ["session_required"],
}

const endpoints: ReadonlyMap<string, HttpApiEndpoint.Top> = new Map(
  Object.entries(Api.groups).flatMap(([group, { endpoints }]) =>
    Object.entries(endpoints as Record<string, HttpApiEndpoint.Top>).map(([name, endpoint]) => [
      `${group}.${name}`,
      endpoint,
    ]),
  ),
)

const codeOf = (ref: string) => ref.replace("#/components/schemas/", "").replace(/Encoded$/, "")
const pascal = (code: string) => code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** Codes that the general middleware declares everywhere, though not every operation can give them. */
const cannotCome = (operation: Json, access: AccessLevel | undefined, method: string): ReadonlySet<string> => {
  const impossible = new Set<string>()
  const own = access === undefined ? [] : denials[access]
  for (const code of Object.values(denials).flat()) if (!own.includes(code)) impossible.add(code)
  if (operation["requestBody"] === undefined) {
    impossible.add("payload_too_large").add("unsupported_media_type")
    if (operation["parameters"].length === 0 && method !== "post" && access !== undefined)
      impossible.add("invalid_request")
  }
  if (method !== "post") impossible.add("idempotency_key_in_progress").add("idempotency_key_reused")
  return impossible
}

/** Codes an operation names itself, which the general middleware also names. */
const ownCodes: Readonly<Record<string, ReadonlyArray<Code>>> = {
  "mail_settings.switch": ["admin_required"],
  "mail_settings.disallow": ["conflict"],
  "webhooks.test": ["conflict"],
  "events.replay": ["conflict"],
  "vault.put": ["payload_too_large"],
}

const refsOf = (schema: Json): ReadonlyArray<string> =>
  schema["$ref"] === undefined ? (schema["anyOf"] ?? []).flatMap(refsOf) : [schema["$ref"]]

const prune = (operation: Json, impossible: ReadonlySet<string>, secret: boolean) => {
  const kept: ReadonlyArray<string> = [...(ownCodes[operation["operationId"]] ?? []), ...(secret ? ["conflict"] : [])]
  for (const [status, response] of Object.entries<Json>(operation["responses"])) {
    const problem = response["content"]?.["application/problem+json"]
    if (problem === undefined) continue
    const left = refsOf(problem.schema).filter((ref) => {
      const code = codeOf(ref)
      if (kept.includes(code)) return true
      return !impossible.has(code) && code !== "conflict"
    })
    if (left.length === 0) {
      delete operation["responses"][status]
      continue
    }
    response["description"] = left.map((ref) => table[codeOf(ref) as Code].title).join("; or: ")
    problem.schema = left.length === 1 ? { $ref: left[0] } : { anyOf: left.map(($ref) => ({ $ref })) }
    problem.examples = Object.fromEntries(
      left.map((ref) => [codeOf(ref), { value: problemExample(codeOf(ref) as Code) }]),
    )
  }
}

const problemExample = (code: Code) => ({
  type: `/problems/${code}`,
  title: table[code].title,
  status: table[code].status,
  detail: table[code].meaning,
  code,
  agent_hint: table[code].agent_hint,
  instance: "req_01kjr8xr3v7k2t9m4q6w8y0zab",
  doc_url: `https://api.example/problems/${code}`,
})

const header = (text: string, schema: Json = { type: "string" }) => ({ description: text, schema })
const headers = {
  "request-id": header("The id of this request, ours."),
  "retry-after": header("Seconds to wait.", { type: "integer" }),
  "ratelimit-policy": header("The limits that hold for this call (draft-ietf-httpapi-ratelimit-headers)."),
  ratelimit: header("What is left of each limit, and when it is renewed."),
  etag: header("The entity tag of the representation."),
}
const componentHeader = (name: string) => ({ $ref: `#/components/headers/${name}` })

const completeResponses = (operation: Json, limited: boolean, tagged: boolean) => {
  for (const [status, response] of Object.entries<Json>(operation["responses"])) {
    response["headers"] = { ...response["headers"], "request-id": componentHeader("request-id") }
    if (status === "429" || status === "503") response["headers"]["retry-after"] = componentHeader("retry-after")
    if (limited && status !== "401") {
      response["headers"]["ratelimit-policy"] = componentHeader("ratelimit-policy")
      response["headers"]["ratelimit"] = componentHeader("ratelimit")
    }
    if (status.startsWith("2") && response["description"] === "Success") {
      response["description"] =
        status === "204" ? "Done" : status === "202" ? "Accepted" : status === "201" ? "Created" : "Done"
    }
    if (tagged && status === "200") response["headers"]["etag"] = componentHeader("etag")
  }
  if (tagged) {
    operation["responses"]["304"] = {
      description: "Not modified: the client has this representation",
      headers: { etag: componentHeader("etag"), "request-id": componentHeader("request-id") },
    }
  }
}

const parameterTexts: Readonly<Record<string, string>> = {
  handle: "The Handle in any spelling.",
  identity: "The Handle whose namespace is meant; the caller's own where it is left out.",
  limit: "How many entries at most.",
  offset: "How many of the newest entries to skip.",
  cursor: "`next_cursor` of the page before, unchanged.",
  query: "Matched against sender, recipients, subject and bodies.",
  wait: "Seconds to wait for a new message.",
  after: "Only messages newer than this one.",
  "if-match": "Change only this version (an entity tag, or `*`).",
  "if-none-match": "`*`: create only. On reads: answer 304 where the tag is known.",
  id: "The id of the resource.",
  userCode: "The user code in any spelling.",
  index: "The attachment's `index`.",
  address: "The email address.",
  name: "The secret's name.",
  version: "A version that is kept; the present one where it is left out.",
  platform: "The platform.",
  type: "Only Events of this type.",
  direction: "Only messages that came in, or went out.",
  tag: "Only messages that arrived on this subaddress tag.",
  thread_id: "Only messages of this thread.",
  "last-event-id": "The last Event the client has.",
}

const completeParameters = (operation: Json, method: string, access: AccessLevel | undefined, tagged: boolean) => {
  for (const parameter of operation["parameters"]) {
    const text = parameterTexts[parameter.name]
    if (text !== undefined) parameter.description ??= text
  }
  const add = (name: string, text: string, schema: Json) => {
    if (!operation["parameters"].some((one: Json) => one["name"].toLowerCase() === name.toLowerCase()))
      operation["parameters"].push({ name, in: "header", required: false, description: text, schema })
  }
  if (method === "post" && access !== undefined) {
    add("Idempotency-Key", "Makes a repeat of this request safe (draft-ietf-httpapi-idempotency-key-header).", {
      type: "string",
      minLength: 1,
      maxLength: 255,
    })
  }
  if (tagged) add("If-None-Match", "Entity tags the client has.", { type: "string" })
}

/** Bounds that every JSON number has say nothing. */
const tidy = (value: unknown): void => {
  if (Array.isArray(value)) return value.forEach(tidy)
  if (typeof value !== "object" || value === null) return
  const node = value as Json
  if (node["minimum"] === -Number.MAX_SAFE_INTEGER) delete node["minimum"]
  if (node["maximum"] === Number.MAX_SAFE_INTEGER) delete node["maximum"]
  Object.values(node).forEach(tidy)
}

/** The library makes a schema of its own for each media type of a body; equal ones are one. */
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

const describe = (input: Json): Json => {
  const spec: Json = JSON.parse(JSON.stringify(input))
  spec["openapi"] = "3.1.1"
  spec["info"] = {
    title: "Agent Identity Service",
    version: spec["info"].version,
    summary: "One call gives a software agent an identity.",
    description,
    contact: { name: "Support", url: "https://agentidentity.example/contact", email: "support@agentidentity.example" },
    license: { name: "MIT", url: "https://opensource.org/license/mit" },
  }
  spec["servers"] = [{ url: "/", description: "This deployment" }]
  spec["security"] = [{ api_key: [] }]
  spec["tags"] = spec["tags"]
    .map(({ name }: Json) => ({ name, description: groups[name] ?? name }))
    .toSorted((a: Json, b: Json) => (a["name"] < b["name"] ? -1 : 1))
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
    for (const [method, operation] of Object.entries<Json>(path)) {
      const id: string = operation["operationId"]
      const endpoint = endpoints.get(id)!
      const access = Context.getOrUndefined(endpoint.annotations, Access)
      const tagged = Context.get(endpoint.annotations, Tagged)
      const secret = Context.get(endpoint.annotations, ShowsSecret)
      const policy = Context.getOrUndefined(endpoint.annotations, CallPolicy)
      operation["summary"] = summaries[id]
      operation["description"] = [
        `${summaries[id]}.`,
        access === undefined ? "No credential is needed." : who[access],
        ...(policy === undefined ? [] : ["Such calls have a limit of their own."]),
        ...(secret ? ["The answer carries a secret that is shown in no other."] : []),
      ].join(" ")
      if (access === undefined) operation["security"] = []
      prune(operation, cannotCome(operation, access, method), secret)
      const publicLimited = operation["responses"]["429"] !== undefined
      completeParameters(operation, method, access, tagged)
      completeResponses(operation, access !== undefined || publicLimited, tagged)
      for (const carrier of [operation["requestBody"], ...Object.values<Json>(operation["responses"])]) {
        for (const [type, media] of Object.entries<Json>(carrier?.["content"] ?? {})) {
          delete media["x-effect-stream"]
          if (media["schema"] !== undefined && type.endsWith("json") && media["examples"] === undefined)
            media["example"] = exampleOf(media["schema"], resolve)
        }
      }
    }
  }
  const named = JSON.parse(
    JSON.stringify(spec).replace(
      /#\/components\/schemas\/([\w]+?)(?:Encoded)?"/g,
      (_, name: string) => `#/components/schemas/${pascal(name)}"`,
    ),
  )
  named.components.schemas = Object.fromEntries(
    Object.entries(named.components.schemas).map(([name, schema]) => [pascal(name.replace(/Encoded$/, "")), schema]),
  )
  mergeTwins(named)
  addEvents(named)
  // The health report of a failing service is the report, not a problem.
  named.paths["/api/healthz"].get.responses["503"] ??= named.paths["/api/healthz"].get.responses["200"]
  tidy(named)
  return named
}

/** The API with its description attached, for everything that shows it. */
export const described = Api.annotate(OpenApi.Transform, (spec) => describe(spec))

export const document: Json = OpenApi.fromApi(described) as unknown as Json
