/** DIDs of the method `did:web`: where their documents are, and which of them belong to Identities of this service. */
import { type AddressBook, did, tunnelDid } from "../Addresses.ts"

const didAtMost = 512
const form = /^did:web:([A-Za-z0-9.-]+)(?:%3[Aa](\d{1,5}))?((?::[A-Za-z0-9._%-]+)*)$/

/** Names of the local machine, where a development deployment has no certificate. */
const local = /^(?:localhost|127(?:\.\d+){3}|.+\.localhost)$/i

const segmentOf = (encoded: string): string | undefined => {
  try {
    const segment = decodeURIComponent(encoded)
    return /^(?:\.{0,2}|.*[/\\?#%].*)$/s.test(segment) ? undefined : segment
  } catch {
    return undefined
  }
}

/** Returns the address of the DID's document (did:web section 3.2), or undefined if the text is not such a DID. */
export const documentUrl = ({ environment }: Pick<AddressBook, "environment">, text: string): string | undefined => {
  const [, host, port, path] = text.length > didAtMost ? [] : (form.exec(text) ?? [])
  if (host === undefined) return undefined
  const segments = (path ?? "").split(":").slice(1).map(segmentOf)
  if (segments.includes(undefined)) return undefined
  const scheme = environment === "development" && local.test(host) ? "http" : "https"
  const folder = segments.length === 0 ? ".well-known" : segments.join("/")
  return URL.parse(`${scheme}://${host}${port === undefined ? "" : `:${port}`}/${folder}/did.json`)?.href
}

/** Returns the Handle in a DID of this service, at the profile or at the Tunnel; undefined for other DIDs. */
export const handleOf = (book: AddressBook, text: string): string | undefined => {
  const handle = /^did:web:.*:%40([A-Za-z0-9-]+)$/.exec(text)?.[1] ?? /^did:web:([A-Za-z0-9-]+)\./.exec(text)?.[1]
  return handle !== undefined && (did(book, handle) === text || tunnelDid(book, handle) === text) ? handle : undefined
}
