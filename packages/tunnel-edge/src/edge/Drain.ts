/**
 * Shuts an edge down: tells agents and other edges to reconnect elsewhere, waits for requests in flight up to the drain
 * time, then closes all connections.
 */
import { Effect } from "effect"
import type { Connections } from "./listening/Connections.ts"
import type { Leases } from "./links/Leases.ts"
import type { Listener } from "./listening/Listener.ts"
import type { Metering } from "./Metering.ts"
import type { Peers } from "./links/Peers.ts"
import type { Registry } from "./links/Registry.ts"
import type { EdgeIdentity } from "./EdgeIdentity.ts"
import type { TcpPorts } from "./tcp/TcpPorts.ts"
import { Timing } from "./Timing.ts"

export const drain = Effect.fnUntraced(function* (options: {
  readonly self: EdgeIdentity
  readonly listener: Listener
  readonly registry: Registry
  readonly leases: Leases
  readonly peers: Peers
  readonly connections: Connections
  readonly ports: TcpPorts
  readonly metering: Metering
  readonly drainMillis: number
}) {
  const { self, listener, registry, leases, peers, connections, ports, metering, drainMillis } = options
  self.isDraining = true
  listener.server.close()
  listener.own.close()
  leases.leave()
  peers.leave()

  const begun = performance.now()
  const elapsed = () => performance.now() - begun
  const isBusy = () => connections.size() > 0 || peers.isBusy() || leases.isBusy()
  const hasLinks = () => registry.all().length > 0 && elapsed() < Timing.drainLinksMillis
  yield* Effect.sleep(Timing.drainNoticeMillis)
  while (elapsed() < drainMillis && (isBusy() || hasLinks())) {
    connections.drain(elapsed())
    yield* Effect.sleep(Timing.drainStepMillis)
  }

  peers.close()
  yield* leases.close
  yield* Effect.timeoutOption(metering.flush, Timing.drainFlush)
  ports.closeAll()
  connections.close()
})
