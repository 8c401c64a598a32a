/**
 * Limits concurrent sessions: in total, per client and per Mailbox. A client is an IPv4 address or an IPv6 /64 network.
 */
import { customerOf } from "@svc/cluster/net/ClientNetwork"

export interface Limits {
  readonly inAll: number
  readonly perClient: number
  readonly perMailbox: number
}

export const make = (limits: Limits) => {
  const counts = new Map<string, number>()
  let total = 0
  const enter = (name: string, most: number): boolean => {
    const count = counts.get(name) ?? 0
    if (count >= most) return false
    counts.set(name, count + 1)
    return true
  }
  const leave = (name: string) => {
    const count = (counts.get(name) ?? 0) - 1
    if (count > 0) counts.set(name, count)
    else counts.delete(name)
  }
  const clientOf = (address: string) => `client ${customerOf(address)}`
  return {
    connect: (address: string): boolean => {
      if (total >= limits.inAll || !enter(clientOf(address), limits.perClient)) return false
      total++
      return true
    },
    disconnect: (address: string): void => {
      total--
      leave(clientOf(address))
    },
    open: (identityId: string): boolean => enter(`mailbox ${identityId}`, limits.perMailbox),
    close: (identityId: string): void => leave(`mailbox ${identityId}`),
    /** Returns whether no client and no Mailbox is counted. */
    isEmpty: (): boolean => counts.size === 0,
  }
}

export type SessionLimits = ReturnType<typeof make>
