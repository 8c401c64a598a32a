/** Frames of a link with one open stream, valid and invalid. */
import { frame, limits as linkLimits } from "@svc/tunnel-edge/protocol/Manifest"

const bytes = (type: number, id: number, payload: Buffer) => {
  const head = Buffer.alloc(8)
  head[0] = type
  head.writeUIntBE(payload.length, 1, 3)
  head.writeUInt32BE(id, 4)
  return Buffer.concat([head, payload])
}
const u16 = (value: number) => Buffer.from([value >> 8, value & 255])
const u32 = (value: number) => {
  const buffer = Buffer.alloc(4)
  buffer.writeUInt32BE(value)
  return buffer
}
const opened = Buffer.from([1, 0, 123, 125])
const own = 1
const peer = 2
const empty = Buffer.alloc(0)
export const frames: Readonly<Record<string, ReadonlyArray<Buffer>>> = {
  hello: [bytes(frame.hello, 0, Buffer.from("hi"))],
  goaway: [bytes(frame.goaway, 0, u16(1))],
  status: [bytes(frame.status, 0, empty)],
  ping: [bytes(frame.ping, 0, Buffer.alloc(8, 7))],
  "a short ping": [bytes(frame.ping, 0, Buffer.alloc(7))],
  "a short pong": [bytes(frame.pong, 0, Buffer.alloc(9))],
  open: [bytes(frame.open, peer, opened)],
  "open with nothing": [bytes(frame.open, peer, Buffer.from([1]))],
  "open without metadata": [bytes(frame.open, peer, Buffer.from([1, 0]))],
  "open of the wrong side": [bytes(frame.open, 3, opened)],
  "open twice": [bytes(frame.open, peer, opened), bytes(frame.open, peer, opened)],
  "open of an earlier id": [bytes(frame.open, 8, opened), bytes(frame.open, 6, opened)],
  "data of its own stream": [bytes(frame.data, own, Buffer.from("data"))],
  "data of the peer's stream": [bytes(frame.open, peer, opened), bytes(frame.data, peer, Buffer.from("data"))],
  "no data": [bytes(frame.data, own, empty)],
  "data of no stream": [bytes(frame.data, 99, Buffer.from("data"))],
  "data of a later stream of the peer": [bytes(frame.data, 98, Buffer.from("data"))],
  "data of a stream that was reset": [bytes(frame.reset, own, u16(2)), bytes(frame.data, own, Buffer.from("data"))],
  "data of the peer's stream that was reset": [
    bytes(frame.open, peer, opened),
    bytes(frame.reset, peer, u16(2)),
    bytes(frame.data, peer, Buffer.from("data")),
  ],
  "data after its end": [bytes(frame.fin, own, empty), bytes(frame.data, own, Buffer.from("data"))],
  "the most data": [bytes(frame.data, own, Buffer.alloc(linkLimits.dataBytes))],
  "too much data in a frame": [bytes(frame.data, own, Buffer.alloc(linkLimits.dataBytes + 1))],
  "a full window": Array.from({ length: linkLimits.windowBytes / linkLimits.dataBytes }, () =>
    bytes(frame.data, own, Buffer.alloc(linkLimits.dataBytes)),
  ),
  "more than the window": [
    ...Array.from({ length: linkLimits.windowBytes / linkLimits.dataBytes }, () =>
      bytes(frame.data, own, Buffer.alloc(linkLimits.dataBytes)),
    ),
    bytes(frame.data, own, Buffer.from("x")),
  ],
  "the end": [bytes(frame.fin, own, empty)],
  "the end twice": [bytes(frame.fin, own, empty), bytes(frame.fin, own, empty)],
  "the end of no stream": [bytes(frame.fin, 99, empty)],
  "a reset": [bytes(frame.reset, own, Buffer.concat([u16(5), Buffer.from("text")]))],
  "a reset without a code": [bytes(frame.reset, own, empty)],
  "a reset of no stream": [bytes(frame.reset, 99, u16(2))],
  credit: [bytes(frame.window, own, u32(10))],
  "the most credit": [bytes(frame.window, own, u32(linkLimits.windowAtMost - linkLimits.windowBytes))],
  "too much credit": [bytes(frame.window, own, u32(linkLimits.windowAtMost - linkLimits.windowBytes + 1))],
  "a short window": [bytes(frame.window, own, u16(1))],
  "the largest control frame": [bytes(frame.hello, 0, Buffer.alloc(linkLimits.controlBytes))],
  "too large a control frame": [bytes(frame.hello, 0, Buffer.alloc(linkLimits.controlBytes + 1))],
  "an unknown frame": [bytes(31, 0, empty)],
  "a frame that may be ignored": [bytes(32, 0, Buffer.from("x"))],
  "a stream id with its high bit": [bytes(frame.data, 0x8000_0000, Buffer.from("x"))],
}
