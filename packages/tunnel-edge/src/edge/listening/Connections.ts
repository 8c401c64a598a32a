/** The public connections of this edge, and how long each may continue while the edge drains. */
import { sourceOf } from "@svc/cluster/net/ProxiedSocket"
import { isIPv6, type Socket } from "node:net"
import { Timing } from "../Timing.ts"

/** Returns the address of the client, as reported by a load balancer if there is one. */
export const clientOf = (socket: Socket): string =>
  (sourceOf(socket)?.address ?? socket.remoteAddress)?.replace(/^::ffff:/, "") ?? "unknown"

/**
 * Returns the block that per-client limits apply to: the address, or its /64 for IPv6, which belongs to one customer.
 */
export const clientBlock = (address: string): string => {
  if (!isIPv6(address)) return address
  const [before, after] = address.replace(/%.*$/, "").split("::")
  const head = before === "" ? [] : before!.split(":")
  const tail = after === undefined || after === "" ? [] : after.split(":")
  const zeros = after === undefined ? 0 : 8 - head.length - tail.length
  return [...head, ...Array.from({ length: zeros }, () => "0"), ...tail].slice(0, 4).join(":")
}

interface Known {
  lasting: boolean
  moved: number
  movedAt: number
  ending: boolean
}

export const make = () => {
  const known = new Map<Socket, Known>()
  const end = (socket: Socket, one: Known) => {
    if (one.ending) return
    one.ending = true
    socket.destroySoon()
  }

  return {
    add: (socket: Socket, lasting: boolean): void => {
      known.set(socket, { lasting, moved: 0, movedAt: performance.now(), ending: false })
      socket.once("close", () => known.delete(socket))
    },
    /** Marks a connection that became a WebSocket or another protocol as long-lived. */
    upgraded: (socket: Socket): void => {
      const one = known.get(socket)
      if (one !== undefined) one.lasting = true
    },
    /** Stops tracking a connection that became the link of an agent or edge. */
    forget: (socket: Socket): void => void known.delete(socket),
    size: (): number => known.size,
    /** Closes connections whose drain time is over, `elapsed` milliseconds after the drain started. */
    drain: (elapsed: number): void => {
      const now = performance.now()
      for (const [socket, one] of known) {
        const moved = socket.bytesRead + socket.bytesWritten
        if (moved !== one.moved) Object.assign(one, { moved, movedAt: now })
        if (!one.lasting && (elapsed >= Timing.drainRequestMillis || now - one.movedAt >= Timing.drainIdleMillis))
          end(socket, one)
      }
    },
    close: (): void => known.forEach((one, socket) => end(socket, one)),
  }
}

export type Connections = ReturnType<typeof make>
