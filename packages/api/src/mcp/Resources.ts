/**
 * The resources of the MCP server: `svc://identities/{handle}`, its messages and its card. Reading a resource is the call of the tool that
 * returns the same, so that permissions, limits and marks of untrusted content are the same.
 */

interface Template {
  readonly uriTemplate: string
  readonly name: string
  readonly description: string
  readonly tool: string
}

const mimeType = "application/json"

const resources: ReadonlyArray<Template> = [
  {
    uriTemplate: "svc://identities/{handle}",
    name: "Identity",
    description: "An Identity with its status and addresses.",
    tool: "svc_identity_get",
  },
  {
    uriTemplate: "svc://identities/{handle}/messages",
    name: "Messages",
    description: "The newest messages of a Mailbox.",
    tool: "svc_email_list",
  },
  {
    uriTemplate: "svc://identities/{handle}/messages/{id}",
    name: "Message",
    description: "A message with its text.",
    tool: "svc_email_get",
  },
  {
    uriTemplate: "svc://identities/{handle}/card",
    name: "Card",
    description: "The A2A Card of an Identity.",
    tool: "svc_card_get",
  },
]

export const templates = resources.map(({ uriTemplate, name, description }) => ({
  uriTemplate,
  name,
  description,
  mimeType,
}))

const patterns = resources.map(({ tool, uriTemplate }) => ({
  tool,
  pattern: new RegExp(`^${uriTemplate.replace(/\{(\w+)\}/g, "(?<$1>[A-Za-z0-9._@-]{1,200})")}$`),
}))

/** Returns the tool call that reads a resource; undefined for an unknown address. */
export const readerOf = (
  uri: string,
): { readonly name: string; readonly input: Record<string, string> } | undefined => {
  for (const { pattern, tool } of patterns) {
    const found = pattern.exec(uri)
    if (found !== null) return { name: tool, input: { ...found.groups } }
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
