/** An example for a JSON schema: the sample of its member's name where there is one, else the simplest value that fits. */

export interface JsonSchema {
  readonly type?: string | ReadonlyArray<string>
  readonly $ref?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly oneOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema | false
  readonly prefixItems?: ReadonlyArray<JsonSchema>
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maxLength?: number
}

const uuid = "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10"
const publicId = "01kjr8xr3v7k2t9m4q6w8y0zab"
const token = "0123456789abcdefghijABCDEFGHIJ0123456789abcABCDEF"

/** By member name, and by `<type>.<member>` where one name means different things. */
const samples: Readonly<Record<string, unknown>> = {
  handle: "ada",
  identity: "ada",
  email: "ada@mail.example",
  address: "grace@example.org",
  name: "ada",
  description: "Computes things on request.",
  url: "https://example.org/hook",
  event_types: ["email.received"],
  token_prefix: "svc_admin_4fGh2K",
  key: `svc_admin_${token}`,
  identity_key: `svc_id_${token}`,
  session_token: `svc_sess_${token}`,
  signing_secret: "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
  device_code: "5bV0cT8mQw3nXyZ1aB2cD4eF6gH7iJ9kL0mN1oP2qR3",
  user_code: "WDJB-MJHT",
  verification_uri: "https://api.example/auth/device",
  verification_uri_complete: "https://api.example/auth/device?user_code=WDJB-MJHT",
  language: "en",
  tos_version: "2026-11-01",
  version: 1,
  current_version: "2026-11-01",
  accepted_version: "2026-11-01",
  interval_seconds: 5,
  profile_url: "https://example.com/@ada",
  card_url: "https://example.com/@ada/agent-card.json",
  hostname: "ada.tunnel.example",
  host_header: "preserve",
  allowed_networks: ["203.0.113.0/24"],
  edge: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a10",
  client: "svc-tunnel/0.1.0",
  host: "mail.example",
  path: "/",
  port: 20017,
  subject: "Invoice 17",
  from: "grace@example.org",
  recipient: "grace@example.org",
  status: "5.1.1",
  diagnostic: "550 5.1.1 No such mailbox",
  event_type: "email.received",
  account: "ada.bsky.social",
  account_id: "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
  service: "https://bsky.social",
  uri: "at://did:plc:z72i7hdynmk6r22z27h6tvur/app.bsky.feed.post/3l6oveex3ii2l",
  author: "grace.bsky.social",
  author_id: "did:plc:z72i7hdynmk6r22z27h6tvur",
  author_name: "Grace",
  reply_to: null,
  snippet: "Please find attached",
  text: "Please find attached",
  html: "<p>Please find attached</p>",
  message: "Hello",
  message_id: "<17@example.org>",
  tag: "invoices",
  confirm: "you@example.org",
  value: "s3cret",
  size: 5120,
  reason: null,
  documentation_url: "https://example.org/docs",
  icon_url: "https://example.org/icon.png",
  organization: "Analytical Engines",
  default_input_modes: ["text/plain"],
  default_output_modes: ["text/plain"],
  input_modes: ["text/plain"],
  output_modes: ["text/plain"],
  protocol_binding: "JSONRPC",
  protocol_version: "1.0",
  seconds: 41.2,
  status_code: 200,
  duration_ms: 87,
  error: null,
  next_cursor: null,
  dev_magic_link: null,
  spf: "pass",
  dkim: "pass",
  dmarc: "pass",
  domain: "example.org",
  content_type: "application/pdf",
  filename: "invoice.pdf",
  password: "abcdefgh-ijkmnpqr-stuvwxyz-23456789",
  username: "ada@mail.example",
  download_url: `/api/exports/exp_${publicId}/archive`,
  doc_url: "https://api.example/problems/not_found",
  instance: `req_${publicId}`,
  detail: "Says what was wrong in this case.",
  card: {
    name: "ada",
    description: "Computes things on request.",
    supportedInterfaces: [{ url: "https://ada.tunnel.example", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
    version: "1.0.0",
    capabilities: { streaming: false, pushNotifications: false, extendedAgentCard: false },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [],
  },
}

const isString = (schema: JsonSchema) => schema.type === "string"

const fits = (schema: JsonSchema, sample: unknown): boolean => {
  if (schema.anyOf !== undefined) return schema.anyOf.some((one) => fits(one, sample))
  if (sample === null) return schema.type === "null"
  switch (typeof sample) {
    case "string":
      return (
        isString(schema) &&
        (schema.enum === undefined || schema.enum.includes(sample)) &&
        (schema.pattern === undefined || new RegExp(schema.pattern, "u").test(sample))
      )
    case "number":
      return schema.type === "number" || (schema.type === "integer" && Number.isInteger(sample))
    case "boolean":
      return schema.type === "boolean"
    default:
      return Array.isArray(sample) ? schema.type === "array" : schema.type === "object"
  }
}

/** `resolve` follows `$ref`s; `name` is the member the schema belongs to. */
export const exampleOf = (schema: JsonSchema, resolve: (ref: string) => JsonSchema, name = "", depth = 0): unknown => {
  if (schema.$ref !== undefined) return exampleOf(resolve(schema.$ref), resolve, name, depth + 1)
  if (Object.hasOwn(samples, name) && fits(schema, samples[name]) && schema.properties === undefined)
    return samples[name]
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) {
    const chosen = choices.find(({ type }) => type !== "null") ?? choices[0]!
    return exampleOf(chosen, resolve, name, depth + 1)
  }
  if (schema.allOf !== undefined && schema.type === undefined)
    return exampleOf(schema.allOf[0]!, resolve, name, depth + 1)
  switch (schema.type) {
    case "object": {
      const properties = Object.entries(schema.properties ?? {})
      return Object.fromEntries(properties.map(([key, inner]) => [key, exampleOf(inner, resolve, key, depth + 1)]))
    }
    case "array": {
      const item = schema.prefixItems?.[0] ?? schema.items
      return item === undefined || item === false || depth > 12 ? [] : [exampleOf(item, resolve, name, depth + 1)]
    }
    case "integer":
    case "number":
      return Math.max(schema.minimum ?? 1, 1)
    case "boolean":
      return true
    case "null":
      return null
    default:
      return text(schema, name)
  }
}

const text = (schema: JsonSchema, name: string): string => {
  if (schema.format === "date-time") return "2026-11-20T12:00:00.000Z"
  if (schema.format === "uuid") return uuid
  const prefix = /\^([a-z]{2,4}_)/.exec(allPatterns(schema))?.[1]
  if (prefix !== undefined) return prefix + publicId
  const named: Readonly<Record<string, string>> = { thread_id: "thr_", id: "", key_id: "" }
  if (name === "thread_id") return `${named["thread_id"]}${publicId}`
  if (name === "id" || name.endsWith("_id")) return uuid
  if (name === "error") return "timeout"
  return name === "version" ? "1.0.0" : name === "" ? "text" : name.replaceAll("_", " ")
}

const allPatterns = (schema: JsonSchema): string =>
  [schema.pattern ?? "", ...(schema.allOf ?? []).map(allPatterns)].join(" ")
