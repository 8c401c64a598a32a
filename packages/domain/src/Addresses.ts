/**
 * The public addresses of this deployment. Only this module knows how the address, the profile and the hostname of a
 * Handle are formed: `<handle>@{mail_domain}`, `{profile_base}/@<handle>` and `<handle>.{tunnel_domain}` (interface.md
 * "What the service does", point 3).
 */
import { Context } from "effect"

export type Environment = "development" | "production"

export interface AddressBook {
  readonly environment: Environment
  /** Base URL of the API, without a trailing slash. */
  readonly baseUrl: string
  /** Base URL of the public profiles, without a trailing slash. */
  readonly profileBase: string
  readonly mailDomain: string
  readonly tunnelDomain: string
  /** Scheme and port of a tunnel hostname's origin; the port is undefined if it is the scheme's default. */
  readonly tunnelScheme: "http" | "https"
  readonly tunnelPort: number | undefined
  /** The origins of other web applications whose pages may call the MCP server; `*` stands for all. */
  readonly mcpOrigins: ReadonlyArray<string>
  /** The servers that mail programs use for reading and for sending. */
  readonly imap: MailServer
  readonly submission: MailServer
}

export interface MailServer {
  readonly host: string
  readonly port: number
  readonly security: "tls" | "starttls" | "none"
}

export class Addresses extends Context.Service<Addresses, AddressBook>()("@svc/domain/Addresses") {}

export const email = (book: AddressBook, handle: string) => `${handle}@${book.mailDomain}`
export const profileUrl = (book: AddressBook, handle: string) => `${book.profileBase}/@${handle}`
export const cardUrl = (book: AddressBook, handle: string) => `${profileUrl(book, handle)}/agent-card.json`
/** Returns the DID of an Identity (did:web): its profile's address, with `:` instead of `/`. */
export const did = (book: AddressBook, handle: string) => {
  const { host, pathname } = new URL(book.profileBase)
  const path = pathname.split("/").filter((segment) => segment !== "")
  return ["did:web", encodeURIComponent(host), ...path, `%40${handle}`].join(":")
}
export const didUrl = (book: AddressBook, handle: string) => `${profileUrl(book, handle)}/did.json`
export const jwksUrl = (book: AddressBook, handle: string) => `${profileUrl(book, handle)}/jwks.json`
export const tunnelHostname = (book: AddressBook, handle: string) => `${handle}.${book.tunnelDomain}`
export const tunnelUrl = (book: AddressBook, handle: string) =>
  `${book.tunnelScheme}://${tunnelHostname(book, handle)}${book.tunnelPort === undefined ? "" : `:${book.tunnelPort}`}`
/** Returns the DID of an Identity at its Tunnel's address. */
export const tunnelDid = (book: AddressBook, handle: string) =>
  `did:web:${encodeURIComponent(new URL(tunnelUrl(book, handle)).host)}`
/** Returns the OAuth redirect URI that is registered with platforms. */
export const callbackUrl = (book: AddressBook) => `${book.baseUrl}/connectors/callback`
/** Returns the console page that shows and changes the rights of a key or grant. */
export const keyUrl = (book: Pick<AddressBook, "baseUrl">, id: string) => `${book.baseUrl}/console/keys/${id}`
export const problemUrl = (book: Pick<AddressBook, "baseUrl">, code: string) => `${book.baseUrl}/problems/${code}`
