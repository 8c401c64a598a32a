/** The parts of an edge work together. */
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { defaultSettings } from "@svc/domain/tunnel/Tunnel"
import { connect as connectSecure } from "node:tls"
import * as Peers from "@svc/tunnel-edge/edge/links/Peers"
import { Timing as ClusterTiming } from "@svc/cluster/Timing"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { path, upgradeToken } from "@svc/tunnel-edge/protocol/Manifest"
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import { type Duration, Effect, Metric } from "effect"
import { TestClock } from "effect/testing"
import { countsOf } from "../harness/Counters.ts"
import { freePort } from "../harness/Ports.ts"
import { fetchPublic, hostOf, sendRaw } from "../harness/Public.ts"
import { certificate, deployment, ended, endAll, name, passes, sealing, until } from "./StubbedDeployment.ts"

afterEach(async () => {
  vi.useRealTimers()
  await endAll()
})

/** Connects to a port and waits until the connection is open; `isClosed` says whether the other side ended it. */
const client = Effect.fnUntraced(function* (
  port: number,
  of: (port: number) => Socket = (at) => connect(at, "127.0.0.1"),
) {
  const socket = of(port)
  let isClosed = false
  socket
    .on("error", () => {})
    .on("data", () => {})
    .on("close", () => (isClosed = true))
  ended.push(() => socket.destroy())
  yield* Effect.promise(() => once(socket, "connect").catch(() => {}))
  return { socket, isClosed: () => isClosed }
})

const gauges = Effect.map(Metric.snapshot, (all) =>
  ["svc_tunnel_links", "svc_tunnel_connections"].map(
    (gauge) => (all.find(({ id }) => id === gauge)?.state as { readonly value: number } | undefined)?.value,
  ),
)
const requestsOf = countsOf("svc_tunnel_requests_total", "outcome")

