/**
 * The public addresses of this deployment and what is derived from a Handle: one place that knows how
 * `<handle>@{mail_domain}`, `{profile_base}/@<handle>` and `<handle>.{tunnel_domain}` are spelled
 * (interface.md "What the service does", point 3).
 */
import { Context } from "effect"

export type Environment = "development" | "production"

export interface AddressBook {
  readonly environment: Environment
  /** API base address without a trailing slash. */
  readonly baseUrl: string
  /** Public profile site without a trailing slash. */
  readonly profileBase: string
  readonly mailDomain: string
  readonly tunnelDomain: string
  /** Origin of a tunnel hostname: scheme and, where it is not the scheme's default, the port. */
  readonly tunnelScheme: "http" | "https"
  readonly tunnelPort: number | undefined
  /** How a mail program reaches the Mailbox, and what it sends by. */
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
export const tunnelHostname = (book: AddressBook, handle: string) => `${handle}.${book.tunnelDomain}`
export const tunnelUrl = (book: AddressBook, handle: string) =>
  `${book.tunnelScheme}://${tunnelHostname(book, handle)}${book.tunnelPort === undefined ? "" : `:${book.tunnelPort}`}`
/** Where platforms send a browser back to, after someone has let them connect an account. */
export const callbackUrl = (book: AddressBook) => `${book.baseUrl}/connectors/callback`
/** Where the account holder sees what a key or a grant may do, and changes it. */
export const keyUrl = (book: Pick<AddressBook, "baseUrl">, id: string) => `${book.baseUrl}/console/keys/${id}`
export const problemUrl = (book: Pick<AddressBook, "baseUrl">, code: string) => `${book.baseUrl}/problems/${code}`
