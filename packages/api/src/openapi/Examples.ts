/** Builds an example for a JSON schema: the sample of the member if there is one, else the simplest valid value. */
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
const ofFormat: Readonly<Record<string, string>> = { date: "2026-11-20", "date-time": "2026-11-20T12:00:00.000Z", uuid }
const publicId = "01kjr8xr3v7k2t9m4q6w8y0zab"
const token = "0123456789abcdefghijABCDEFGHIJ0123456789abcABCDEF"

/** Samples by member name, or by `<owner>.<member>` if a name has several meanings; the owner is a schema or a member. */
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
  redirect_url: "https://app.example/callback?code=5bV0cT8mQw3n&state=7Kx2",
  profile_url: "https://example.com/@ada",
  card_url: "https://example.com/@ada/agent-card.json",
  audience: "sts.amazonaws.com",
  audiences: ["sts.amazonaws.com"],
  did: "did:web:example.com:%40ada",
  did_url: "https://example.com/@ada/did.json",
  jwks_url: "https://example.com/@ada/jwks.json",
  kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
  jwk: { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" },
  kty: "OKP",
  crv: "Ed25519",
  x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
  hostname: "ada.tunnel.example",
  host_header: "preserve",
  allowed_networks: ["203.0.113.0/24"],
  networks: ["203.0.113.0/24"],
  scopes: ["mail:read", "card:write"],
  handles: ["ada"],
  expires_in_days: 90,
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
  authorization_url: "https://example.social/oauth/authorize?response_type=code&client_id=7&state=5bV0cT8mQw3n",
  state: "5bV0cT8mQw3nXyZ1aB2cD4eF6gH7iJ9kL0mN1oP2qR3",
  callback: "https://api.example/connectors/callback?code=1&state=5bV0cT8mQw3nXyZ1aB2cD4eF6gH7iJ9kL0mN1oP2qR3",
  app_password: "abcd-efgh-ijkl-mnop",
  cursor: null,
  hint: null,
  last_error: null,
  polled_at: "2026-11-20T12:00:00.000Z",
  remedy: "Connect the account again.",
  "InstanceRule.id": "1",
  "InstanceRule.text": "Be kind",
  "post.text": "The eighth Bernoulli number is -1/30.",
  "dm.text": "The eighth Bernoulli number is -1/30.",
  "Post.text": "What is the eighth Bernoulli number?",
  "dm.to": "grace.bsky.social",
  "Connector.status": "connected",
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
  invite_code: "spring-2026",
  token: "5bV0cT8mQw3nXyZ1aB2cD4eF6gH7iJ9kL0mN1oP2qR3",
  key_name: "laptop",
  tags: ["maths"],
  examples: ["What is the eighth Bernoulli number?"],
  in_reply_to: null,
  references: ["<16@example.org>"],
  finished_at: null,
  next_attempt_at: null,
  revoked_at: null,
  stopped_at: null,
  stopped_by: null,
  effective_at: null,
  gated: false,
  expired: false,
  overridden: false,
  replay: false,
  "Org.email": "you@example.org",
  "requestMagicLink.email": "you@example.org",
  "acceptTerms.version": "2026-11-01",
  "ApiKey.name": "laptop",
  "ApiKey.identity_id": null,
  "create.name": "laptop",
  "start.name": "laptop",
  "DeviceView.name": "laptop",
  "start.client": "svc command line",
  "DeviceView.client": "svc command line",
  "HandleAvailability.available": false,
  "HandleAvailability.code": "handle_taken",
  "HandleAvailability.detail": "Another Identity holds this name.",
  "HealthComponent.name": "database",
  "HealthComponent.detail": null,
  "HealthReport.version": "0.1.0",
  "tunnel.url": "https://ada.tunnel.example",
  "Tunnel.url": "https://ada.tunnel.example",
  "interfaces.url": "https://ada.tunnel.example",
  "provider.url": "https://example.org",
  "steps.finished_at": "2026-11-20T12:00:00.000Z",
  "steps.status": "done",
  "Identity.status": "ready",
  "Saga.status": "completed",
  "Saga.finished_at": "2026-11-20T12:00:00.000Z",
  "from.name": "Grace",
  "to.address": "ada@mail.example",
  "to.name": null,
  seen: false,
  flagged: false,
  labels: ["billing"],
  add_labels: ["billing"],
  remove_labels: ["billing"],
  text_reply: "Please find attached",
  "Link.url": "https://example.org/invoices/17",
  "Link.text": "Invoice 17",
  deceptive: false,
  "Thread.messages": 2,
  unread: 1,
  "Message.cc": [],
  "Message.bcc": [],
  "Message.reply_to": [],
  "MessageSummary.cc": [],
  "MessageSummary.bcc": [],
  "MessageSummary.reply_to": [],
  "Header.name": "Subject",
  "Header.value": "Invoice 17",
  "skills.id": "bernoulli",
  "skills.name": "Bernoulli numbers",
  "skills.description": "Computes Bernoulli numbers exactly.",
  "Secret.name": "db.pass",
  "Secret.description": "The database's password.",
  "Secret.size": 6,
  "SecretVersion.size": 6,
  "SecretValue.name": "db.pass",
  "put.description": "The database's password.",
  "setDisclosure.text": "This message was written by an AI agent.",
  "AiDisclosure.text": "This message was written by an AI agent.",
  "AiDisclosure.html": "<p>This message was written by an AI agent.</p>",
  "Webhook.description": "Invoices to the ledger",
  "NewWebhook.description": "Invoices to the ledger",
  "WebhookPatch.description": "Invoices to the ledger",
  "Delivery.status": "delivered",
  "Export.status": "ready",
  "switch.outgoing": "stopped",
  "switch.reason": "On holiday",
  "switch.approval": "none",
  "NewMail.in_reply_to": "<16@example.org>",
  "NewMail.to": ["grace@example.org"],
  "NewMail.cc": ["alan@example.org"],
  "NewMail.bcc": [],
  "NewMail.subject": "Invoice 17",
  "NewMail.text": "Dear Grace, here it is.",
  "NewMail.html": "<p>Dear Grace, here it is.</p>",
  "NewMail.headers": { "List-Unsubscribe": "<https://example.org/unsubscribe>" },
  "Draft.to": ["grace@example.org"],
  "Draft.headers": {},
  content_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  content_base64: "JVBERi0xLjQK",
  content_id: "logo@example.org",
  "hit.host": "example.com",
  "contact.name": "Grace",
  "contact.email": "grace@example.org",
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

/** The position of a schema: its member name, its owner, and its own name. */
interface Place {
  readonly member: string
  readonly owner: string
  readonly self?: string
  readonly depth: number
}

const sampleFor = (schema: JsonSchema, { owner, member }: Place): { readonly value: unknown } | undefined => {
  if (schema.properties !== undefined) return undefined
  const key = [`${owner}.${member}`, member].find((one) => Object.hasOwn(samples, one) && fits(schema, samples[one]))
  return key === undefined ? undefined : { value: samples[key] }
}

/** A request has either `expires_at` or `expires_in_days`. */
const isRivalled = ({ properties = {}, required = [] }: JsonSchema, member: string): boolean =>
  member === "expires_at" && properties["expires_in_days"] !== undefined && !required.includes(member)

const make = (schema: JsonSchema, resolve: (ref: string) => JsonSchema, place: Place): unknown => {
  const deeper = { ...place, depth: place.depth + 1 }
  if (schema.$ref !== undefined) {
    const self = schema.$ref
      .split("/")
      .at(-1)!
      .replace(/Encoded$/, "")
    return make(resolve(schema.$ref), resolve, { ...deeper, self })
  }
  const sample = sampleFor(schema, place)
  if (sample !== undefined) return sample.value
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) return make(choices.find(({ type }) => type !== "null") ?? choices[0]!, resolve, deeper)
  if (schema.allOf !== undefined && schema.type === undefined) return make(schema.allOf[0]!, resolve, deeper)
  switch (schema.type) {
    case "object": {
      const owner = place.self ?? (place.member === "" ? place.owner : place.member)
      return Object.fromEntries(
        Object.entries(schema.properties ?? {})
          .filter(([member]) => !isRivalled(schema, member))
          .map(([member, inner]) => [member, make(inner, resolve, { member, owner, depth: place.depth + 1 })]),
      )
    }
    case "array": {
      const item = schema.prefixItems?.[0] ?? schema.items
      return item === undefined || item === false || place.depth > 12 ? [] : [make(item, resolve, deeper)]
    }
    case "integer":
    case "number":
      return Math.max(schema.minimum ?? 1, 1)
    case "boolean":
      return true
    case "null":
      return null
    default:
      return text(schema, place.member)
  }
}

/** Returns an example. `resolve` follows `$ref`s; `owner` is the name of the operation or the schema. */
export const exampleOf = (schema: JsonSchema, resolve: (ref: string) => JsonSchema, owner = ""): unknown =>
  make(schema, resolve, { member: "", owner, depth: 0 })

const text = (schema: JsonSchema, name: string): string => {
  if (schema.format !== undefined && schema.format in ofFormat) return ofFormat[schema.format]!
  if (schema.format === "email" || schema.format === "idn-email") return "grace@example.org"
  const prefix = /\^([a-z]{2,4}_)/.exec(allPatterns(schema))?.[1]
  if (prefix !== undefined) return prefix + publicId
  if (name === "thread_id") return `thr_${publicId}`
  if (name === "id" || name.endsWith("_id")) return uuid
  if (name === "error") return "timeout"
  return name === "version" ? "1.0.0" : name === "" ? "text" : name.replaceAll("_", " ")
}

const allPatterns = (schema: JsonSchema): string =>
  [schema.pattern ?? "", ...(schema.allOf ?? []).map(allPatterns)].join(" ")