describe("an edge", () => {
  it.effect("counts its public connections, of all ports together, up to the limit, and none for a link", () =>
    Effect.gen(function* () {
      const { tunnel, edge, agent } = yield* deployment()
      tunnel.port = yield* Effect.promise(() => freePort())
      const { port } = yield* edge({ connections: { perClient: 100, inAll: 2 } })
      yield* agent(port)
      expect(yield* gauges).toEqual([1, 0])
      const [web] = [yield* client(port), yield* client(tunnel.port)]
      yield* until(
        () => Effect.runPromise(gauges),
        ([, connections]) => connections === 2,
      )
      for (const surplus of [port, tunnel.port]) yield* until((yield* client(surplus)).isClosed, Boolean)
      web.socket.destroy()
      yield* until(
        () => Effect.runPromise(gauges),
        ([, connections]) => connections === 1,
      )
    }),
  )

  it.effect("counts each request by its outcome", () =>
    Effect.gen(function* () {
      const { edge, agent } = yield* deployment()
      const { port } = yield* edge()
      const before = yield* requestsOf
      for (const [handle, status] of [
        ["eve", 404],
        [name, 503],
      ] as const)
        expect(yield* Effect.promise(() => fetchPublic(port, handle, "/"))).toMatchObject({ status })
      yield* agent(port)
      // The offline name is cached for two seconds, but a link of this edge needs no look-up.
      for (let n = 0; n < 2; n++)
        expect(yield* Effect.promise(() => fetchPublic(port, name, "/"))).toMatchObject({ status: 200 })
      const after = yield* requestsOf
      const grown = ["404", "503", "forwarded"].map((outcome) => (after.get(outcome) ?? 0) - (before.get(outcome) ?? 0))
      expect(grown).toEqual([1, 1, 2])
    }),
  )

  it.effect("renews its leases and moves its TCP port when a name with a link changes", () =>
    Effect.gen(function* () {
      const { did, tunnel, edge, agent, changed } = yield* deployment()
      const [first, second] = [yield* Effect.promise(() => freePort()), yield* Effect.promise(() => freePort())]
      tunnel.port = first
      const { port } = yield* edge()
      yield* agent(port)
      yield* client(first)
      did.splice(0)
      tunnel.port = second
      yield* changed("eve")
      yield* changed(name)
      yield* until(
        () => sendRaw(second, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", /here/),
        (text) => text.endsWith("here"),
      )
      expect(did.filter((what) => what === "renewal")).toHaveLength(1)
      expect(yield* Effect.promise(() => sendRaw(first, ""))).toBe("")
    }),
  )

  it.effect("keeps the TCP port of a name open while another process of its agent takes over", () =>
    Effect.gen(function* () {
      const { tunnel, edge, agent } = yield* deployment()
      const at = yield* Effect.promise(() => freePort())
      tunnel.port = at
      const { port } = yield* edge()
      const former = yield* agent(port)
      yield* agent(port)
      yield* Effect.promise(() => former.close())
      yield* until(
        () => Effect.runPromise(gauges),
        ([links]) => links === 1,
      )
      expect(yield* Effect.promise(() => sendRaw(at, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", /here/))).toMatch(/here$/)
    }),
  )

  it.effect("checks credentials, leases, usage and the settings of open connections at their intervals", () =>
    Effect.gen(function* () {
      const { did, tunnel, edge, agent } = yield* deployment()
      tunnel.port = yield* Effect.promise(() => freePort())
      const { port } = yield* edge()
      yield* agent(port)
      yield* Effect.promise(() => sendRaw(port, `GET / HTTP/1.1\r\nHost: ${hostOf(name)}\r\n\r\n`, /here/))
      const { socket } = yield* client(tunnel.port)
      socket.write("GET / HTTP/1.1\r\n\r\n")
      yield* Effect.promise(() => once(socket, "data"))
      const within = Effect.fnUntraced(function* (what: string, every: Duration.Input) {
        did.splice(0)
        yield* TestClock.adjust(every)
        yield* until(() => did.includes(what), Boolean)
      })
      yield* within("credential", Timing.judgeEvery)
      yield* within("usage", Timing.flushEvery)
      yield* within("renewal", ClusterTiming.linkRenew)
      yield* within("sweep", ClusterTiming.linkRenew)
      yield* within("look-up", Timing.standingEvery)
    }),
  )

  it.effect("in Production serves TLS only if it has a certificate, and takes links at one host only", () =>
    Effect.gen(function* () {
      const { edge } = yield* deployment("production")
      const secure = yield* edge({ tls: certificate })
      const plain = yield* edge()
      const upgrade = (host: string) =>
        `GET ${path} HTTP/1.1\r\nHost: ${host}.tunnel.localhost\r\nConnection: Upgrade\r\nUpgrade: ${upgradeToken}\r\n\r\n`
      const answer = (port: number, host: string) => Effect.promise(() => sendRaw(port, upgrade(host), /\r\n\r\n/))
      expect(yield* answer(secure.port, "connect")).toMatch(/^HTTP\/1\.1 400 [^]*TLS only/)
      expect(yield* answer(plain.port, "connect")).toMatch(/^HTTP\/1\.1 401 /)
      expect(yield* answer(plain.port, name)).toMatch(/^HTTP\/1\.1 400 /)
    }),
  )

  it.effect.each([true, false])(
    "that shares its port is reached by other edges at its own address (named: %s)",
    (isNamed) =>
      Effect.gen(function* () {
        const { leases, edge, agent } = yield* deployment()
        const address = isNamed ? `127.0.0.1:${yield* Effect.promise(() => freePort())}` : undefined
        const { port } = yield* edge({ sharesPort: true, address })
        yield* agent(port)
        const { edge_address } = [...leases.values()][0]!
        if (isNamed) expect(edge_address).toBe(address)
        const own = Number(edge_address.split(":")[1])
        expect(own).not.toBe(port)
        expect(yield* Effect.promise(() => fetchPublic(own, name, "/"))).toMatchObject({ status: 200 })
      }),
  )
})

describe("several edges", () => {
  it.effect("verify each other's certificate, and look up where the agent is if it left the other edge", () =>
    Effect.gen(function* () {
      const { edge, agent, leases, tunnel } = yield* deployment("production")
      tunnel.port = yield* Effect.promise(() => freePort())
      const [one, two, three] = [
        yield* edge({ tls: certificate }),
        yield* edge({ tls: certificate }),
        yield* edge({ tls: certificate }),
      ]
      // The name that a client sends by TLS is compared without case.
      const servername = hostOf(name).toUpperCase()
      const page = () => fetchPublic(one.port, name, "/", { ca: certificate.cert, servername })
      const former = yield* agent(two.port, true)
      expect(yield* Effect.promise(page)).toMatchObject({ status: 200, body: "here" })

      const { edge_address } = [...leases.values()][0]!
      const asking = Peers.make({
        edgeId: "test",
        connectHost: "connect.tunnel.localhost",
        ca: () => certificate.cert,
        sealing,
        registry: undefined as never,
        now: () => 0,
        listens: () => false,
      })
      ended.push(asking.close)
      const isListening = (port: number) => Effect.promise(() => asking.listens(edge_address, name, port))
      expect([yield* isListening(tunnel.port), yield* isListening(tunnel.port + 1)]).toEqual([true, false])

      yield* Effect.promise(() => former.close())
      yield* until(
        () => leases.size,
        (size) => size === 0,
      )
      yield* agent(three.port, true)
      expect(yield* Effect.promise(page)).toMatchObject({ status: 200, body: "here" })
    }),
  )
})

describe("the shutdown of an edge", () => {
  it.effect("waits for raw connections, and not longer for idle requests or for links", () =>
    Effect.gen(function* () {
      vi.useFakeTimers({ toFake: ["performance"] })
      const { tunnel, edge, agent } = yield* deployment()
      tunnel.port = yield* Effect.promise(() => freePort())
      tunnel.settings = { ...defaultSettings, tls: "passthrough" }
      const drainMillis = 60_000
      const { port, close, isClosed } = yield* edge({ drainMillis })
      yield* agent(port)
      const web = yield* client(port)
      web.socket.write(`GET / HTTP/1.1\r\nHost: ${hostOf(name)}\r\n\r\n`)
      yield* Effect.promise(() => once(web.socket, "data"))
      const raw = yield* client(tunnel.port)
      raw.socket.write("GET / HTTP/1.1\r\n\r\n")
      yield* Effect.promise(() => once(raw.socket, "data"))
      const secure = yield* client(port, (at) =>
        connectSecure({ port: at, host: "127.0.0.1", servername: hostOf(name) }),
      )
      yield* until(
        () => Effect.runPromise(gauges),
        ([, connections]) => connections === 3,
      )
      yield* close
      for (let elapsed = 0; elapsed <= 2 * Timing.drainIdleMillis; elapsed += 1000) yield* passes(1000)
      yield* until(web.isClosed, Boolean)
      expect([raw.isClosed(), secure.isClosed(), isClosed()]).toEqual([false, false, false])
      raw.socket.destroy()
      secure.socket.destroy()
      while (!isClosed()) yield* passes(5)
      expect(performance.now()).toBeLessThan(drainMillis)
    }),
  )

  it.effect("takes two seconds while an agent keeps its idle link", () =>
    Effect.gen(function* () {
      vi.useFakeTimers({ toFake: ["performance"] })
      const { edge, agent } = yield* deployment()
      const { port, close, isClosed } = yield* edge({ drainMillis: 60_000 })
      yield* agent(port)
      yield* close
      yield* passes(Timing.drainNoticeMillis)
      expect(isClosed()).toBe(false)
      yield* passes(Timing.drainLinksMillis)
      yield* passes(Timing.drainStepMillis)
      yield* until(isClosed, Boolean)
    }),
  )
})
