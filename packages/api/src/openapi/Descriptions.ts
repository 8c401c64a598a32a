/**
 * What the document and the tools say of each member whose schema does not say it itself: by its name, or by
 * `<Schema>.<member>` where one name means different things. A member without a description fails a test.
 */
import { nameOf } from "@svc/domain/events/Event"
import { table } from "@svc/domain/problems/Table"
import { ofGrants } from "./GrantDescriptions.ts"
import type { Json } from "./Json.ts"
import { ofKeys } from "./KeyDescriptions.ts"
import { ofMail } from "./MailDescriptions.ts"

const texts: Readonly<Record<string, string>> = {
  // Who and which
  id: "The id of the resource.",
  handle: "The Handle, as it was registered.",
  identity: "The Handle of the Identity it is about; null or left out: the whole Org.",
  identity_id: "The id of the Identity it concerns; null where it concerns the whole Org.",
  name: "The name it was given.",
  email: "The email address.",
  address: "The email address.",
  description: "What it is for, in words; not secret.",
  url: "The address.",
  status: "Where it stands.",
  state: "Whether anyone can sign up: `open`, `invite` (with a code) or `closed`.",
  created_at: "When it was made.",
  updated_at: "When it was last changed.",
  expires_at: "When it lapses.",
  since: "Since when.",
  hour: "The beginning of the hour.",
  version: "Its version; a new one with each change.",
  next_cursor: "Pass it back unchanged as `cursor` for the next page; null on the last one.",
  detail: "The reason, in a sentence.",
  code: "The problem's code.",
  // Account
  org: "The Org: the customer as a whole.",
  session: "The console session; null for a key.",
  tos: "The Terms of Service: what is in force and what was accepted.",
  caller: "Whose credential it is.",
  language: "The language of the console and of mail: `en`, `de` or `fr`.",
  "hit.language": "The language tag of the page.",
  tos_version: "The version of the Terms that the Org accepted.",
  tos_accepted: "True: the account holder accepts the Terms. Needed at first contact.",
  tos_accepted_at: "When the Terms were accepted.",
  invite_code: "The invitation, at first contact where sign-up asks for one.",
  email_verified_at: "When a magic link proved the address; null until then.",
  current_version: "The version of the Terms that is in force.",
  accepted_version: "The version of the Terms that the Org accepted.",
  accepted_at: "When it was accepted.",
  effective_at: "When the console closes for those who accepted an earlier version; null where that is not planned.",
  gated: "Whether the console is closed until the current version is accepted. The API is never closed by it.",
  kind: "Which kind it is.",
  key_id: "The id of the key; null for a session.",
  key_name: "The name of the key; null for a session.",
  scope: "`org` for an Admin Key, `identity` for an Identity Key.",
  ...ofKeys,
  ...ofGrants,
  token_prefix: "The first characters of the key, to tell it from others.",
  user_agent: "What opened it, as it called itself; null where it did not say.",
  current: "Whether it is the session that asks.",
  sessions: "The sessions, newest first.",
  last_used_at: "When it was last used, to within a minute; null for never.",
  revoked_at: "When it was revoked; null while it works.",
  key: "The key itself: shown in this answer and in no other.",
  api_key: "The key, without its secret.",
  api_keys: "Keys that are not revoked, newest first.",
  session_token: "The session's token: shown in this answer and in no other.",
  token: "The token of the link.",
  dev_magic_link:
    "The link itself, in Development only, and to no page of a site that may be somebody else's; null otherwise.",
  confirm: "The account's own email address, as a confirmation.",
  requested_at: "When it was asked for.",
  identities: "The Identities.",
  "AccountDeletion.identities": "How many Identities are being torn down.",
  exports: "Exports, newest first.",
  "Export.identity": "The Handle of the Identity it is about; null for the whole Org.",
  "Export.size": "Bytes of the archive's members before compression; null until it is ready.",
  download_url: "Where the archive is; null until it is ready.",
  device_code: "The code that the terminal polls with. It is secret.",
  user_code: "The code that the account holder confirms.",
  verification_uri: "Where the account holder types the code.",
  verification_uri_complete: "The same, with the code in it.",
  interval_seconds: "Seconds to wait between polls.",
  client: "What asks, as its user knows it.",
  "Tunnel.client": "What the agent says it is.",
  // Identity
  available: "Whether the name can be claimed.",
  profile_url: "The public page of the Identity.",
  card_url: "Where other agents read its A2A card.",
  tunnel: "The public address of the agent's local port.",
  hostname: "The public hostname.",
  port: "The TCP port; null until it is allotted.",
  connected: "Whether an agent holds the tunnel now.",
  saga: "The newest provisioning or teardown, step by step.",
  steps: "The steps, in their order.",
  attempts: "How often it was tried.",
  "Delivery.attempts": "Each request that was sent, oldest first.",
  error: "What went wrong, in a few words; null where nothing did.",
  started_at: "When it began.",
  finished_at: "When it ended; null before that.",
  onboarding: "Time from sign-up to ready, on the Org's first ready Identity; null on others.",
  signed_up_at: "When the Org signed up.",
  ready_at: "When the Identity became ready.",
  seconds: "Seconds between the two.",
  identity_key: "The Identity Key itself, shown until it is acknowledged or its time is over.",
  imap: "How a mail reader reaches the Mailbox, shown as long as the key is.",
  smtp: "How a mail program sends, with the same user and password, under the same rules as `messages/send`.",
  host: "The host.",
  "hit.host": "The host of the page.",
  security: "How the connection is encrypted.",
  username: "The user name.",
  password: "The password. It is never read back.",
  "ShowOnceSecrets.password": "The Mailbox's password.",
  // Card
  documentation_url: "An https URL of the agent's documentation; null for none.",
  icon_url: "An https URL of the agent's icon; null for none.",
  provider: "Who operates the agent; null for nobody named.",
  organization: "The operator's name.",
  capabilities: "What the agent's A2A server can do.",
  streaming: "Whether it streams answers.",
  push_notifications: "Whether it sends push notifications.",
  extended_agent_card: "Whether it has a fuller card for those who authenticate.",
  default_input_modes: "Media types it takes; the list is replaced whole.",
  default_output_modes: "Media types it answers with; the list is replaced whole.",
  input_modes: "Media types this skill takes, where they differ.",
  output_modes: "Media types this skill answers with, where they differ.",
  interfaces: "Where the agent is reached, preferred first; its own Tunnel unless others are set. Replaced whole.",
  protocol_binding: "The A2A binding, `JSONRPC` for one.",
  protocol_version: "The version of A2A.",
  skills: "What the agent can do; the list is replaced whole.",
  tags: "Words to find it by.",
  examples: "Requests that it answers.",
  card: "The agent card in A2A 1.0 format.",
  "Card.name": "The agent's name.",
  "Card.description": "What the agent does, in one or two sentences.",
  "Card.version": "The agent's own version, not the protocol's.",
  "CardPatch.name": "The agent's name.",
  "CardPatch.description": "What the agent does, in one or two sentences.",
  "CardPatch.version": "The agent's own version, not the protocol's.",
  ...ofMail,
  // Tunnel
  links: "The links that agents hold now.",
  edge: "The edge that holds the link.",
  usage: "What went through it, as edges counted up to some seconds ago.",
  bytes_in: "Bytes to the agent.",
  bytes_out: "Bytes from the agent.",
  requests: "Requests and TCP connections.",
  settings: "How it is served.",
  host_header:
    "`preserve` passes Host on, `local` names the agent's own host and port, anything else is sent as it is.",
  tls: "`terminate`, or `passthrough`: TLS for the hostname reaches the agent unopened.",
  allowed_networks: "Addresses and CIDR ranges that may come; empty for everyone.",
  basic_auth: "User name and password that clients show at the edge; null for none.",
  proxy_protocol: "A PROXY protocol header (version 1) ahead of each connection of the TCP port.",
  // Webhooks and Events
  webhooks: "The Webhooks.",
  deliveries: "Deliveries, newest first.",
  delivery: "The delivery that was queued.",
  event_types: 'The types it wants, or `["*"]` for all that concern the Identity.',
  signing_secret: "The secret that signs deliveries (Standard Webhooks): shown in this answer and in no other.",
  previous_valid_until: "Until when the former secret signs too; null where there was none.",
  event_id: "The Event that is delivered.",
  event_type: "Its type.",
  webhook_id: "The Webhook that it goes to.",
  delivery_id: "The delivery it was.",
  replay: "Whether it was asked for again.",
  next_attempt_at: "When it is tried again; null where it is not.",
  number: "Which attempt it was, from 1.",
  duration_ms: "How long it took, in milliseconds.",
  status_code: "The HTTP status that came; null where none did.",
  events: "Events, newest first.",
  type: "What happened.",
  data: "What there is to say of it, by type.",
  request_id: "The id of this attempt.",
  timestamp: "When this attempt was made.",
  post: "The post.",
  platform: "The platform.",
  paused: "Whether it is paused; true does nothing until it is false again.",
  connectors: "The Connectors of the Identity.",
  posts: "The posts.",
  notifications: "The notifications, newest first.",
  app_password: "A password of the platform for this one application. It is kept sealed, or not at all.",
  instance_rules: "Rules of the server, which who has an account there accepts.",
  remedy: "What has it back.",
  account: "The connected account's name on the platform.",
  account_id: "The account's own id on the platform.",
  service: "The server that the account is on.",
  connected_via: "How it was connected.",
  uri: "The post's own id on the platform.",
  author: "Who wrote it.",
  author_id: "The author's own id on the platform.",
  author_name: "The author's name for display; null for none.",
  at: "When.",
  changed: "The members that have other values.",
  by: "Who did it.",
  recipients: "The recipients.",
  recipient: "The recipient.",
  count: "How many.",
  bounced_at: "When it came back.",
  sent_at: "When it was handed over for every recipient.",
  diagnostic: "What the other server said; null where it said nothing.",
  limit: "The limit.",
  used: "How much is used.",
  quota: "How much there is.",
  window: "The time it is counted over.",
  step: "The step that failed.",
  // Vault
  secrets: "Secrets without their values.",
  versions: "The versions that are kept, newest first.",
  "SecretValue.value": "The value in plain text.",
  "put.value": "The value: text of at most 64 KiB of UTF-8.",
  // Health and the public
  components: "The parts this process stands on.",
  essential: "Whether the service is down without it.",
  latency_ms: "How long the look at it took, in milliseconds; null where there was none.",
  path: "The path of the page.",
  message: "The message.",
}

/** Members that every problem has. */
const ofProblems: Readonly<Record<string, string>> = {
  type: "The problem's type, a relative reference (RFC 9457 section 3.1.1).",
  title: "The problem in a few words, the same each time.",
  status: "The HTTP status.",
  detail: "What was wrong in this case.",
  code: "What to branch on.",
  agent_hint: "`fix_call`: change the call. `wait`: the same call may succeed later. `stop`: repeating does not help.",
  instance: "The id of the request.",
  doc_url: "A page that says what the problem means and what to do.",
  errors: "Each place in the request that was wrong.",
  path: "Where, as a JSON Pointer (RFC 6901).",
  message: "What is wrong there.",
  retry_after_seconds: "Seconds to wait before the next call.",
  scopes: "The scopes that it is about.",
  widen_url: "Where the account holder changes what the credential may do.",
}

const isObject = (node: unknown): node is Json => typeof node === "object" && node !== null && !Array.isArray(node)

/** Puts in what is missing below a schema; `owner` is the name of the schema or the operation it belongs to. */
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
