/** A draining edge waits for all requests in flight, whichever way they arrived, and for nothing else. */
import { EventEmitter } from "node:events"
import type { Socket } from "node:net"
import * as Connections from "@svc/tunnel-edge/edge/listening/Connections"
import { drain } from "@svc/tunnel-edge/edge/Drain"
import { Timing } from "@svc/tunnel-edge/edge/Timing"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] }))
afterEach(() => void vi.useRealTimers())

const drainMillis = 60_000

/** Starts a drain with work in flight that the test controls; `done` lists the completed steps in order. */
const draining = () => {
  const done: Array<string> = []
  const busy = { connections: 0, peers: false, leases: false, links: 0 }
  const step = (name: string) => () => void done.push(name)
  const self = { id: "edge", address: "127.0.0.1:1", isDraining: false }
  const parts = {
    self,
    listener: { server: { close: step("stop listening") }, own: { close: () => {} } },
    registry: { all: () => Array.from({ length: busy.links }) },
    leases: {
      leave: step("tell agents"),
      isBusy: () => busy.leases,
      close: Effect.sync(step("close links")),
    },
    peers: { leave: step("tell edges"), isBusy: () => busy.peers, close: step("close peers") },
    connections: { size: () => busy.connections, drain: () => {}, close: step("close connections") },
    ports: { closeAll: step("close ports") },
    metering: { flush: Effect.sync(step("write down")) },
    drainMillis,
  }
  let isOver = false
  void Effect.runPromise(drain(parts as never)).then(() => (isOver = true))
  return { done, busy, self, isOver: () => isOver }
}

describe("a draining edge", () => {
  it("announces the drain first and closes everything at the end", async () => {
    const { done, self, isOver } = draining()
    expect(self.isDraining).toBe(true)
    expect(done).toEqual(["stop listening", "tell agents", "tell edges"])
    await vi.advanceTimersByTimeAsync(Timing.drainNoticeMillis - 1)
    expect(isOver()).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(isOver()).toBe(true)
    expect(done.slice(3)).toEqual(["close peers", "close links", "write down", "close ports", "close connections"])
  })

  it.each([
    ["its public connections", { connections: 1 }, { connections: 0 }],
    ["streams that came from other edges", { peers: true }, { peers: false }],
    ["streams of its agents", { leases: true }, { leases: false }],
  ])("waits for %s, up to the drain time", async (_, inFlight, ended) => {
    const first = draining()
    Object.assign(first.busy, inFlight)
    await vi.advanceTimersByTimeAsync(drainMillis / 2)
    expect(first.isOver()).toBe(false)
    Object.assign(first.busy, ended)
    await vi.advanceTimersByTimeAsync(Timing.drainStepMillis)
    expect(first.isOver()).toBe(true)

    const endless = draining()
    Object.assign(endless.busy, inFlight)
    await vi.advanceTimersByTimeAsync(drainMillis - 1)
    expect(endless.isOver()).toBe(false)
    await vi.advanceTimersByTimeAsync(Timing.drainStepMillis)
    expect(endless.isOver()).toBe(true)
  })

  it("waits two seconds for idle links of agents", async () => {
    const { busy, isOver } = draining()
    busy.links = 1
    await vi.advanceTimersByTimeAsync(Timing.drainLinksMillis - 1)
    expect(isOver()).toBe(false)
    await vi.advanceTimersByTimeAsync(Timing.drainStepMillis)
    expect(isOver()).toBe(true)
  })
})

describe("connections of a draining edge", () => {
  const socket = () => {
    const made = Object.assign(new EventEmitter(), {
      bytesRead: 0,
      bytesWritten: 0,
      ended: false,
      destroySoon: () => {
        made.ended = true
      },
    })
    return made
  }
  const added = (connections: Connections.Connections, lasting: boolean) => {
    const made = socket()
    connections.add(made as unknown as Socket, lasting)
    return made
  }

  it("close after five seconds of silence or thirty seconds in total, unless they are long-lived", () => {
    const connections = Connections.make()
    const [idle, busy, raw, upgraded] = [
      added(connections, false),
      added(connections, false),
      added(connections, true),
      added(connections, false),
    ]
    connections.upgraded(upgraded as unknown as Socket)
    const at = (elapsed: number) => {
      vi.setSystemTime(elapsed)
      busy.bytesWritten++
      connections.drain(elapsed)
      return [idle, busy, raw, upgraded].map(({ ended }) => ended)
    }
    vi.advanceTimersByTime(Timing.drainIdleMillis - 1)
    expect(at(Timing.drainIdleMillis - 1)).toEqual([false, false, false, false])
    vi.advanceTimersByTime(1)
    expect(at(Timing.drainIdleMillis)).toEqual([true, false, false, false])
    expect(at(Timing.drainRequestMillis - 1)).toEqual([true, false, false, false])
    expect(at(Timing.drainRequestMillis)).toEqual([true, true, false, false])
    connections.close()
    expect([raw.ended, upgraded.ended]).toEqual([true, true])
    expect(connections.size()).toBe(4)
    for (const one of [idle, busy, raw, upgraded]) one.emit("close")
    expect(connections.size()).toBe(0)
  })
})
