/**
 * The address of a recipient: exactly one addr-spec (RFC 5322 section 3.4.1). Display names, angle brackets, lists,
 * groups, comments and quoted local parts are rejected, because a mail library could read a second recipient from them.
 * The domain may contain Unicode letters (IDNA); it is stored in A-labels, as DNS and SMTP use it.
 */

type Parsed =
  | { readonly _tag: "Address"; readonly address: string; readonly domain: string }
  | { readonly _tag: "Invalid"; readonly message: string }

const localPart = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const hostname = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/
/** Characters of a domain with Unicode letters. */
const ownLetters = /^[\p{L}\p{M}\p{N}.\u3002-]+$/u

/** Returns whether the text is a valid local part without quoting. */
export const isLocalPart = (text: string): boolean => localPart.test(text) && text.length <= 64

const invalid = (message: string): Parsed => ({ _tag: "Invalid", message })

const ascii = (domain: string): string | undefined => {
  if (/^[A-Za-z0-9.-]*$/.test(domain)) return domain.toLowerCase()
  if (!ownLetters.test(domain)) return undefined
  return URL.parse(`http://${domain}/`)?.hostname
}

export const parse = (text: string): Parsed => {
  const trimmed = text.trim()
  if (trimmed.length > 320) return invalid("The address is too long")
  const at = trimmed.indexOf("@")
  if (at < 0) return invalid("Expected one address, as in ada@example.org")
  const local = trimmed.slice(0, at)
  const written = trimmed.slice(at + 1)
  if (!isLocalPart(local) || written.includes("@")) {
    return invalid("Expected exactly one address, without a name, brackets, quotes or a list")
  }
  const domain = ascii(written)
  // A domain whose last label is numeric would be an address literal without brackets.
  if (domain === undefined || !hostname.test(domain) || /(?:^|\.)\d+$/.test(domain)) {
    return invalid("The part after the @ is not a domain")
  }
  const address = `${local}@${domain}`
  return address.length > 254 ? invalid("The address is too long") : { _tag: "Address", address, domain }
}

/** Returns the form by which recipients and Allowed Recipients are compared. */
export const sameAs = (address: string): string => address.toLowerCase()

export const domainOf = (address: string): string => address.slice(address.lastIndexOf("@") + 1).toLowerCase()
