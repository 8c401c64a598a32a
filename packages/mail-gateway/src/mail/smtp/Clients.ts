/**
 * Limits for each client, so that no sender uses up the capacity: concurrent connections, connections per minute, and
 * unknown recipients. A client is an IPv4 address or an IPv6 /64.
 */
import { customerOf } from "@svc/cluster/net/ClientNetwork"
import { Timing } from "../../Timing.ts"

export const limits = {
  atOnce: 100,
  perMinute: 1_200,
  inAll: 2_000,
  /** Unknown recipients that are answered without delay. */
  unknownAtOnce: 3,
  /** Unknown recipients of a session, and of a client, after which the client is disconnected. */
  unknownInSession: 20,
  unknownByClient: 100,
}

interface Client {
  open: number
  opened: number
  since: number
  unknown: number
  unknownSince: number
}

export const make = () => {
  const clients = new Map<string, Client>()
  let total = 0

  const isRecent = (client: Client, now: number) =>
    now - client.since <= Timing.smtpClientWindowMillis ||
    (client.unknown > 0 && now - client.unknownSince <= Timing.smtpUnknownWindowMillis)

  /** Removes clients that are neither connected nor recent. */
  const prune = (now: number) => {
    for (const [name, client] of clients) if (client.open === 0 && !isRecent(client, now)) clients.delete(name)
  }

  const clientOf = (address: string, now: number): Client => {
    const name = customerOf(address)
    const known = clients.get(name)
    if (known !== undefined) return known
    if (clients.size > 10_000) prune(now)
    const client = { open: 0, opened: 0, since: now, unknown: 0, unknownSince: now }
    clients.set(name, client)
    return client
  }

  return {
    /** Returns whether the client may connect. An admitted client counts until {@link leave}. */
    enter: (address: string, now: number): boolean => {
      const client = clientOf(address, now)
      if (now - client.since > Timing.smtpClientWindowMillis) {
        client.opened = 0
        client.since = now
      }
      client.opened++
      if (total >= limits.inAll || client.open >= limits.atOnce || client.opened > limits.perMinute) return false
      client.open++
      total++
      return true
    },
    leave: (address: string): void => {
      const client = clients.get(customerOf(address))
      if (client !== undefined) client.open--
      total--
    },
    /** Counts an unknown recipient, and returns how many the client named within the window. */
    unknown: (address: string, now: number): number => {
      const client = clientOf(address, now)
      if (now - client.unknownSince > Timing.smtpUnknownWindowMillis) {
        client.unknown = 0
        client.unknownSince = now
      }
      return ++client.unknown
    },
  }
}

export type Clients = ReturnType<typeof make>
