/** The allocated TCP ports: one listens while an agent of its name is attached here; without one, connections are refused. */
import { createServer, type Server } from "node:net"
import { couple } from "../protocol/Couple.ts"
import { kind } from "../protocol/Manifest.ts"
import type { Registry } from "./Registry.ts"

const keepAliveMillis = 60_000
const idleMillis = 3_600_000

export const make = (host: string, registry: Registry) => {
  const listeners = new Map<string, Server>()

  const close = (name: string) => {
    listeners.get(name)?.close()
    listeners.delete(name)
  }

  return {
    open: (name: string, port: number | null): void => {
      if (port === null || listeners.has(name)) return
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        const meta = Buffer.from(JSON.stringify({ peer: socket.remoteAddress }))
        const stream = registry.pick(name)?.link.mux.open(kind.tcp, 0, meta)
        if (stream === undefined) return socket.resetAndDestroy()
        socket.setNoDelay(true)
        socket.setKeepAlive(true, keepAliveMillis)
        socket.setTimeout(idleMillis, () => socket.destroy())
        couple(socket, stream)
      })
      // Taken by another edge of this machine, which serves it as well.
      server.on("error", () => listeners.delete(name))
      listeners.set(name, server)
      server.listen(port, host)
    },
    close,
    closeAll: (): void => [...listeners.keys()].forEach(close),
  }
}
