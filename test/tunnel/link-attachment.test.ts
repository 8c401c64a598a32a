/** How an edge takes the links of agents. Store and credentials are stubs; the sockets are real. */
import { Audit } from "@svc/cluster/audit/Audit"
import { RefusedCredentials } from "@svc/cluster/audit/RefusedCredentials"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { TunnelLinks } from "@svc/cluster/tunnel/TunnelLinks"
import { TunnelQueries } from "@svc/cluster/tunnel/TunnelQueries"
import { Unauthenticated } from "@svc/domain/problems/Problem"
import * as LinkAttachment from "@svc/tunnel-edge/edge/links/LinkAttachment"
import * as Registry from "@svc/tunnel-edge/edge/links/Registry"
import { type Link, makeLink } from "@svc/tunnel-edge/protocol/Link"
import { goaway, path, upgradeToken } from "@svc/tunnel-edge/protocol/Manifest"
import { Effect, Layer, Redacted } from "effect"
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { eventually } from "../harness/Eventually.ts"
import { addresses } from "../harness/Stores.ts"
import { adminKey } from "./StubbedDeployment.ts"

let server: Server
const arrived: Array<(socket: Socket) => void> = []
beforeAll(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => arrived.shift()!(socket))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
})
afterAll(() => void server.close())
afterEach(() => vi.useRealTimers())

const made = async () => {
  const strangers: Array<unknown> = []
  const leases: Array<any> = []
  const detached: Array<string> = []
  const closed: Array<string> = []
  const stub = <S>(service: unknown, methods: object) => Layer.succeed(service as never, methods as never) as S
  const services = Layer.mergeAll(
    addresses,
    stub<Layer.Layer<CredentialLookup>>(CredentialLookup, {
      resolve: (token: Redacted.Redacted<string>) =>
        Redacted.value(token) === "key" ? Effect.succeed(adminKey) : Effect.fail(new Unauthenticated({ detail: "no" })),
    }),
    stub<Layer.Layer<TunnelQueries>>(TunnelQueries, {
      standing: () => Effect.succeed({ identityId: "i", handle: "ada", orgId: "o", status: "ready", port: 7 }),
    }),
    stub<Layer.Layer<TunnelLinks>>(TunnelLinks, {
      attach: (lease: object) => Effect.sync(() => void leases.push(lease)),
      detach: (ids: ReadonlyArray<string>) => Effect.sync(() => void detached.push(...ids)),
    }),
    stub<Layer.Layer<Audit>>(Audit, { record: () => Effect.void }),
    stub<Layer.Layer<RefusedCredentials>>(RefusedCredentials, {
      turnedAway: (token: Redacted.Redacted<string>, { code }: { readonly code: string }) =>
        Effect.sync(() => void strangers.push([Redacted.value(token), code])),
    }),
  )
  const registry = Registry.make(() => 0)
  const attach = await Effect.runPromise(
    Effect.provide(
      LinkAttachment.make({
        self: { id: "edge-1", address: "edge:1", isDraining: false },
        registry,
        onAttached: () => {},
        onClosed: ({ instance, conn }, why) => void closed.push(`${instance}/${conn} ${why}`),
      }),
      services,
    ),
  )
  /** Dials as an agent. Resolves to its link, or to the text of the refusal. */
  const dial = async (fields: Readonly<Record<string, string>>, leave = false) => {
    const taken = new Promise<Socket>((resolve) => arrived.push(resolve))
    const { port } = server.address() as AddressInfo
    // A client that keeps a refused connection open.
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    const served = await taken
    served.on("error", () => {})
    socket.on("error", () => {})
    if (leave) {
      socket.destroy()
      await new Promise((resolve) =>
        served
          .resume()
          .once("close", resolve)
          .once("end", () => served.destroy()),
      )
    }
    const head = {
      target: path,
      upgrade: true,
      method: "GET",
      headers: new Map(
        Object.entries({ upgrade: upgradeToken, authorization: "Bearer key", "svc-tunnel-handle": "ada", ...fields }),
      ),
    }
    const answered = new Promise<string>((resolve) =>
      socket.once("data", (chunk: Buffer) => {
        socket.pause()
        const end = chunk.indexOf("\r\n\r\n") + 4
        socket.unshift(chunk.subarray(end))
        resolve(chunk.toString("latin1"))
      }),
    )
    await Effect.runPromise(attach.accept(head as never, served, Buffer.alloc(0)))
    if (leave) return { served, text: "", link: undefined, going: [] }
    const text = await answered
    const going: Array<readonly [number, unknown]> = []
    const link: Link | undefined = text.startsWith("HTTP/1.1 101")
      ? makeLink(socket, Buffer.alloc(0), false, {
          open: () => {},
          hello: () => {},
          close: () => {},
          goaway: (reason, { successor }) => void going.push([reason, successor]),
        })
      : undefined
    socket.resume()
    return { text, link, going, served }
  }
  const agent = (instance: string, conn: string, more: object = {}) =>
    dial({ "svc-tunnel-instance": instance, "svc-tunnel-conn": conn, "svc-tunnel-client": `svc ${instance}`, ...more })
  return { registry, dial, agent, leases, detached, strangers, closed }
}
const until = (holds: () => boolean) => eventually(async () => holds(), Boolean)
const end = ({ registry }: Awaited<ReturnType<typeof made>>) => {
  for (const { link } of registry.all()) link.close("the test is over")
}

