/** The host names under the tunnel domain: one per agent, and the one that agents and edges dial. */
import type { AddressBook } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"

export interface Hosts {
  readonly connect: string
  /** The names that a certificate for all hosts contains. */
  readonly certified: readonly [string, ...Array<string>]
  /**
   * Returns the canonical name of the agent that a host belongs to, or undefined if it is outside the tunnel domain.
   */
  readonly nameOf: (host: string) => string | undefined
  /**
   * Returns whether links may be requested at this host. Development accepts any host, because names may not resolve
   * there.
   */
  readonly takesLinks: (host: string) => boolean
}

export const make = (book: AddressBook): Hosts => {
  const suffix = `.${book.tunnelDomain.toLowerCase()}`
  const connect = `connect${suffix}`
  return {
    connect,
    certified: [`*${suffix}`, connect],
    nameOf: (host) => (host.endsWith(suffix) ? canonical(host.slice(0, -suffix.length)) : undefined),
    takesLinks: (host) => host === connect || book.environment === "development",
  }
}
