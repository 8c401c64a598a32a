/** Limits the number of public connections, in total and per client, since each costs memory. */
import type { Socket } from "node:net"
import { clientBlock, clientOf } from "./Connections.ts"

export interface Caps {
  /** Limit per address, or per /64 for IPv6. */
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
    const left = clients.get(client)! - 1
    if (left > 0) clients.set(client, left)
    else clients.delete(client)
  }

  return {
    /** Counts the connection until it closes. Returns false if a limit is reached. */
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
    /** Stops counting a connection that became the link of an agent or edge. */
    release,
    size: (): number => all,
  }
}
