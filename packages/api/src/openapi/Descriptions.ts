/**
 * Descriptions of members in the OpenAPI document and the tools, for schemas that have none themselves: by member name, or
 * by `<Schema>.<member>` if a name has several meanings. A member without a description fails a test.
 */
import { nameOf } from "@svc/domain/events/Event"
import { table } from "@svc/domain/problems/Table"
import type { Json } from "./Shapes.ts"
import { ofCredentials } from "./CredentialDescriptions.ts"
import { ofMail } from "./MailDescriptions.ts"
import { ofProof } from "./ProofDescriptions.ts"

const texts: Readonly<Record<string, string>> = {
  // General
  id: "The id of the resource.",
  handle: "The registered Handle.",
  identity: "The Handle of the Identity; null or omitted for the whole Org.",
  identity_id: "The id of the Identity; null if the whole Org is concerned.",
  name: "The name.",
  email: "The email address.",
  address: "The email address.",
  description: "A description. It is not secret.",
  url: "The URL.",
  status: "The status.",
  state: "Whether sign-up is `open`, needs an `invite` code, or is `closed`.",
  created_at: "The time of creation.",
  updated_at: "The time of the last change.",
  expires_at: "The time of expiry.",
  since: "The start time.",
  hour: "The start of the hour.",
  version: "The version, which increases with each change.",
  next_cursor: "The `cursor` of the next page; null on the last page.",
  detail: "The reason as a sentence.",
  code: "The code of the problem.",
  // Account
  org: "The Org, which is the customer's account.",
  session: "The console session; null for a key.",
  tos: "The Terms of Service: the current version and the accepted one.",
  caller: "The calling credential.",
  language: "The language of the console and of mails: `en`, `de` or `fr`.",
  "hit.language": "The language tag of the page.",
  api_version: "The version of the API for requests without a `Svc-Version` header.",
  "ApiVersion.version": "The version, which is a date.",
  changes: "Changes since the previous version.",
  newest: "The newest version, which new accounts get.",
  tos_version: "The version of the Terms that the Org accepted.",
  tos_accepted: "True if the account holder accepts the Terms. Required at sign-up.",
  tos_accepted_at: "When the Terms were accepted.",
  invite_code: "The invitation code, if sign-up requires one.",
  email_verified_at: "The time at which a magic link verified the address; null before that.",
  current_version: "The current version of the Terms.",
  accepted_version: "The version of the Terms that the Org accepted.",
  accepted_at: "The time of acceptance.",
  effective_at: "The time from which the console requires the current version; null if no time is set.",
  gated: "Whether the console requires acceptance of the current version. The API is not affected.",
  kind: "The kind.",
  key_id: "The id of the key; null for a session.",
  key_name: "The name of the key; null for a session.",
  scope: "`org` for an Admin Key, `identity` for an Identity Key.",
  ...ofCredentials,
  token_prefix: "The first characters of the key, to tell it from others.",
  user_agent: "The User-Agent of the browser; null if it sent none.",
  current: "Whether this is the session of the request.",
  sessions: "The sessions, newest first.",
  last_used_at: "The time of the last use, accurate to a minute; null if never used.",
  revoked_at: "The time of revocation; null while it is valid.",
  key: "The key. It is returned only once.",
  api_key: "The key without its secret.",
  api_keys: "The keys that are not revoked, newest first.",
  session_token: "The session token. It is returned only once.",
  token: "The token of the magic link.",
  dev_magic_link: "The magic link, in development only and never for another site; null otherwise.",
  confirm: "The account's email address, as a confirmation.",
  requested_at: "The time of the request.",
  identities: "The Identities.",
  "AccountDeletion.identities": "The number of Identities that are being deleted.",
  exports: "Exports, newest first.",
  "Export.identity": "The Handle of the exported Identity; null for the whole Org.",
  "Export.size": "The size of the archive's files before compression, in bytes; null until it is ready.",
  download_url: "The URL of the archive; null until it is ready.",
  device_code: "The code with which the terminal polls. It is secret.",
  user_code: "The code that the account holder confirms.",
  verification_uri: "The page on which the account holder enters the code.",
  verification_uri_complete: "The same page with the code filled in.",
  interval_seconds: "The seconds to wait between polls.",
  client: "The name of the device or program, as its user knows it.",
  "Tunnel.client": "The name and version that the tunnel agent reports.",
  // Identity
  available: "Whether the name can be registered.",
  profile_url: "The public page of the Identity.",
  card_url: "The URL of the A2A card.",
  tunnel: "The Tunnel, which is the public address of the agent's local port.",
  hostname: "The public hostname.",
  port: "The TCP port; null until one is allocated.",
  connected: "Whether an agent is connected.",
  saga: "The latest provisioning or deletion with its steps.",
  steps: "The steps in their order.",
  attempts: "The number of attempts.",
  "Delivery.attempts": "The attempts, oldest first.",
  error: "The error in a few words; null if absent.",
  started_at: "The start time.",
  finished_at: "The end time; null while it runs.",
  onboarding: "The time from sign-up to ready, for the Org's first ready Identity; null for others.",
  signed_up_at: "The time of the Org's sign-up.",
  ready_at: "The time at which the Identity became ready.",
  seconds: "The seconds between sign-up and ready.",
  identity_key: "The Identity Key, available until it is acknowledged or the time limit has passed.",
  imap: "The IMAP settings of the Mailbox, available as long as the key.",
  smtp: "The SMTP settings. The user and password are those of IMAP, the rules those of `messages/send`.",
  host: "The host.",
  "hit.host": "The host of the page.",
  security: "The encryption of the connection.",
  username: "The user name.",
  password: "The password. It cannot be read back.",
  "ShowOnceSecrets.password": "The password of the Mailbox.",
  // Card
  documentation_url: "The https URL of the agent's documentation; null if absent.",
  icon_url: "The https URL of the agent's icon; null if absent.",
  provider: "The operator of the agent; null if none is named.",
  organization: "The name of the operator.",
  capabilities: "The capabilities of the agent's A2A server.",
  streaming: "Whether the server streams responses.",
  push_notifications: "Whether the server sends push notifications.",
  extended_agent_card: "Whether the server has an extended card for authenticated clients.",
  default_input_modes: "The accepted media types. An update replaces the whole list.",
  default_output_modes: "The media types of responses. An update replaces the whole list.",
  input_modes: "The media types that this skill accepts, if they differ.",
  output_modes: "The media types of this skill's responses, if they differ.",
  interfaces: "The addresses of the agent, preferred first. Defaults to its Tunnel. An update replaces the whole list.",
  protocol_binding: "The A2A binding, such as `JSONRPC`.",
  protocol_version: "The A2A version.",
  skills: "The skills of the agent. An update replaces the whole list.",
  tags: "Keywords for search.",
  examples: "Example requests.",
  card: "The agent card in A2A 1.0 format.",
  "Card.name": "The name of the agent.",
  "Card.description": "A description of the agent in one or two sentences.",
  "Card.version": "The version of the agent, not of the protocol.",
  "CardPatch.name": "The name of the agent.",
  "CardPatch.description": "A description of the agent in one or two sentences.",
  "CardPatch.version": "The version of the agent, not of the protocol.",
  ...ofMail,
  ...ofProof,
  // Tunnel
  links: "The connected links.",
  edge: "The edge that holds the link.",
  usage: "The traffic, counted up to a few seconds ago.",
  bytes_in: "Bytes to the agent.",
  bytes_out: "Bytes from the agent.",
  requests: "HTTP requests and TCP connections.",
  settings: "The settings of the Tunnel.",
  host_header:
    "`preserve` passes Host on, `local` sets the agent's own host and port, any other value is sent unchanged.",
  tls: "`terminate` at the edge, or `passthrough` to the agent.",
  allowed_networks: "Addresses and CIDR ranges that may connect; empty for any address.",
  basic_auth: "The user name and password that the edge requires; null for none.",
  "NewVerification.token": "An identity token (JWT).",
  "NewVerification.audience": "The audience that the token must have.",
  "NewVerification.card": "An A2A card with its `signatures`.",
  "NewVerification.request": "The head of a request: method, absolute address and header fields.",
  method: "The method of the request, such as `GET`.",
  issuer: "The origin of a request's signer, the issuer of a token, or the address of a card's keys.",
  "Verification.valid": "Whether the proof stands now.",
  "Verification.agent": "The signer; null if the proof is not valid.",
  "Verification.reason": "The reason why the proof is not valid, or null.",
  "Verification.detail": "The reason in a sentence, or null.",
  callers:
    "Permitted callers of the Tunnel: `anyone`, `signed` (agents that sign requests, Web Bot Auth), or a list of origins and Handles.",
  proxy_protocol: "Whether each TCP connection starts with a PROXY protocol header (version 1).",
  // Webhooks and Events
  webhooks: "The Webhooks.",
  deliveries: "Deliveries, newest first.",
  delivery: "The queued delivery.",
  event_types: 'The Event types, or `["*"]` for all.',
  stopped_reason:
    "Why nothing is delivered: the credential that made the Webhook was revoked, has expired, or may not read any of its Events. A change of `url`, `event_types`, or `status` to active by another credential lifts this. Null if the Webhook is not stopped.",
  failing_since:
    "When the oldest of the last five attempted deliveries was queued, if all of them failed so far. Null if one of them succeeded, if there was no attempt yet, or if the Webhook is not active.",
  "MessagesChanged.changed": "The ids of the messages that this request changed.",
  more: "Whether messages are left to be changed: repeat the request.",
  signing_secret: "The secret that signs deliveries (Standard Webhooks). It is returned only once.",
  previous_valid_until: "The time until which the previous secret also signs; null if absent.",
  event_id: "The id of the delivered Event.",
  event_type: "The type of the Event.",
  webhook_id: "The id of the Webhook.",
  delivery_id: "The id of the delivery.",
  replay: "Whether the delivery was requested again.",
  next_attempt_at: "The time of the next attempt; null if absent.",
  number: "The number of the attempt, from 1.",
  duration_ms: "The duration in milliseconds.",
  status_code: "The HTTP status of the response; null if absent.",
  events: "Events, newest first.",
  type: "The type.",
  data: "The data of the Event, by type.",
  request_id: "The id of this attempt.",
  timestamp: "The time of this attempt.",
  post: "The post.",
  platform: "The platform.",
  paused: "Whether the Connector is paused. A paused Connector performs no actions.",
  connectors: "The Connectors of the Identity.",
  posts: "The posts.",
  notifications: "The notifications, newest first.",
  app_password: "An app password of the platform. It is stored encrypted or not at all.",
  instance_rules: "The rules of the server, which the account holder accepts.",
  remedy: "How to restore it.",
  account: "The name of the connected account on the platform.",
  account_id: "The id of the account on the platform.",
  service: "The server of the account.",
  connected_via: "How the account was connected.",
  uri: "The id of the post on the platform.",
  author: "The author.",
  author_id: "The id of the author on the platform.",
  author_name: "The display name of the author; null if absent.",
  at: "The time.",
  starts_at: "The start of the first hour or day.",
  ends_at: "The end of the last hour or day.",
  changed: "The changed members.",
  by: "The initiator.",
  recipients: "The recipients.",
  recipient: "The recipient.",
  count: "The count.",
  bounced_at: "The time of the bounce.",
  sent_at: "The time at which every recipient was accepted.",
  diagnostic: "The reply of the receiving server; null if absent.",
  limit: "The limit.",
  used: "The amount used.",
  quota: "The quota.",
  window: "The period that the limit covers.",
  step: "The step that failed.",
  // Vault
  secrets: "Secrets without their values.",
  versions: "The stored versions, newest first.",
  "SecretValue.value": "The value in plain text.",
  "put.value": "The value, at most 64 KiB of UTF-8 text.",
  // Health and public lookups
  components: "The components that this process depends on.",
  essential: "Whether the service is down without the component.",
  latency_ms: "The duration of the health check in milliseconds; null if absent.",
  path: "The path of the page.",
  message: "The message.",
}

