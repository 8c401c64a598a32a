/** Parses addresses of the service: `Research-Bot+Invoices@…` is the Mailbox `researchbot` with the tag `invoices`. */
import { canonical } from "@svc/domain/handles/Handle"

interface LocalPart {
  /** The canonical Handle. */
  readonly mailbox: string
  /** The subaddress tag (RFC 5233): the text after the first `+`, in lower case. */
  readonly tag: string | null
}

/** Returns undefined for a local part that no Handle can have. */
export const parse = (localPart: string): LocalPart | undefined => {
  const text = localPart.toLowerCase()
  const plus = text.indexOf("+")
  const name = plus < 0 ? text : text.slice(0, plus)
  if (!/^[a-z0-9-]{1,63}$/.test(name)) return undefined
  return { mailbox: canonical(name), tag: plus < 0 ? null : text.slice(plus + 1) }
}

/** The addresses of one Mailbox that a transaction names, without duplicates. */
export interface Recipient {
  /** The canonical Handle. */
  readonly mailbox: string
  /** The addresses as given by the sender, one per tag. */
  readonly addresses: ReadonlyArray<{ readonly address: string; readonly tag: string | null }>
}

/**
 * Groups addresses of the service by Mailbox, so that a message is stored once in each. The last of several spellings
 * of the same Mailbox and tag counts. Addresses that no Mailbox can have are left out.
 */
export const byMailbox = (addresses: ReadonlyArray<string>): ReadonlyArray<Recipient> => {
  const found = new Map<string, Map<string | null, string>>()
  for (const address of addresses) {
    const parsed = parse(split(address).local)
    if (parsed === undefined) continue
    const tags = found.get(parsed.mailbox) ?? new Map<string | null, string>()
    found.set(parsed.mailbox, tags.set(parsed.tag, address))
  }
  return [...found].map(([mailbox, tags]) => ({
    mailbox,
    addresses: [...tags].map(([tag, address]) => ({ address, tag })),
  }))
}

/** Splits an address at the last `@`. The domain is in lower case, and empty without an `@` (`postmaster`). */
export const split = (address: string): { readonly local: string; readonly domain: string } => {
  const at = address.lastIndexOf("@")
  if (at < 0) return { local: address, domain: "" }
  return { local: address.slice(0, at), domain: address.slice(at + 1).toLowerCase() }
}
