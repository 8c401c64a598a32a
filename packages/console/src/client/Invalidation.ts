/**
 * Invalidates the queries that Events and changed resources make stale. Notifications carry no state: what the open page shows
 * is read again, everything else when it is next shown.
 */
import { signal } from "@preact/signals"
import type { Api } from "@svc/domain/Api"
import type { EventType } from "@svc/domain/events/Event"
import { allOutdated, outdatedBy, type Stale } from "./Queries.ts"

export interface Happened {
  readonly id: string
  readonly type: EventType
  readonly handle: string | null
  readonly created_at: string
}

/** A kind of resource: a group of endpoints, or what changes without a call. */
type Resource = keyof (typeof Api)["groups"] | "deliveries"

export interface Changed {
  readonly resource: Resource
  readonly handle: string | null
}

/** The most recent Event received. */
export const latest = signal<Happened | undefined>(undefined)
/** Notified of each change of the account or its sessions. */
export const accountChanged = { tell: () => {} }

const identities = "/api/identities"
const of = (part: string) => [`/api/identities/:handle/${part}`]
const messages = [...of("messages"), ...of("threads")]
const mail = [...messages, ...of("drafts"), ...of("allowed-recipients")]

/** The queries that each Event invalidates, beside the list of Events. The compiler checks that every type is listed. */
const byEvent: { readonly [T in EventType]: ReadonlyArray<string> } = {
  "identity.ready": [identities],
  "identity.failed": [identities],
  "identity.deleted": [identities],
  "email.received": messages,
  "email.agent_verified": messages,
  "email.sent": mail,
  "email.bounced": mail,
  "email.refused": mail,
  "email.recipient_blocked": mail,
  "email.approval_requested": [...mail, ...of("approvals")],
  "email.approved": [...mail, ...of("approvals")],
  "email.approval_refused": [...mail, ...of("approvals")],
  "mail.stopped": ["/api/account/mail", ...of("mail")],
  "mail.started": ["/api/account/mail", ...of("mail")],
  "card.updated": of("card"),
  "identity.sign_in_requested": of("sign-ins"),
  "identity.sign_in_approved": of("sign-ins"),
  "identity.sign_in_refused": of("sign-ins"),
  "identity.signed_in": of("sign-ins"),
  "proof.key_added": of("signing-keys"),
  "proof.key_removed": of("signing-keys"),
  "proof.key_rotated": of("signing-keys"),
  "proof.token_refused": of("proof"),
  "tunnel.connected": [identities],
  "tunnel.disconnected": [identities],
  "webhook.failed": of("webhooks"),
  "connector.connected": of("connectors"),
  "connector.stopped": of("connectors"),
  "connector.recovered": of("connectors"),
  "connector.mention": of("connectors"),
  "connector.reply": of("connectors"),
  "connector.dm": of("connectors"),
  "tunnel.transfer_blocked": ["/api/limits", ...of("tunnel")],
  "api_key.created": ["/api/keys"],
  "api_key.revoked": ["/api/keys"],
  "grant.created": ["/api/grants"],
  "grant.changed": ["/api/grants"],
  "grant.revoked": ["/api/grants"],
  "api_key.rotated": ["/api/keys"],
  "api_key.expiring": ["/api/keys"],
  "api_key.expired": ["/api/keys"],
  "limit.near": ["/api/limits"],
  "audit.gap": ["/api/audit"],
  "audit.head": ["/api/audit"],
  "account.deletion_started": ["/api/auth/session"],
}

/** The queries that each changed resource invalidates. The compiler checks that every group of endpoints is listed. */
const byResource: { readonly [R in Resource]: ReadonlyArray<string> } = {
  account: ["/api/account", "/api/auth/session"],
  agent_sign_ins: of("sign-ins"),
  api_keys: ["/api/keys"],
  audit: [],
  cards: of("card"),
  connectors: of("connectors"),
  deliveries: of("webhooks"),
  device_confirmation: ["/api/auth/device", "/api/keys"],
  device_login: [],
  events: of("webhooks"),
  exports: ["/api/exports"],
  grants: ["/api/grants"],
  handles: [],
  health: [],
  identities: [identities],
  limits: [],
  mail_settings: ["/api/account/mail", ...of("mail"), ...of("allowed-recipients"), ...of("ai-disclosure")],
  messages,
  org_mail: ["/api/account/mail", ...of("mail")],
  overview: [],
  profiles: [],
  proof: [...of("signing-keys"), ...of("proof")],
  public: [],
  sending: [...messages, ...of("drafts"), ...of("approvals")],
  session: ["/api/auth/session", "/api/auth/sessions"],
  sign_in: [],
  threads: messages,
  tunnels: of("tunnel"),
  usage: [],
  vault: ["/api/vault"],
  webhooks: of("webhooks"),
}

/** Resources that the overview does not show. */
const unseenAtHome = new Set<Resource>([
  "account",
  "cards",
  "exports",
  "grants",
  "mail_settings",
  "proof",
  "session",
  "vault",
])

/** Period in milliseconds in which notifications are collected, so that a burst causes one request per query. */
const gatherMillis = 150

const stale = new Map<string, Stale>()
let timer: ReturnType<typeof setTimeout> | undefined

const invalidate = (name: string, paths: ReadonlyArray<string>, handle: string | null) => {
  stale.set(`${name} ${handle ?? ""}`, { paths, handle })
  timer ??= setTimeout(() => {
    timer = undefined
    const all = [...stale.values()]
    stale.clear()
    void outdatedBy(all)
  }, gatherMillis)
}

/** Invalidates the queries of an Event. */
export const invalidateFor = ({ type, handle }: Happened) => {
  invalidate("events", ["/api/events", "/api/overview"], null)
  invalidate(type, byEvent[type] ?? [identities], handle)
}

export const applyEvent = (event: Happened) => {
  latest.value = event
  invalidateFor(event)
}

/** Applies changed resources; null if some may have been missed. */
export const applyChanges = (changes: ReadonlyArray<Changed> | null) => {
  if (changes === null) return void allOutdated()
  for (const { resource, handle } of changes) {
    // A newer service may name kinds that this build does not know.
    if (!unseenAtHome.has(resource)) invalidate("overview", ["/api/overview"], null)
    invalidate(resource, byResource[resource] ?? [identities], handle)
    if (resource === "account" || resource === "session") accountChanged.tell()
  }
}

export const eventTypes = Object.keys(byEvent)
