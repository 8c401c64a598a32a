/** The limits of a link, and what happens to streams at them. */
import { Duplex } from "node:stream"
import { makeLink } from "@svc/tunnel-edge/protocol/Link"
import { frame, goaway, limits, reset, timing } from "@svc/tunnel-edge/protocol/Manifest"
import { Mux, type MuxStream } from "@svc/tunnel-edge/protocol/Mux"
import { describe, expect, it } from "vitest"

const turn = () => new Promise((resolve) => setImmediate(resolve))
const bytesOf = (type: number, id: number, payload: Buffer) => {
  const head = Buffer.alloc(8)
  head[0] = type
  head.writeUIntBE(payload.length, 1, 3)
  head.writeUInt32BE(id, 4)
  return Buffer.concat([head, payload])
}
const openFrame = (id: number) => bytesOf(frame.open, id, Buffer.from([1, 0, 123, 125]))

/** A mux whose carrier records what it writes. `free` says whether the carrier accepts more. */
const recorded = (free = true) => {
  const chunks: Array<Buffer> = []
  const opened: Array<MuxStream> = []
  const carrier = { free }
  const mux = new Mux({ write: (some) => (chunks.push(...some), carrier.free) }, true, {
    open: (stream) => void opened.push(stream),
    control: () => {},
  })
  /** Returns the frames written since the last call, as type, stream and payload. */
  const sent = async () => {
    await turn()
    const all = Buffer.concat(chunks.splice(0))
    const frames: Array<[number, number, Buffer]> = []
    for (let at = 0; at < all.length;) {
      const length = all.readUIntBE(at + 1, 3)
      frames.push([all[at]!, all.readUInt32BE(at + 4), all.subarray(at + 8, at + 8 + length)])
      at += 8 + length
    }
    return frames
  }
  return { mux, sent, opened, carrier, chunks }
}
const open = (mux: Mux) => mux.open(1, 0, Buffer.from("{}"))!

