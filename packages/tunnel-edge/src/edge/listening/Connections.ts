/** The public connections of this edge, and how long each may go on once the edge drains. */
import { sourceOf } from "@svc/cluster/net/ProxiedSocket"
import { isIPv6, type Socket } from "node:net"
import { Timing } from "../Timing.ts"

/** The address of whoever is at the other end, behind a balancer that says so. */
export const clientOf = (socket: Socket): string =>
  (sourceOf(socket)?.address ?? socket.remoteAddress)?.replace(/^::ffff:/, "") ?? "unknown"

/** Whom limits are counted for: an address, of IPv6 its /64, which one customer has to itself. */
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
    /** It became a WebSocket, or another protocol. */
    upgraded: (socket: Socket): void => {
      const one = known.get(socket)
      if (one !== undefined) one.lasting = true
    },
    /** A link of an agent, or of another edge. */
    forget: (socket: Socket): void => void known.delete(socket),
    size: (): number => known.size,
    /** Ends those whose time is over, `elapsed` milliseconds into the drain. */
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
