/** Routes connections that the edge forwards without reading them: TCP ports and TLS passthrough. */
import type { Socket } from "node:net"
import { Effect } from "effect"
import { kind } from "../../protocol/Manifest.ts"
import * as Admission from "../routing/Admission.ts"
import { clientOf } from "../listening/Connections.ts"
import type { Hosts } from "../routing/Hosts.ts"
import type { Metering } from "../Metering.ts"
import type { Routes } from "../routing/Routes.ts"
import type { BackgroundEffects } from "../BackgroundEffects.ts"
import { carry, type TcpRoute } from "./TcpPorts.ts"

export const make = (options: {
  readonly hosts: Hosts
  readonly routes: Routes
  readonly metering: Metering
  readonly run: BackgroundEffects["run"]
}) => {
  const { hosts, routes, metering, run } = options

  const find = Effect.fnUntraced(function* (name: string, client: string) {
    const standing = yield* routes.standing(name)
    if (standing === undefined || !Admission.allowsRaw(standing, client)) return undefined
    if (metering.blockedFor(standing.orgId) > 0) return undefined
    const way = yield* routes.find(name, standing)
    if (way === undefined) return undefined
    const route: TcpRoute = {
      open: way.open,
      proxyProtocol: standing.settings.proxy_protocol,
      enter: (end) => {
        const opening = routes.open(name, standing, () => {
          if (!Admission.allowsRaw(opening.now(), client)) end()
        })
        return () => opening.close()
      },
      passage: (cut) => metering.open(standing.orgId, standing.identityId, cut),
    }
    return route
  })

  const isPassedThrough = Effect.fnUntraced(function* (host: string) {
    const name = hosts.nameOf(host)
    if (name === undefined) return false
    return (yield* routes.standing(name))?.settings.tls === "passthrough"
  })

  const route = (name: string, client: string): Promise<TcpRoute | undefined> => run(find(name, client))

  return {
    /** Returns the route for a connection of this name's TCP port, or undefined if it is refused. */
    route,
    /** Returns whether the agent terminates TLS for this host. */
    passesThrough: (host: string): Promise<boolean> => run(isPassedThrough(host)),
    /** Forwards a TLS connection without decrypting it. */
    passThrough: (socket: Socket, host: string): void => {
      const client = clientOf(socket)
      void route(hosts.nameOf(host) ?? "", client)
        .then((found) => {
          const stream = found?.open(kind.passthrough, { peer: client, sni: host })
          if (found === undefined || stream === undefined) return void socket.resetAndDestroy()
          carry(socket, stream, found)
        })
        .catch(() => socket.destroy())
    },
  }
}
