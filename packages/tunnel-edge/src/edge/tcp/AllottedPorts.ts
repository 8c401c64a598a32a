/**
 * Listens on the allotted TCP ports of the names whose agents are attached to this edge. If a port is in use, another
 * edge of this machine may serve it. If another program holds it, the public address leads to that program: the edge
 * logs a warning and allots another port to the Identity.
 */
import { ask } from "@svc/cluster/actor/Ask"
import { Identities } from "@svc/cluster/actor/Identities"
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { Clock, Effect } from "effect"
import type { Peers } from "../links/Peers.ts"
import type { Registry } from "../links/Registry.ts"
import type { EdgeIdentity } from "../EdgeIdentity.ts"
import type { TcpPorts } from "./TcpPorts.ts"
import { Timing } from "../Timing.ts"

/** Number of attempts, since a former listener may be about to close. */
const triesAtMost = 3

export const make = Effect.fnUntraced(function* (options: {
  readonly self: EdgeIdentity
  readonly registry: Registry
  readonly ports: TcpPorts
  readonly peers: Peers
}) {
  const { self, registry, ports, peers } = options
  const tunnels = yield* TunnelQueries
  const actors = yield* Identities
  const busy = new Set<string>()
  /** Ports that other programs held, by name. */
  const found = new Map<string, { readonly at: number; readonly text: string }>()

  const isOurs = ({ holders }: Standing, name: string, port: number) =>
    Effect.map(
      Effect.forEach(
        holders.filter(({ edge_id }) => edge_id !== self.id),
        ({ edge_address }) => Effect.promise(() => peers.listens(edge_address, name, port)),
        { concurrency: "unbounded" },
      ),
      (answers) => answers.includes(true),
    )

  const say = Effect.fnUntraced(function* (name: string, text: string) {
    found.set(name, { at: yield* Clock.currentTimeMillis, text })
    yield* Effect.logWarning(text)
    for (const { link } of registry.of(name)) link.status({ notice: text })
  })

  /** Allots another port to the Identity. */
  const move = Effect.fnUntraced(function* (name: string, port: number) {
    const held = `TCP port ${port} of ${name} is held by another program on the machine of its edge`
    const { port: next } = yield* ask(actors.of(name).MoveTunnelPort({ port }))
    yield* say(name, next === null ? `${held}, and no other port is free` : `${held}; its port is ${next} from now on`)
    return next !== null && next !== port
  })

  const settle = Effect.fnUntraced(function* (name: string) {
    for (let tries = 1; registry.of(name).length > 0; tries++) {
      const standing = yield* tunnels.standing(name)
      if (standing === undefined || standing.port === null) return
      const { port } = standing
      if (yield* Effect.promise(() => ports.open(name, port))) {
        // The last link may have closed in the meantime.
        if (registry.of(name).length === 0) ports.close(name)
        return
      }
      if (yield* isOurs(standing, name, port)) return
      if (tries < triesAtMost) yield* Effect.sleep(Timing.portAgain)
      else if (yield* move(name, port)) tries = 0
      else return
    }
  })

  /** Listens on the port that is currently allotted to a name. */
  const keep = (name: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (busy.has(name)) return Effect.void
      busy.add(name)
      return settle(name).pipe(Effect.ignore, Effect.ensuring(Effect.sync(() => busy.delete(name))))
    })

  return {
    keep,
    /** Listens on ports that another edge of this machine served and may have released. */
    keepAll: Effect.suspend(() =>
      Effect.forEach(
        new Set(registry.all().map(({ canonical }) => canonical)),
        (name) => (ports.isOpen(name) ? Effect.void : keep(name)),
        { concurrency: 4, discard: true },
      ),
    ),
    /** Returns warnings for the operator. */
    findings: Effect.map(Clock.currentTimeMillis, (now) => {
      for (const [name, { at }] of found) if (now - at > Timing.portToldMillis) found.delete(name)
      return [...found.values()].map(({ text }) => text)
    }),
  }
})

export type AllottedPorts = Effect.Success<ReturnType<typeof make>>
