/** A Tunnel's TCP port listens only while an agent is connected, whenever the agent disconnects. */
import { connect } from "node:net"
import { Identities } from "@svc/cluster/actor/Identities"
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { defaultSettings } from "@svc/domain/tunnel/Tunnel"
import * as AllottedPorts from "@svc/tunnel-edge/edge/tcp/AllottedPorts"
import type { Peers } from "@svc/tunnel-edge/edge/links/Peers"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import * as TcpPorts from "@svc/tunnel-edge/edge/tcp/TcpPorts"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { freePort } from "../harness/Ports.ts"
import { eventually } from "../harness/Service.ts"

const name = "ada"

const makePorts = (host = "127.0.0.1") =>
  TcpPorts.make(
    host,
    () => Promise.resolve(undefined),
    () => true,
    [],
  )

/** Returns the error of a connection to the port, or undefined if it is accepted. */
const refusal = (port: number) =>
  new Promise<string | undefined>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code))
    socket.once("connect", () => {
      socket.destroy()
      resolve(undefined)
    })
  })

it.each(["127.0.0.1", "localhost"])("closes a port before it listens (%s)", async (host) => {
  const [ports, port] = [makePorts(host), await freePort()]
  const opened = ports.open(name, port)
  ports.close(name)
  expect(await opened).toBe(true)
  await eventually(
    () => refusal(port),
    (code) => code === "ECONNREFUSED",
  )
  expect(ports.isOpen(name)).toBe(false)
})

it.effect("does not open a port for an agent that leaves during the lookup", () =>
  Effect.gen(function* () {
    const [ports, registry] = [makePorts(), Registry.make(() => 0)]
    const port = yield* Effect.promise(freePort)
    const attached = { canonical: name } as Registry.Attached
    const standing: Standing = {
      identityId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a99",
      handle: name,
      orgId: "0199d3c0-5e0f-7c4e-9b1a-3f2d6c8e4a98",
      status: "ready",
      port,
      settings: defaultSettings,
      passwordHash: undefined,
      holders: [],
    }
    const tunnels = Layer.mock(TunnelQueries, {
      standing: () =>
        Effect.sync(() => {
          registry.remove(attached)
          ports.close(name)
          return standing
        }),
    })
    const self = { id: "edge", address: "", isDraining: false }
    const allotted = yield* AllottedPorts.make({ self, registry, ports, peers: {} as Peers }).pipe(
      Effect.provide([tunnels, Layer.mock(Identities, { of: () => undefined as never })]),
    )
    registry.add(attached)
    yield* allotted.keep(name)
    expect(yield* Effect.promise(() => refusal(port))).toBe("ECONNREFUSED")
  }),
)