describe("A link of an agent", () => {
  it("is leased with what the agent says of itself, cut to the length that is stored", async () => {
    const edge = await made()
    const long = "x".repeat(300)
    await edge.agent("a", "0", { "svc-tunnel-client": long, "svc-tunnel-local": long })
    const { id, ...lease } = edge.leases[0]
    expect(lease).toEqual({
      identityId: "i",
      canonical: "ada",
      edgeId: "edge-1",
      edgeAddress: "edge:1",
      instance: "a",
      client: long.slice(0, 100),
      localHost: long.slice(0, 255),
    })
    expect(edge.registry.of("ada")[0]!.id).toBe(id)
    end(edge)
  })

  it("is up until the agent says that its local port is down, and leaves when the agent does", async () => {
    const edge = await made()
    const { link } = await edge.agent("a", "0")
    const [attached] = edge.registry.of("ada")
    link!.status({ local: "down" })
    await until(() => !attached!.localUp)
    link!.status({ local: "up" })
    await until(() => attached!.localUp)
    link!.status({ local: "down" })
    await until(() => !attached!.localUp)
    // An older agent does not report its port.
    link!.status({ in_flight: 1 })
    await until(() => attached!.localUp)
    link!.goaway(goaway.drain)
    await until(() => attached!.leaving)
    expect(edge.registry.pick("ada")).toBeUndefined()
    end(edge)
  })

  it("replaces the former link of the same number, and is refused beside another of its process", async () => {
    const edge = await made()
    await edge.agent("a", "0")
    const { text } = await edge.agent("a", "1")
    expect(text).toContain("tunnel_duplicate_edge")
    expect(edge.leases).toHaveLength(1)
    await edge.agent("a", "0")
    await until(() => edge.closed.length === 1)
    expect(edge.closed).toEqual(["a/0 dialled again"])
    expect(edge.registry.of("ada")).toHaveLength(1)
    // A link that drains does not count.
    edge.registry.of("ada")[0]!.draining = true
    expect((await edge.agent("a", "1")).link).toBeDefined()
    expect(edge.registry.of("ada")).toHaveLength(2)
    end(edge)
  })

  it("dismisses those of an older process once, naming its successor, and closes them a second later", async () => {
    const edge = await made()
    const older = await edge.agent("a", "0")
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    await edge.agent("b", "0")
    // The fake clock is stopped, and other ways to wait would advance it.
    while (older.going.length === 0) await new Promise((resolve) => setImmediate(resolve))
    expect(older.going).toEqual([[goaway.replaced, { instance: "b", client: "svc b" }]])
    await edge.agent("c", "0")
    await vi.advanceTimersByTimeAsync(999)
    expect(edge.closed).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(edge.closed).toEqual(["a/0 replaced", "b/0 replaced"])
    expect(older.going).toHaveLength(1)
    end(edge)
  })

  it("whose agent left before it was opened gives its lease back", async () => {
    const edge = await made()
    await edge.dial({ "svc-tunnel-instance": "a" }, true)
    expect(edge.detached).toEqual(edge.leases.map(({ id }) => id))
    expect(edge.leases).toHaveLength(1)
    expect(edge.registry.all()).toEqual([])
  })

  it("with a rejected credential is recorded, and its connection is closed after two seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    const edge = await made()
    const { text, served } = await edge.dial({ authorization: "Bearer other" })
    expect(text).toMatch(/^HTTP\/1\.1 401 /)
    expect([edge.strangers, edge.leases]).toEqual([[["other", "unauthenticated"]], []])
    await vi.advanceTimersByTimeAsync(1_999)
    expect(served.destroyed).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(served.destroyed).toBe(true)
  })
})