describe("a mux", () => {
  it("keeps the order and content of more frames of one turn than one slab holds", async () => {
    const { mux, sent, chunks } = recorded()
    const stream = open(mux)
    // The small frames are copied to slabs of 64 KiB; every tenth frame is too large for that and passed by reference.
    const pieces = Array.from({ length: 60 }, (_, n) => Buffer.alloc(n % 10 === 9 ? 2_049 : 2_048, n))
    for (const piece of pieces) expect(stream.write(piece)).toBe(true)
    expect(chunks).toHaveLength(0)
    const frames = await sent()
    expect(frames.map(([type, id, { length }]) => [type, id, length])).toEqual([
      [frame.open, 1, 4],
      ...pieces.map(({ length }) => [frame.data, 1, length]),
    ])
    frames.slice(1).forEach(([, , payload], n) => expect(payload.equals(pieces[n]!)).toBe(true))
  })

  it("knows since when its carrier is blocked, its shortest round trip, and which streams its peer has reset", async () => {
    const { mux, sent } = recorded(false)
    open(mux)
    await sent()
    const since = mux.blockedSince
    mux.ping()
    await sent()
    expect(mux.blockedSince).toBe(since)
    for (const millis of [20, 500]) {
      const then = Buffer.from(new Float64Array([performance.now() - millis]).buffer).swap64()
      mux.receive(bytesOf(frame.pong, 0, then))
    }
    mux.receive(bytesOf(frame.reset, 1, Buffer.from([0, 0])))
    expect([mux.roundTrip < 500, mux.streams.size]).toEqual([true, 0])
  })

  it("assembles a control frame that arrives in any number of pieces", () => {
    const payload = Buffer.from("abcdefg")
    for (const size of [1, 3, 8, 9, 14, 15]) {
      const got: Array<[number, string]> = []
      const mux = new Mux({ write: () => true }, true, {
        open: () => {},
        control: (type, bytes) => void got.push([type, bytes.toString()]),
      })
      const all = Buffer.concat([bytesOf(frame.status, 0, payload), bytesOf(frame.hello, 0, payload)])
      for (let at = 0; at < all.length; at += size) mux.receive(all.subarray(at, at + size))
      expect(got).toEqual([
        [frame.status, "abcdefg"],
        [frame.hello, "abcdefg"],
      ])
    }
  })

  it("queues 64 MiB for a blocked peer and resets the stream that exceeds them", async () => {
    const { mux, sent, carrier } = recorded(false)
    const [large, small] = [open(mux), open(mux)]
    await sent()
    expect(mux.blocked).toBe(true)
    const codes: Array<number> = []
    large.onReset = (code) => void codes.push(code)
    small.onReset = (code) => void codes.push(-code)
    const chunk = Buffer.alloc(1024 * 1024)
    for (let n = 0; n < 63; n++) expect(large.write(chunk)).toBe(false)
    expect(small.write(chunk)).toBe(false)
    expect([mux.queued, large.isOpen, codes]).toEqual([limits.queuedBytes, true, []])
    large.write(Buffer.alloc(1))
    expect([large.isOpen, small.isOpen, codes]).toEqual([false, true, [reset.overloaded]])
    // The bytes of the other stream stay queued, and there is room for more.
    expect([mux.queued, mux.streams.size]).toEqual([chunk.length, 1])
    expect(small.write(chunk)).toBe(false)
    expect(small.isOpen).toBe(true)
    carrier.free = true
    const frames = await sent()
    expect(frames).toEqual([[frame.reset, 1, Buffer.from([0, reset.overloaded])]])
  })

  it("ends a stream after its queued bytes, once", async () => {
    const { mux, sent, carrier } = recorded(false)
    const stream = open(mux)
    let drains = 0
    stream.onDrain = () => void drains++
    await sent()
    expect(stream.write(Buffer.from("abc"))).toBe(false)
    stream.end()
    stream.end()
    expect(await sent()).toEqual([])
    expect(drains).toBe(0)
    carrier.free = true
    mux.drained()
    mux.drained()
    expect([drains, mux.queued]).toEqual([1, 0])
    expect(await sent()).toEqual([
      [frame.data, 1, Buffer.from("abc")],
      [frame.fin, 1, Buffer.alloc(0)],
    ])
    stream.end()
    expect([await sent(), stream.isOpen, mux.streams.size]).toEqual([[], true, 1])
    mux.receive(bytesOf(frame.fin, 1, Buffer.alloc(0)))
    expect([stream.isOpen, mux.streams.size]).toEqual([false, 0])
    // No frame is sent for a stream that has ended.
    expect(stream.write(Buffer.from("late"))).toBe(true)
    stream.reset(reset.cancel)
    expect(await sent()).toEqual([])
  })

  it("forgets a stream that it ends after its peer, and one that it resets with a text", async () => {
    const { mux, sent, opened } = recorded()
    for (const id of [2, 4]) mux.receive(openFrame(id))
    mux.receive(bytesOf(frame.fin, 2, Buffer.alloc(0)))
    expect(opened.map(({ isOpen }) => isOpen)).toEqual([true, true])
    opened[0]!.end()
    opened[1]!.reset(reset.local_refused, "ECONNREFUSED")
    expect([mux.streams.size, ...opened.map(({ isOpen }) => isOpen)]).toEqual([0, false, false])
    expect(await sent()).toEqual([
      [frame.fin, 2, Buffer.alloc(0)],
      [frame.reset, 4, Buffer.from([0, reset.local_refused, ...Buffer.from("ECONNREFUSED")])],
    ])
  })

  it("sends no more of a stream than its credit", async () => {
    const { mux, sent } = recorded()
    const stream = open(mux)
    expect(stream.write(Buffer.alloc(64 * 1024))).toBe(true)
    expect(stream.write(Buffer.alloc(300 * 1024))).toBe(false)
    const lengths: Array<number> = []
    const more = async () => lengths.push(...(await sent()).slice(-5).map(([, , { length }]) => length))
    for (let n = 0; n < 6; n++) await more()
    expect(lengths.slice(1)).toEqual([1, 1, 1, 1].map((n) => n * limits.dataBytes))
    const credit = Buffer.alloc(4)
    credit.writeUInt32BE(10)
    mux.receive(bytesOf(frame.window, 1, credit))
    expect((await sent()).map(([type, id, { length }]) => [type, id, length])).toEqual([[frame.data, 1, 10]])
    expect(mux.queued).toBe(364 * 1024 - limits.windowBytes - 10)
  })

  it("lets streams take turns of 64 KiB", async () => {
    const { mux, sent, carrier } = recorded(false)
    const streams = [open(mux), open(mux)]
    await sent()
    for (const stream of streams) stream.write(Buffer.alloc(160 * 1024))
    carrier.free = true
    mux.drained()
    const frames: Array<[number, number]> = []
    while (mux.queued > 0) frames.push(...(await sent()).map(([, id, { length }]): [number, number] => [id, length]))
    frames.push(...(await sent()).map(([, id, { length }]): [number, number] => [id, length]))
    const piece = 64 * 1024
    expect(frames).toEqual([
      [1, piece],
      [3, piece],
      [1, piece],
      [3, piece],
      [1, piece / 2],
      [3, piece / 2],
    ])
  })

  it("opens 10,000 streams, and another one only after one of them has ended", async () => {
    const { mux } = recorded()
    const ids = Array.from({ length: limits.streams }, () => open(mux)?.id)
    expect(ids.findIndex((id, n) => id !== 2 * n + 1)).toBe(-1)
    expect(open(mux)).toBeUndefined()
    mux.streams.get(1)!.reset(reset.cancel)
    expect(open(mux).id).toBe(2 * limits.streams + 1)
    expect(open(mux)).toBeUndefined()
  })

  it("resets the stream that a peer opens beyond 10,000, and accepts one after another has ended", async () => {
    const { mux, sent, opened } = recorded()
    for (let n = 1; n <= limits.streams; n++) mux.receive(openFrame(2 * n))
    expect(opened).toHaveLength(limits.streams)
    mux.receive(openFrame(20_002))
    expect([opened.length, mux.streams.size]).toEqual([limits.streams, limits.streams])
    expect(await sent()).toEqual([[frame.reset, 20_002, Buffer.from([0, reset.overloaded])]])
    opened[0]!.reset(reset.cancel)
    mux.receive(openFrame(20_004))
    expect(opened).toHaveLength(limits.streams + 1)
  })

  it("resets every stream once and opens none after it is closed", () => {
    const { mux, chunks } = recorded()
    const streams = [open(mux), open(mux)]
    const codes: Array<[number, number]> = []
    for (const stream of streams) stream.onReset = (code) => void codes.push([stream.id, code])
    mux.close()
    mux.close()
    expect(codes).toEqual([
      [1, reset.link_lost],
      [3, reset.link_lost],
    ])
    // Frames that were queued before the close are sent.
    expect(Buffer.concat(chunks)).toHaveLength(24)
    expect(mux.open(1, 0, Buffer.from("{}"))).toBeUndefined()
    expect(mux.streams.size).toBe(0)
  })

  it("drops the rest of a chunk in which it is closed, and drains no stream after it", async () => {
    const { mux, opened } = recorded(false)
    const stream = open(mux)
    await turn()
    stream.write(Buffer.from("abc"))
    const done: Array<string> = []
    stream.onDrain = () => void done.push("drained")
    stream.onReset = () => void done.push("reset")
    const close = bytesOf(frame.open, 2, Buffer.from([1, 0]))
    const closing = new Mux({ write: () => true }, true, {
      open: (one) => (opened.push(one), closing.close()),
      control: () => void done.push("control"),
    })
    closing.receive(Buffer.concat([close, openFrame(4), bytesOf(frame.hello, 0, Buffer.alloc(0))]))
    expect(opened.map(({ id, isOpen }) => [id, isOpen])).toEqual([[2, false]])
    mux.close()
    mux.drained()
    expect([done, mux.queued]).toEqual([["reset"], 0])
  })

  it("confirms pings in their order, and all of them at its close", async () => {
    const { mux, sent } = recorded()
    const confirmed: Array<number> = []
    for (const n of [1, 2, 3]) mux.ping(() => void confirmed.push(n))
    const pings = await sent()
    expect(pings.map(([type, id, { length }]) => [type, id, length])).toEqual(pings.map(() => [frame.ping, 0, 8]))
    mux.receive(bytesOf(frame.pong, 0, pings[0]![2]))
    expect(confirmed).toEqual([1])
    expect(mux.roundTrip).toBeLessThan(1_000)
    mux.close()
    expect(confirmed).toEqual([1, 2, 3])
    mux.ping(() => void confirmed.push(4))
    expect(confirmed).toEqual([1, 2, 3, 4])
  })
})

