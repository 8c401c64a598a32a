/** The numbers of `idt/1`, the protocol between an agent and an edge. Both ends and every version hold to them. */

export const version = 1
export const upgradeToken = "idt/1"
export const path = "/v1/tunnel"
/** Where proxies stand in between: frames in binary messages of a WebSocket. */
export const webSocketProtocol = "idt.1"

/** A frame is type u8, length u24, stream u32 (high bit 0), payload; the edge opens odd streams. */
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
/** Types from here on are ignored where unknown; below, an unknown type is an error. */
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
  /** Payload of a DATA frame, in bytes. */
  dataBytes: 64 * 1024,
  /** Payload of any other frame. */
  controlBytes: 16 * 1024,
  /** What may be under way on a stream before the receiver has delivered it, at first. */
  windowBytes: 256 * 1024,
  /** What a receiver may let that grow to, by giving more credit than was used. */
  windowAtMost: 4 * 1024 * 1024,
  streams: 10_000,
  /** What one link may hold back for its peer in all. */
  queuedBytes: 64 * 1024 * 1024,
} as const

export const timing = {
  pingMillis: 15_000,
  /** A link that said nothing for this long is dead. */
  silenceMillis: 30_000,
  /** While streams are open, so is one that said nothing for `quietMillis` and then did not answer a ping for `answerMillis`. */
  quietMillis: 2_000,
  answerMillis: 7_000,
  /** So is one whose carrier took nothing for this long. */
  stalledMillis: 20_000,
  /** What is under way on the link of an edge that goes down has this long to end. */
  drainMillis: 180_000,
} as const
