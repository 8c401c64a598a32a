/** The resource of access tokens: the MCP endpoint and nothing else (RFC 8707, RFC 9728). */
import type { AddressBook } from "../Addresses.ts"

export const resourceOf = ({ baseUrl }: AddressBook): string => `${baseUrl}/api/mcp`

/** Returns the address of the protected resource metadata (RFC 9728 section 3.1). */
export const metadataOf = ({ baseUrl }: AddressBook): string =>
  `${baseUrl}/.well-known/oauth-protected-resource/api/mcp`

/** Returns whether a client means this resource. A trailing slash and the case of the host are ignored. */
export const isOurs = (book: AddressBook, text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.hash !== "" || url.search !== "" || url.username !== "") return false
  const requested = url.href.replace(/\/$/, "")
  return [book.baseUrl, resourceOf(book)].some((one) => new URL(one).href.replace(/\/$/, "") === requested)
}
