import { EventEmitter } from "node:events"
import { reset } from "@svc/tunnel-edge/protocol/Manifest"
import type { MuxStream } from "@svc/tunnel-edge/protocol/Mux"
import { splice } from "@svc/tunnel-edge/protocol/Splice"
import { describe, expect, it } from "vitest"

describe("a splice", () => {
  /** A socket and a stream that record what is done to them. */
  const spliced = (options: { readonly gated?: boolean; readonly watched?: boolean } = {}) => {
    const did: Array<string> = []
    const accepts = { socket: true, stream: true, in: true, out: true }
    const socket = Object.assign(new EventEmitter(), {
      writableNeedDrain: false,
      write: (bytes: Buffer) => (did.push(`socket ${bytes}`), accepts.socket),
      pause: () => void did.push("pause"),
      resume: () => void did.push("resume"),
      end: () => void did.push("socket ends"),
      resetAndDestroy: () => void did.push("socket resets"),
    })
    const stream = {
      write: (bytes: Buffer) => (did.push(`stream ${bytes}`), accepts.stream),
      delivered: (bytes: number) => void did.push(`delivered ${bytes}`),
      end: () => void did.push("stream ends"),
      reset: (code: number) => void did.push(`stream resets ${code}`),
      onDrain: () => {},
      onEnd: () => {},
    } as unknown as MuxStream
    const gate = {
      count: (direction: "in" | "out", bytes: number) => (did.push(`${direction} ${bytes}`), accepts[direction]),
      onRoom: () => {},
    }
    const separate = splice(socket as never, stream, {
      ...(options.gated === true ? { gate } : {}),
      ...(options.watched === true ? { incoming: (bytes) => void did.push(`sees ${bytes}`) } : {}),
    })
    return { socket, stream, gate, accepts, separate, did: () => did.splice(0) }
  }
  const abc = Buffer.from("abc")

  it("pauses the side whose other side is full, and credits bytes once they are written", () => {
    const { socket, stream, accepts, did } = spliced()
    socket.emit("data", abc)
    expect(did()).toEqual(["stream abc"])
    accepts.stream = false
    socket.emit("data", abc)
    expect(did()).toEqual(["stream abc", "pause"])
    stream.onDrain()
    expect(did()).toEqual(["resume"])
    stream.onData(abc)
    expect(did()).toEqual(["socket abc", "delivered 3"])
    accepts.socket = false
    stream.onData(abc)
    stream.onData(abc)
    expect(did()).toEqual(["socket abc", "socket abc"])
    socket.emit("drain")
    expect(did()).toEqual(["delivered 6"])
    socket.emit("drain")
    expect(did()).toEqual([])
  })

  it("passes on the end and the reset of each side", () => {
    const { socket, stream, did } = spliced()
    socket.emit("end")
    stream.onEnd()
    stream.onReset(reset.cancel)
    socket.emit("error", new Error("gone"))
    socket.emit("close")
    expect(did()).toEqual(["stream ends", "socket ends", "socket resets", "stream resets 1", "stream resets 1"])
  })

  it("passes nothing more while the meter has no room", () => {
    const { socket, stream, gate, accepts, did } = spliced({ gated: true })
    gate.onRoom()
    expect(did()).toEqual([])
    accepts.in = false
    socket.emit("data", abc)
    expect(did()).toEqual(["stream abc", "in 3", "pause"])
    // Neither the stream nor the socket starts the transfer again.
    stream.onDrain()
    stream.onData(abc)
    socket.emit("drain")
    expect(did()).toEqual(["out 3", "socket abc"])
    accepts.in = true
    gate.onRoom()
    expect(did()).toEqual(["resume", "delivered 3"])
    accepts.out = false
    stream.onData(abc)
    expect(did()).toEqual(["out 3", "socket abc"])
    // There is room, but the socket must drain first.
    socket.writableNeedDrain = true
    accepts.out = true
    gate.onRoom()
    expect(did()).toEqual(["resume"])
    socket.emit("drain")
    expect(did()).toEqual(["delivered 3"])
  })

  it("shows the bytes of the stream before they are written", () => {
    const { stream, did } = spliced({ watched: true })
    stream.onData(abc)
    expect(did()).toEqual(["sees abc", "socket abc", "delivered 3"])
  })

  it("leaves the socket alone after it is separated", () => {
    const free = spliced()
    free.separate()
    free.stream.onDrain()
    expect(free.did()).toEqual([])
    const { socket, stream, gate, accepts, separate, did } = spliced({ gated: true })
    accepts.in = false
    socket.emit("data", abc)
    did()
    separate()
    for (const event of ["data", "end", "drain", "error", "close"])
      expect([event, socket.listenerCount(event)]).toEqual([event, 0])
    stream.onDrain()
    gate.onRoom()
    expect(did()).toEqual([])
  })
})