/** Members of every problem. */
const ofProblems: Readonly<Record<string, string>> = {
  type: "The problem's type, a relative reference (RFC 9457 section 3.1.1).",
  title: "A short summary, the same for every occurrence.",
  status: "The HTTP status.",
  detail: "The error in this request.",
  code: "The stable code of the problem, for programs.",
  agent_hint: "`fix_call`: change the call. `wait`: the same call may succeed later. `stop`: repeating does not help.",
  instance: "The id of the request.",
  doc_url: "A page with the meaning of the problem and its remedy.",
  errors: "The invalid parts of the request.",
  path: "The location as a JSON Pointer (RFC 6901).",
  message: "The reason.",
  retry_after_seconds: "Seconds to wait before the next call.",
  scopes: "The scopes concerned.",
  widen_url: "The page on which the account holder changes the scopes of the credential.",
}

const isObject = (node: unknown): node is Json => typeof node === "object" && node !== null && !Array.isArray(node)

/** Adds missing descriptions below a schema. `owner` is the name of the schema or operation. */
const fill = (node: unknown, owner: string, words: Readonly<Record<string, string>>): void => {
  if (Array.isArray(node)) return node.forEach((one) => fill(one, owner, words))
  if (!isObject(node)) return
  for (const [name, schema] of Object.entries<Json>(isObject(node["properties"]) ? node["properties"] : {})) {
    const text = words[`${owner}.${name}`] ?? words[name]
    if (schema["description"] === undefined && text !== undefined) schema["description"] = text
  }
  for (const [key, value] of Object.entries(node)) {
    if (key !== "properties" && key !== "example" && key !== "examples") fill(value, owner, words)
    if (key === "properties") Object.values(value).forEach((one) => fill(one, owner, words))
  }
}

const problems = new Set(Object.keys(table).map(nameOf))

export const describeMembers = (document: Json): void => {
  for (const [name, schema] of Object.entries<Json>(document["components"].schemas)) {
    const problem = problems.has(name.replace(/_/g, "")) && isObject(schema["properties"]?.["agent_hint"])
    fill(schema, name, problem ? ofProblems : texts)
  }
  for (const path of Object.values<Json>(document["paths"])) {
    for (const operation of Object.values<Json>(path)) {
      const owner = String(operation["operationId"]).split(".").at(-1)!
      for (const carrier of [operation["requestBody"], ...Object.values<Json>(operation["responses"])]) {
        for (const media of Object.values<Json>(carrier?.["content"] ?? {})) fill(media["schema"], owner, texts)
      }
    }
  }
}
