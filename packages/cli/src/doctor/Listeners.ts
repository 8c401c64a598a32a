/** Checks the ports of the service: whether they collide, and whether they are free. */
import { createServer } from "node:net"
import { Effect, Option } from "effect"
import { usualPort } from "../serve/ops/Ops.ts"
import { portsOf, type Settings } from "../serve/Settings.ts"
import * as Finding from "./Finding.ts"

interface Listener {
  readonly setting: string
  readonly host: string
  readonly port: number
}

/** Port 0 means any free port. */
const listenersOf = (settings: Settings): ReadonlyArray<Listener> =>
  Object.entries(portsOf({ ...settings, opsPort: Option.orElseSome(settings.opsPort, () => usualPort) }))
    .map(([setting, port]) => ({ setting, host: hostOf(settings, setting), port }))
    .filter(({ port }) => port !== 0)

const hostOf = ({ host, runnerHost, opsHost }: Settings, setting: string): string =>
  setting === "SVC_RUNNER_PORT" ? runnerHost : setting === "SVC_OPS_PORT" ? opsHost : host

const everywhere = new Set(["0.0.0.0", "::", ""])
const meet = (one: string, other: string) => one === other || everywhere.has(one) || everywhere.has(other)

const found = Finding.of("settings")

/** Finds ports that two listeners of a process share, or that tunnels could be given. */
export const collisions = (settings: Settings): ReadonlyArray<Finding.Finding> => {
  const all = listenersOf(settings)
  const { first, last } = settings.tunnelPorts
  const shared = all.flatMap((one, at) =>
    all
      .slice(at + 1)
      .flatMap((other) =>
        one.port === other.port && meet(one.host, other.host)
          ? [
              found(
                "listeners",
                "fail",
                `${one.setting} and ${other.setting} are both ${one.port}: a process with both roles does not start`,
                `Change one of them to another port.`,
              ),
            ]
          : [],
      ),
  )
  const ofTunnels = all.flatMap(({ setting, host, port }) =>
    port >= first && port <= last && meet(host, settings.host)
      ? [
          found(
            "tunnel ports",
            "fail",
            `${setting} is ${port}, which is within SVC_EDGE_TCP_PORTS (${first}-${last}) and could be allotted to a tunnel`,
            `Choose a range for SVC_EDGE_TCP_PORTS without ${port}.`,
          ),
        ]
      : [],
  )
  return shared.length + ofTunnels.length > 0
    ? [...shared, ...ofTunnels]
    : [found("listeners", "ok", `${all.length} ports, each with one listener`)]
}

/** Returns whether the port is free. */
const isFree = ({ host, port }: Listener) =>
  Effect.callback<boolean>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen(port, host, () => server.close(() => resume(Effect.succeed(true))))
  })

const ofService = Finding.of("service")

/** Checks that the ports are free, or used by the service itself if it runs. */
export const taken = Effect.fnUntraced(function* (settings: Settings, running: boolean) {
  // A process runs without the operations port if it was not set and is taken.
  const wanted = listenersOf(settings).filter(
    ({ setting }) => setting !== "SVC_OPS_PORT" || Option.isSome(settings.opsPort),
  )
  const held: Array<string> = []
  for (const one of wanted) if (!(yield* isFree(one))) held.push(`${one.setting} ${one.port}`)
  if (held.length === 0) return ofService("ports", "ok", wanted.map(({ port }) => port).join(", "))
  return running
    ? ofService("ports", "ok", `${held.join(", ")}: used by the service`)
    : ofService(
        "ports",
        "fail",
        `${held.join(", ")} in use by another program`,
        "Stop that program, or set another port.",
      )
})
