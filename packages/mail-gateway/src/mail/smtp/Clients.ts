/** How many connections a client address may have, at once and by the minute, so that one sender leaves room for others. */
import { Timing } from "../../Timing.ts"

export const limits = { atOnce: 100, perMinute: 1_200, inAll: 2_000 }

interface Client {
  open: number
  opened: number
  since: number
}

export const make = () => {
  const clients = new Map<string, Client>()
  let total = 0

  /** Forgets clients that are neither connected nor recent. */
  const prune = (now: number) => {
    for (const [address, client] of clients) {
      if (client.open === 0 && now - client.since > Timing.smtpClientWindowMillis) clients.delete(address)
    }
  }

  return {
    /** Whether the client may connect; if so it counts until {@link leave}. */
    enter: (address: string, now: number): boolean => {
      if (clients.size > 10_000) prune(now)
      const client = clients.get(address) ?? { open: 0, opened: 0, since: now }
      if (now - client.since > Timing.smtpClientWindowMillis) {
        client.opened = 0
        client.since = now
      }
      client.opened++
      clients.set(address, client)
      if (total >= limits.inAll || client.open >= limits.atOnce || client.opened > limits.perMinute) return false
      client.open++
      total++
      return true
    },
    leave: (address: string): void => {
      const client = clients.get(address)
      if (client !== undefined) client.open--
      total--
    },
  }
}
