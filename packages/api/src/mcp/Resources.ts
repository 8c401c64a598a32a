/**
 * The resources of the MCP server: `svc://identities/{handle}`, its messages and its card. Reading a resource is the call of the tool that
 * returns the same, so that permissions, limits and marks of untrusted content are the same.
 */

import type { ScopeName } from "@svc/domain/account/Scope"
import { canonical } from "@svc/domain/handles/Handle"

interface Template {
  readonly uriTemplate: string
  readonly name: string
  readonly description: string
  readonly tool: string
  /** The scope of the tool. */
  readonly scope: ScopeName
  /** Groups of endpoints whose calls change the resource. */
  readonly groups: ReadonlyArray<string>
  /** Types of Events that tell of a change. */
  readonly events: RegExp
}

const ofMail = {
  scope: "mail:read",
  groups: ["messages", "threads", "sending"],
  events: /^email\./,
} as const

const mimeType = "application/json"

const resources: ReadonlyArray<Template> = [
  {
    uriTemplate: "svc://identities/{handle}",
    name: "Identity",
    description: "An Identity with its status and addresses.",
    tool: "svc_identity_get",
    scope: "identity:read",
    groups: ["identities", "mail_settings", "org_mail", "tunnels"],
    events: /^(?:identity|mail|tunnel)\./,
  },
  {
    uriTemplate: "svc://identities/{handle}/messages",
    name: "Messages",
    description: "The newest messages of a Mailbox.",
    tool: "svc_email_list",
    ...ofMail,
  },
  {
    uriTemplate: "svc://identities/{handle}/messages/{id}",
    name: "Message",
    description: "A message with its text.",
    tool: "svc_email_get",
    ...ofMail,
  },
  {
    uriTemplate: "svc://identities/{handle}/card",
    name: "Card",
    description: "The A2A Card of an Identity.",
    tool: "svc_card_get",
    scope: "card:read",
    groups: ["cards"],
    events: /^card\./,
  },
]

export const templates = resources.map(({ uriTemplate, name, description }) => ({
  uriTemplate,
  name,
  description,
  mimeType,
}))

const patterns = resources.map(({ uriTemplate, ...template }) => ({
  ...template,
  pattern: new RegExp(`^${uriTemplate.replace(/\{(\w+)\}/g, "(?<$1>[A-Za-z0-9._@-]{1,200})")}$`),
}))

/** The tool call that reads a resource. */
export interface Reader {
  readonly name: string
  readonly input: Record<string, string>
}

/** Returns the tool call that reads a resource; undefined for an unknown address. */
export const readerOf = (uri: string): Reader | undefined => {
  for (const { pattern, tool } of patterns) {
    const found = pattern.exec(uri)
    if (found !== null) return { name: tool, input: { ...found.groups } }
  }
  return undefined
}

/** A resource that a client subscribed to. */
export interface Subscribed {
  readonly uri: string
  /** The canonical Handle of its Identity. */
  readonly handle: string
  readonly scope: ScopeName
  readonly groups: ReadonlyArray<string>
  /** Returns whether an Event of the Identity tells of a change. */
  readonly isChangedBy: (type: string, data: Readonly<Record<string, unknown>>) => boolean
}

/** Returns the subscription to a resource; undefined for an unknown address. */
export const subscribedTo = (uri: string): Subscribed | undefined => {
  for (const { pattern, scope, groups, events } of patterns) {
    const { handle, id } = pattern.exec(uri)?.groups ?? {}
    if (handle === undefined) continue
    return {
      uri,
      handle: canonical(handle),
      scope,
      groups,
      isChangedBy: (type, data) => events.test(type) && (id === undefined || data["email_id"] === id),
    }
  }
  return undefined
}

/** Returns the resources of Identities, without single messages. */
export const listOf = (handles: ReadonlyArray<string>) =>
  handles.flatMap((handle) =>
    templates
      .filter(({ uriTemplate }) => !uriTemplate.includes("{id}"))
      .map(({ uriTemplate, name, description }) => ({
        uri: uriTemplate.replace("{handle}", handle),
        name: `@${handle}: ${name}`,
        description,
        mimeType,
      })),
  )

/** Returns the result of reading a resource. */
export const contentsOf = (uri: string, text: string) => ({ contents: [{ uri, mimeType, text }] })
