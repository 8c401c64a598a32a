/** A Tunnel's TCP port listens only while an agent is connected, whenever the agent disconnects. */
import { connect, createServer } from "node:net"
import { Identities } from "@svc/cluster/actor/Identities"
import { TunnelQueries, type Standing } from "@svc/cluster/tunnel/TunnelQueries"
import { defaultSettings } from "@svc/domain/tunnel/Tunnel"
import * as AllottedPorts from "@svc/tunnel-edge/edge/tcp/AllottedPorts"
import type { Peers } from "@svc/tunnel-edge/edge/links/Peers"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import * as TcpPorts from "@svc/tunnel-edge/edge/tcp/TcpPorts"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { freePort } from "../harness/Ports.ts"
import { eventually } from "../harness/Eventually.ts"

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

it("a name has one open port, and none while another program holds it", async () => {
  const ports = makePorts()
  const [first, second] = [await freePort(), await freePort()]
  expect([await ports.open(name, first), await ports.open(name, first)]).toEqual([true, true])
  expect([ports.listens(name, first), ports.listens(name, second), ports.listens("bob", first)]).toEqual([
    true,
    false,
    false,
  ])
  expect(await ports.open(name, second)).toBe(true)
  expect([ports.listens(name, first), ports.listens(name, second)]).toEqual([false, true])
  await eventually(
    () => refusal(first),
    (code) => code === "ECONNREFUSED",
  )
  expect(await refusal(second)).not.toBe("ECONNREFUSED")
  const stranger = createServer()
  await new Promise<void>((resolve) => stranger.listen(first, "127.0.0.1", resolve))
  expect(await ports.open(name, first)).toBe(false)
  expect([ports.isOpen(name), ports.listens(name, first)]).toEqual([false, false])
  expect(await ports.open("bob", second)).toBe(true)
  ports.closeAll()
  expect(ports.isOpen("bob")).toBe(false)
  stranger.close()
})

describe("a TCP port that is in use", () => {
  /** The ports of an edge with one link of ada. `free` are the ports that it can listen on. */
  const allotting = Effect.gen(function* () {
    const state = {
      port: 1 as number | null,
      free: new Set<number>(),
      next: null as number | null,
      theirs: false,
      holders: ["edge", "other"],
    }
    const did: Array<string> = []
    const [registry, open] = [Registry.make(() => 0), new Set<string>()]
    registry.add({
      canonical: name,
      link: { status: ({ notice }: { notice: string }) => did.push(`notice ${notice}`) },
    } as never)
    const allotted = yield* AllottedPorts.make({
      self: { id: "edge", address: "", isDraining: false },
      registry,
      ports: {
        open: async (of: string, port: number) => (
          did.push(`open ${port}`),
          state.free.has(port) && open.add(of) !== undefined
        ),
        isOpen: (of: string) => open.has(of),
        close: () => {},
      } as never,
      peers: {
        listens: async (address: string, of: string, port: number) => (
          did.push(`${address} ${of} ${port}`),
          state.theirs
        ),
      } as never,
    }).pipe(
      Effect.provide([
        Layer.mock(TunnelQueries, {
          standing: () =>
            Effect.sync(
              () =>
                ({
                  port: state.port,
                  holders: state.holders.map((edge_id) => ({ edge_id, edge_address: edge_id })),
                }) as never,
            ),
        }),
        Layer.mock(Identities, {
          of: () =>
            ({
              MoveTunnelPort: ({ port }: { port: number }) =>
                Effect.sync(() => {
                  did.push(`move ${port}`)
                  state.port = state.next ?? state.port
                  return { port: state.next }
                }),
            }) as never,
        }),
      ]),
    )
    const kept = Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(allotted.keep(name), { startImmediately: true })
      for (let n = 0; n < 5; n++) yield* TestClock.adjust(Timing.portAgain)
      yield* Fiber.join(fiber)
      return did.splice(0)
    })
    return { state, did, allotted, kept, registry }
  })
  const held = `TCP port 1 of ${name} is held by another program on the machine of its edge`

  it.effect("is left alone if another edge of the machine listens on it, or if the Tunnel has no port", () =>
    Effect.gen(function* () {
      const { state, kept } = yield* allotting
      state.theirs = true
      expect(yield* kept).toEqual(["open 1", `other ${name} 1`])
      state.port = null
      expect(yield* kept).toEqual([])
    }),
  )

  it.effect("is replaced after three attempts within two seconds, which operator and agent learn for an hour", () =>
    Effect.gen(function* () {
      const { state, kept, allotted } = yield* allotting
      state.next = 2
      state.free.add(2)
      const once = ["open 1", `other ${name} 1`]
      const text = `${held}; its port is 2 from now on`
      expect(yield* kept).toEqual([...once, ...once, ...once, "move 1", `notice ${text}`, "open 2"])
      expect(yield* allotted.findings).toEqual([text])
      yield* TestClock.adjust(Timing.portToldMillis - 4_000)
      expect(yield* allotted.findings).toEqual([text])
      yield* TestClock.adjust(4_000)
      expect(yield* allotted.findings).toEqual([])
    }),
  )

  it.effect("is kept if no other port is free, or if it was freed in the meantime", () =>
    Effect.gen(function* () {
      const { state, kept, allotted } = yield* allotting
      expect((yield* kept).slice(-2)).toEqual(["move 1", `notice ${held}, and no other port is free`])
      expect(yield* allotted.findings).toEqual([`${held}, and no other port is free`])
      state.next = 1
      expect((yield* kept).slice(-1)).toEqual([`notice ${held}; its port is 1 from now on`])
      state.free.add(1)
      expect(yield* kept).toEqual(["open 1"])
    }),
  )

  it.effect("is tried by one attempt at a time, and by none for a name without a link or with an open port", () =>
    Effect.gen(function* () {
      const { state, did, kept, allotted, registry } = yield* allotting
      const fiber = yield* Effect.forkChild(allotted.keep(name), { startImmediately: true })
      yield* TestClock.adjust(0)
      yield* allotted.keep(name)
      yield* allotted.keepAll
      expect(did.splice(0)).toEqual(["open 1", `other ${name} 1`])
      state.free.add(1)
      yield* TestClock.adjust(Timing.portAgain)
      yield* Fiber.join(fiber)
      expect(did.splice(0)).toEqual(["open 1"])
      yield* allotted.keepAll
      expect(did).toEqual([])
      expect(yield* kept).toEqual(["open 1"])
      registry.remove(registry.all()[0]!)
      expect(yield* kept).toEqual([])
    }),
  )
})
