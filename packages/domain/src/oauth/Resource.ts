/** What an access token is for: the MCP endpoint and nothing else (RFC 8707, RFC 9728). */
import type { AddressBook } from "../Addresses.ts"

export const resourceOf = ({ baseUrl }: AddressBook): string => `${baseUrl}/api/mcp`

/** Where the resource says who authorizes for it (RFC 9728 section 3.1). */
export const metadataOf = ({ baseUrl }: AddressBook): string =>
  `${baseUrl}/.well-known/oauth-protected-resource/api/mcp`

/** Whether clients mean ours; a trailing slash and the case of the host are forgiven. */
export const isOurs = (book: AddressBook, text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.hash !== "" || url.search !== "" || url.username !== "") return false
  const asked = url.href.replace(/\/$/, "")
  return [book.baseUrl, resourceOf(book)].some((one) => new URL(one).href.replace(/\/$/, "") === asked)
}
