/** The names under the tunnel's domain: those of agents, and the one that agents and edges dial. */
import type { AddressBook } from "@svc/domain/Addresses"
import { canonical } from "@svc/domain/handles/Handle"

export interface Hosts {
  readonly connect: string
  /** What a certificate for all of them names. */
  readonly certified: readonly [string, ...Array<string>]
  /** The canonical name of the agent that this host is of; undefined where it is none of ours. */
  readonly nameOf: (host: string) => string | undefined
  /** Whether links may be asked for at this host: in Development at any, since names may not resolve there. */
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
