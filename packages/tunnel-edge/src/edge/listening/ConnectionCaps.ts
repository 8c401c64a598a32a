/** How many public connections may be open at a time, of one client and in all: each costs memory, and one client is not to have it all. */
import type { Socket } from "node:net"
import { clientBlock, clientOf } from "./Connections.ts"

export interface Caps {
  /** Of one address; of IPv6, of its /64. */
  readonly perClient: number
  readonly inAll: number
}

export const make = ({ perClient, inAll }: Caps) => {
  const clients = new Map<string, number>()
  const counted = new WeakMap<Socket, string>()
  let all = 0

  const release = (socket: Socket) => {
    const client = counted.get(socket)
    if (client === undefined) return
    counted.delete(socket)
    all--
    const left = (clients.get(client) ?? 1) - 1
    if (left > 0) clients.set(client, left)
    else clients.delete(client)
  }

  return {
    /** Counts the connection until it closes; false: there are as many as may be. */
    admit: (socket: Socket): boolean => {
      const client = clientBlock(clientOf(socket))
      const present = clients.get(client) ?? 0
      if (all >= inAll || present >= perClient) return false
      all++
      clients.set(client, present + 1)
      counted.set(socket, client)
      socket.once("close", () => release(socket))
      return true
    },
    /** It became the link of an agent or of an edge, which is not the public's. */
    release,
    size: (): number => all,
  }
}

export type ConnectionCaps = ReturnType<typeof make>
