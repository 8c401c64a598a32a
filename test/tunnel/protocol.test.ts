import * as manifest from "@svc/tunnel-edge/protocol/Manifest"
import { Mux, type MuxStream, ProtocolError } from "@svc/tunnel-edge/protocol/Mux"
import { encode, Refusal } from "@svc/tunnel-edge/protocol/RequestHead"
import { RequestSplitter } from "@svc/tunnel-edge/protocol/RequestSplitter"
import * as fc from "fast-check"
import { describe, expect, it, vi } from "vitest"

/** Creates two connected endpoints that exchange bytes in pieces of the given sizes. */
const pair = (sizes: () => number) => {
  const opened: Array<MuxStream> = []
  const deliver = (to: () => Mux, chunks: ReadonlyArray<Buffer>) => {
    for (let rest: Buffer = Buffer.concat(chunks); rest.length > 0;) {
      const size = Math.max(1, sizes())
      to().receive(Buffer.from(rest.subarray(0, size)))
      rest = rest.subarray(size)
    }
    return true
  }
  const edge: Mux = new Mux({ write: (chunks) => deliver(() => agent, chunks) }, true, {
    open: () => {},
    control: () => {},
  })
  const agent: Mux = new Mux({ write: (chunks) => deliver(() => edge, chunks) }, false, {
    open: (stream) => opened.push(stream),
    control: () => {},
  })
  return { edge, agent, opened }
}
const turns = async (until: () => boolean) => {
  for (let turn = 0; turn < 5_000 && !until(); turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe("the mux", () => {
  it("delivers every byte of every stream in order, however the carrier splits them", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.uint8Array({ maxLength: 5_000 }), { maxLength: 8 }), { minLength: 1, maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 3_000 }), { minLength: 1, maxLength: 20 }),
        async (contents, sizes) => {
          let at = 0
          const { edge, opened } = pair(() => sizes[at++ % sizes.length]!)
          const streams = contents.map(() => edge.open(manifest.kind.http, 0, Buffer.from("{}"))!)
          await turns(() => opened.length === contents.length)
          const got = opened.map((stream) => {
            const state = { bytes: [] as Array<Buffer>, ended: false }
            stream.onData = (bytes) => {
              state.bytes.push(Buffer.from(bytes))
              stream.delivered(bytes.length)
            }
            stream.onEnd = () => (state.ended = true)
            return state
          })
          contents.forEach((pieces, index) => {
            for (const piece of pieces) streams[index]!.write(Buffer.from(piece))
            streams[index]!.end()
          })
          await turns(() => got.every(({ ended }) => ended))
          contents.forEach((pieces, index) => {
            expect(got[index]!.ended).toBe(true)
            expect(
              Buffer.concat(got[index]!.bytes).equals(Buffer.concat(pieces.map((piece) => Buffer.from(piece)))),
            ).toBe(true)
          })
        },
      ),
      { numRuns: 40 },
    )
  })

  it("blocks only the stream whose reader stalls", async () => {
    const { edge, opened } = pair(() => 65_536)
    const [stalled, quick] = [edge.open(1, 0, Buffer.from("{}"))!, edge.open(1, 0, Buffer.from("{}"))!]
    await turns(() => opened.length === 2)
    let arrived = 0
    opened[0]!.onData = () => {}
    opened[1]!.onData = (bytes) => {
      arrived += bytes.length
      opened[1]!.delivered(bytes.length)
    }
    const chunk = Buffer.alloc(64 * 1024)
    for (let i = 0; i < 64; i++) stalled.write(chunk)
    for (let i = 0; i < 64; i++) quick.write(chunk)
    await turns(() => arrived === 64 * chunk.length)
    expect(arrived).toBe(64 * chunk.length)
    expect(edge.queued).toBe(64 * chunk.length - manifest.limits.windowBytes)
    stalled.reset(manifest.reset.cancel)
    expect(edge.queued).toBe(0)
  })

  it("widens the window of a fast reader up to 4 MiB", async () => {
    const { edge, opened } = pair(() => 65_536)
    const writer = edge.open(1, 0, Buffer.from("{}"))!
    await turns(() => opened.length === 1)
    const reader = opened[0]!
    const chunk = Buffer.alloc(64 * 1024)
    /** Writes to a reader that has stopped reading, and returns the number of bytes in flight. */
    const underWay = async () => {
      let arrived = 0
      reader.onData = (bytes) => (arrived += bytes.length)
      for (let i = 0; i < 128; i++) writer.write(chunk)
      await turns(() => arrived > 0 && arrived + edge.queued === 128 * chunk.length)
      reader.onData = (bytes) => reader.delivered(bytes.length)
      const stalled = arrived
      reader.delivered(arrived)
      await turns(() => edge.queued === 0)
      return stalled
    }
    expect(await underWay()).toBe(manifest.limits.windowBytes)
    for (let i = 0; i < 16; i++) await underWay()
    // Up to a quarter of the window may be delivered and not acknowledged yet.
    const widest = await underWay()
    expect(widest).toBeLessThanOrEqual(manifest.limits.windowAtMost)
    expect(widest).toBeGreaterThan(manifest.limits.windowAtMost * 0.75)
  })

  const frame = (type: number, stream: number, payload: Buffer | number = 0) => {
    const bytes = typeof payload === "number" ? Buffer.alloc(payload) : payload
    const head = Buffer.alloc(8)
    head[0] = type
    head.writeUIntBE(bytes.length, 1, 3)
    head.writeUInt32BE(stream, 4)
    return Buffer.concat([head, bytes])
  }
  const open = Buffer.concat([Buffer.from([1, 0]), Buffer.from("{}")])
  it.each([
    ["data of a stream that was never opened", frame(2, 7, 1)],
    ["an even stream opened by the edge", frame(1, 2, open)],
    ["a stream opened twice", Buffer.concat([frame(1, 1, open), frame(1, 1, open)])],
    ["a stream opened backwards", Buffer.concat([frame(1, 3, open), frame(1, 1, open)])],
    ["data over 64 KiB", frame(2, 1, 64 * 1024 + 1)],
    ["a control frame over 16 KiB", frame(0, 0, 16 * 1024 + 1)],
    ["an unknown type below 32", frame(17, 0)],
    ["a high bit in the stream", frame(2, 0x8000_0001, 1)],
    ["data after the end", Buffer.concat([frame(1, 1, open), frame(3, 1), frame(2, 1, 1)])],
    ["two ends", Buffer.concat([frame(1, 1, open), frame(3, 1), frame(3, 1)])],
    [
      "more than the window",
      Buffer.concat([frame(1, 1, open), ...Array.from({ length: 17 }, () => frame(2, 1, 64 * 1024))]),
    ],
    ["more credit than any window has", Buffer.concat([frame(1, 1, open), frame(5, 1, Buffer.from([0, 0x40, 0, 0]))])],
    ["a ping of another length", frame(6, 0, 7)],
  ])("fails on %s", (_, bytes) => {
    const agent = new Mux({ write: () => true }, false, { open: () => {}, control: () => {} })
    expect(() => agent.receive(bytes)).toThrow(ProtocolError)
  })

  it("returns credit at each quarter of the window, and doubles the window while it limits the reader", async () => {
    let now = 0
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now)
    /** Returns the credit that is returned for each quarter of the window, if the reader takes this long for it. */
    const credits = async (millis: number, quarters: number) => {
      const written: Array<Buffer> = []
      const opened: Array<MuxStream> = []
      const edge = new Mux({ write: (chunks) => (written.push(...chunks), true) }, true, {
        open: (stream) => void opened.push(stream),
        control: () => {},
      })
      const sent = async () => {
        await new Promise((resolve) => setImmediate(resolve))
        return Buffer.concat(written.splice(0))
      }
      edge.receive(frame(manifest.frame.open, 2, open))
      const returned: Array<number> = []
      let window: number = manifest.limits.windowBytes
      while (returned.length < quarters) {
        now += millis
        opened[0]!.delivered(window / 4 - 1)
        expect(await sent()).toHaveLength(0)
        opened[0]!.delivered(1)
        const bytes = await sent()
        const credit = bytes.readUInt32BE(manifest.headerBytes)
        expect(bytes).toEqual(frame(manifest.frame.window, 2, bytes.subarray(manifest.headerBytes)))
        returned.push(credit / 1024)
        window += credit - window / 4
      }
      return returned
    }
    const same = (count: number, kib: number) => Array.from({ length: count }, () => kib)
    // A window limits a reader that takes less than two round trips of 1 s for a quarter, after 8 windows.
    const growth = [...same(31, 64), 320, ...same(15, 128), 640, ...same(15, 256), 1_280, ...same(15, 512), 2_560]
    expect(await credits(1_999, growth.length + 20)).toEqual([...growth, ...same(20, 1_024)])
    expect(await credits(2_000, 40)).toEqual(same(40, 64))
    clock.mockRestore()
  })

  it("opens even streams if its peer opens odd ones", () => {
    const agent = new Mux({ write: () => true }, false, { open: () => {}, control: () => {} })
    expect([1, 2].map(() => agent.open(1, 0, Buffer.from("{}"))?.id)).toEqual([2, 4])
    expect(() => agent.receive(frame(manifest.frame.data, 6, 1))).toThrow("never opened")
  })

  it("parses any bytes as frames or a protocol error", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 20 }), (pieces) => {
        const agent = new Mux({ write: () => true }, false, { open: () => {}, control: () => {} })
        try {
          for (const piece of pieces) agent.receive(Buffer.from(piece))
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError)
        }
      }),
      { numRuns: 500 },
    )
  })

  it("ignores frame types reserved for later versions", () => {
    const agent = new Mux({ write: () => true }, false, { open: () => {}, control: () => {} })
    agent.receive(frame(manifest.firstIgnorable + 3, 0, 10))
  })

  it("has the constants that both sides depend on", () => {
    expect({ ...manifest }).toEqual({
      firstIgnorable: 32,
      flag: { hopped: 1 },
      frame: { hello: 0, open: 1, data: 2, fin: 3, reset: 4, window: 5, ping: 6, pong: 7, goaway: 8, status: 9 },
      goaway: { drain: 1, replaced: 2, revoked: 3, upgrade: 4, idle: 5 },
      headerBytes: 8,
      kind: { http: 1, tcp: 2, passthrough: 3, probe: 4 },
      limits: {
        dataBytes: 65536,
        controlBytes: 16384,
        windowBytes: 262144,
        windowAtMost: 4194304,
        streams: 10000,
        queuedBytes: 67108864,
      },
      path: "/v1/tunnel",
      reset: {
        cancel: 1,
        local_refused: 2,
        local_timeout: 3,
        link_lost: 4,
        quota: 5,
        not_here: 6,
        overloaded: 7,
        policy: 8,
        protocol: 9,
        internal: 10,
      },
      timing: {
        pingMillis: 15000,
        silenceMillis: 30000,
        quietMillis: 2000,
        answerMillis: 7000,
        stalledMillis: 20000,
        drainMillis: 180000,
      },
      upgradeToken: "idt/1",
      version: 1,
      webSocketProtocol: "idt.1",
    })
  })
})