describe("a link", () => {
  const carried = () => {
    const written: Array<Buffer> = []
    const told: Array<unknown> = []
    const carrier = new Duplex({ read: () => {}, write: (chunk, _, done) => (written.push(chunk), done()) })
    const link = makeLink(carrier, Buffer.alloc(0), true, {
      open: (_, kind, flags, meta) => void told.push(["open", kind, flags, meta]),
      hello: (hello) => void told.push(["hello", hello]),
      status: (status) => void told.push(["status", status]),
      goaway: (reason, more) => void told.push(["goaway", reason, more]),
      close: (reason) => void told.push(["close", reason]),
    })
    return { link, told, written, receive: (bytes: Buffer) => carrier.emit("data", bytes), carrier }
  }

  it("closes on metadata that is not a JSON object", () => {
    for (const text of ["[]", "null", '"text"', "7", "{", "{}x"])
      for (const type of [frame.hello, frame.status]) {
        const { told, receive } = carried()
        receive(bytesOf(type, 0, Buffer.from(text)))
        expect(told).toEqual([["close", "protocol: metadata that is no JSON object"]])
      }
    const { told, receive } = carried()
    receive(bytesOf(frame.open, 2, Buffer.from([2, 1, ...Buffer.from("[]")])))
    expect(told).toEqual([["close", "protocol: metadata that is no JSON object"]])
  })

  it("reports the hello, the status, the streams and the goaway of its peer", () => {
    const { told, receive } = carried()
    receive(bytesOf(frame.hello, 0, Buffer.from('{"version":1}')))
    receive(bytesOf(frame.status, 0, Buffer.alloc(0)))
    receive(bytesOf(frame.open, 2, Buffer.from([2, 1, ...Buffer.from('{"peer":"a"}')])))
    // A reason without the fields that follow it, and without the reason itself.
    receive(bytesOf(frame.goaway, 0, Buffer.from([0, goaway.revoked])))
    receive(bytesOf(frame.goaway, 0, Buffer.from([1])))
    receive(
      bytesOf(frame.goaway, 0, Buffer.from([0, goaway.replaced, 0, 0, 0, 0, 0, 0, 0, 0, ...Buffer.from('{"a":1}')])),
    )
    expect(told).toEqual([
      ["hello", { version: 1 }],
      ["status", {}],
      ["open", 2, 1, { peer: "a" }],
      ["goaway", goaway.revoked, {}],
      ["goaway", 0, {}],
      ["goaway", goaway.replaced, { a: 1 }],
    ])
  })

  it("says how long a draining edge waits, and who replaces the agent", async () => {
    const { link, written } = carried()
    await turn()
    written.splice(0)
    link.goaway(goaway.drain)
    link.goaway(goaway.replaced, { successor: 1 })
    await turn()
    const drain = Buffer.alloc(10)
    drain.writeUInt16BE(goaway.drain, 0)
    drain.writeUInt32BE(timing.drainMillis, 6)
    const replaced = Buffer.alloc(10)
    replaced.writeUInt16BE(goaway.replaced, 0)
    expect(Buffer.concat(written)).toEqual(
      Buffer.concat([
        bytesOf(frame.goaway, 0, drain),
        bytesOf(frame.goaway, 0, Buffer.concat([replaced, Buffer.from('{"successor":1}')])),
      ]),
    )
  })

  it("reports its close once, and nobody waits for its peer after it", async () => {
    const { link, told, carrier } = carried()
    const taken = link.taken()
    const stream = link.mux.open(1, 0, Buffer.from("{}"))!
    carrier.emit("end")
    link.close("again")
    carrier.emit("error", new Error("late"))
    await taken
    await link.taken()
    expect(told).toEqual([["close", "closed"]])
    expect(stream.isOpen).toBe(false)
  })
})
