/**
 * All intervals and deadlines of the edge in one place, because they depend on each other. The intervals of the link
 * protocol (ping, silence, drain) are part of `protocol/Manifest.ts`, the lifetime of a cached name is next to its
 * cache in {@link Routes}, and the cluster defines the lease of a link (`cluster/tunnel/TunnelLinks.ts`).
 */
export const Timing = {
  // --- Public HTTP connections. Each state has at most one deadline, in milliseconds.

  /** Time from accepting a connection to its first byte. */
  firstBytesMillis: 30_000,
  /** Time from the first TLS byte to the complete ClientHello, and from there to the end of the handshake. */
  helloMillis: 10_000,
  /** Time to the complete head of the first request. Limits a client that sends slowly to about one minute in total. */
  headMillis: 30_000,
  /** Time from opening the stream to the first byte of the agent's response. */
  firstByteMillis: 60_000,
  /**
   * Idle limit in both directions after the first response byte. Must exceed the time to the first byte, or a second
   * request would have less time than the first.
   */
  idleMillis: 120_000,
  /** Time for earlier responses to finish after a later request was refused. */
  tailMillis: 10_000,
  /** Time for the client to read the last response and close. */
  lingerMillis: 2_000,

  // --- Raw connections (TCP port, TLS passthrough)

  /**
   * TCP keep-alive detects a dead peer well before the idle limit, so that only live peers can be silent for an hour.
   */
  rawKeepAliveMillis: 60_000,
  rawIdleMillis: 3_600_000,

  // --- Settings of open connections

  /** Delay before a failed lookup of the settings is repeated. */
  standingAgain: "1 second",
  /**
   * Interval at which the settings of every name with open connections are looked up, even without a notification.
   * Equal to the lifetime of a cached name.
   */
  standingEvery: "30 seconds",

  // --- Links

  /** Interval at which the credentials of links are rechecked. A revocation takes effect within this time. */
  judgeEvery: "1 second",
  /** Time for a client to read why its link was refused. */
  refusedMillis: 2_000,
  /**
   * Time between the GOAWAY and the close of a link. A replaced agent may hand over its requests; a revoked one may
   * not.
   */
  partingMillis: { replaced: 1_000, revoked: 100 },

  // --- TCP ports

  /** Delay between attempts to listen on a port that is in use. */
  portAgain: "1 second",
  /** How long the health check reports a port that another program held. */
  portToldMillis: 3_600_000,

  // --- Other edges

  /** Time to dial another edge. Must be shorter than the time that a request waits for a lost link (3 s). */
  peerDialMillis: 2_000,
  /** Largest accepted clock difference between two edges. */
  peerStampMillis: 60_000,

  // --- Periodic work

  /** Delay before a failed request for a transfer lease is repeated. */
  leaseAgainMillis: 1_000,
  /** Interval at which counted bytes are stored. A crash of the edge loses the bytes counted since then. */
  flushEvery: "5 seconds",

  // --- Shutdown. All of these are within `EdgeSettings.drainMillis`; long-lived connections may use all of it.

  /** Time for agents to receive the GOAWAY before connections are checked for idleness. */
  drainNoticeMillis: 100,
  drainStepMillis: 50,
  /** Time for agents to move to another edge. An agent without another edge keeps its idle link for this time. */
  drainLinksMillis: 2_000,
  /** A connection without traffic for this time counts as idle. Includes event streams that have no events. */
  drainIdleMillis: 5_000,
  /** Time for requests in flight. Long-lived connections (WebSocket, TCP) get the whole drain time. */
  drainRequestMillis: 30_000,
  /**
   * Time for the last usage report. The actors may already have stopped; bytes that are not reported are not charged.
   */
  drainFlush: "1 second",
  /**
   * Time for notifying the actors of closed links. Short, because the actors of this process may already have stopped.
   * Another edge notifies the rest.
   */
  drainRemovals: "250 millis",
} as const
