/** Constants of `idt/1`, the protocol between agents and edges. All versions on both sides must agree on them. */

export const version = 1
export const upgradeToken = "idt/1"
export const path = "/v1/tunnel"
/** WebSocket subprotocol for connections through proxies; each binary message carries frames. */
export const webSocketProtocol = "idt.1"

/** A frame consists of type u8, length u24, stream u32 (high bit 0) and payload. The edge opens odd streams. */
export const headerBytes = 8

export const frame = {
  hello: 0,
  open: 1,
  data: 2,
  fin: 3,
  reset: 4,
  window: 5,
  ping: 6,
  pong: 7,
  goaway: 8,
  status: 9,
} as const
/** Unknown types from this value on are ignored; below it they are an error. */
export const firstIgnorable = 32

export const kind = { http: 1, tcp: 2, passthrough: 3, probe: 4 } as const
export const flag = { hopped: 1 } as const

export const reset = {
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
} as const
export type ResetCode = (typeof reset)[keyof typeof reset]

export const goaway = { drain: 1, replaced: 2, revoked: 3, upgrade: 4, idle: 5 } as const
export type GoawayReason = (typeof goaway)[keyof typeof goaway]

export const limits = {
  /** Largest payload of a DATA frame, in bytes. */
  dataBytes: 64 * 1024,
  /** Largest payload of any other frame, in bytes. */
  controlBytes: 16 * 1024,
  /** Initial receive window of a stream, in bytes. */
  windowBytes: 256 * 1024,
  /** Largest receive window that a receiver may grant. */
  windowAtMost: 4 * 1024 * 1024,
  streams: 10_000,
  /** Largest number of bytes that one link may queue for its peer. */
  queuedBytes: 64 * 1024 * 1024,
} as const

export const timing = {
  pingMillis: 15_000,
  /** A link without any frame from the peer for this long is dead. */
  silenceMillis: 30_000,
  /**
   * While streams are open, a link is also dead if its peer was silent for `quietMillis` and then does not answer a
   * ping within `answerMillis`.
   */
  quietMillis: 2_000,
  answerMillis: 7_000,
  /** A link is also dead if its socket accepts no bytes for this long. */
  stalledMillis: 20_000,
  /** Time for streams in flight on the link of a draining edge. */
  drainMillis: 180_000,
} as const