describe("the request splitter", () => {
  const split = (bytes: Buffer, sizes: ReadonlyArray<number>) => {
    const out: Array<Buffer> = []
    const targets: Array<string> = []
    const splitter = new RequestSplitter(
      (head) => {
        targets.push(head.target)
        out.push(
          encode(head, { client: "192.0.2.1", proto: "http", host: undefined, ownAuthorization: false, isLast: false }),
        )
      },
      (piece) => out.push(Buffer.from(piece)),
    )
    let at = 0
    for (let n = 0; at < bytes.length; n++) {
      const size = sizes[n % sizes.length]!
      splitter.feed(bytes.subarray(at, at + size))
      at += size
    }
    return { out: Buffer.concat(out).toString("latin1"), targets }
  }
  const request = fc.record({
    path: fc.stringMatching(/^\/[a-z0-9]{0,20}$/),
    body: fc.option(fc.uint8Array({ maxLength: 300 })),
    chunked: fc.boolean(),
  })
  const render = ({ path, body, chunked }: { path: string; body: Uint8Array | null; chunked: boolean }) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: a.example\r\n`
    if (body === null) return Buffer.from(`${head}\r\n`)
    const bytes = Buffer.from(body)
    if (!chunked) return Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`), bytes])
    const half = bytes.length >> 1
    const pieces = [bytes.subarray(0, half), bytes.subarray(half)].filter(({ length }) => length > 0)
    return Buffer.concat([
      Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`),
      ...pieces.flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]),
      Buffer.from("0\r\nX-Sum: 1\r\n\r\n"),
    ])
  }

  it("finds the same requests however the bytes are split", () => {
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 10 }),
        (requests, sizes) => {
          const bytes = Buffer.concat(requests.map(render))
          const complete = split(bytes, [bytes.length])
          expect(complete.targets).toEqual(requests.map(({ path }) => path))
          expect(split(bytes, sizes)).toEqual(complete)
        },
      ),
    )
  })

  it("parses any bytes as requests or a refusal", () => {
    const word = fc.constantFrom(
      "GET / HTTP/1.1\r\n",
      "Host: a\r\n",
      "Content-Length: 3\r\n",
      "Transfer-Encoding: chunked\r\n",
      "\r\n",
      "\n",
      "0\r\n\r\n",
      "3\r\nabc\r\n",
      "Connection: upgrade\r\n",
      "\0",
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 20 }), (words) => {
        try {
          split(Buffer.from(words.join(""), "latin1"), [7])
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal)
        }
      }),
      { numRuns: 500 },
    )
  })
})
