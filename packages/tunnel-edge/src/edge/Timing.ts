/**
 * Every interval and deadline of the edge in one place, since they depend on one another. The protocol's own (pings,
 * silence, drain) are its numbers and stand in `protocol/Manifest.ts`; how long a name is kept stands with its cache in
 * {@link Routes}; a link's lease is the cluster's (`cluster/tunnel/TunnelLinks.ts`).
 */
export const Timing = {
  // --- A public HTTP connection. Each state of it has one deadline at most, in milliseconds.

  /** A connection says its first bytes within this time. */
  firstBytesMillis: 30_000,
  /** From the first byte of TLS: a client has said its hello, and from there the handshake is done, however it drips. */
  helloMillis: 10_000,
  /** From there to the first whole head, so that a head which drips holds a socket for a minute at most. */
  headMillis: 30_000,
  /** From the opening of the stream to the first byte of the agent's answer. */
  firstByteMillis: 60_000,
  /** Once it has begun to be answered: nothing either way for this long. Longer than the first byte may take, or a second request would have less time than the first. */
  idleMillis: 120_000,
  /** Answers under way when a later request is refused have this long; it is not worth more to a client that errs. */
  tailMillis: 10_000,
  /** The client has this long to take the last answer and leave. */
  lingerMillis: 2_000,

  // --- A raw connection (TCP port, TLS that is not opened here)

  /** Found dead by the kernel well before it counts as idle, so that only a live peer may be silent for an hour. */
  rawKeepAliveMillis: 60_000,
  rawIdleMillis: 3_600_000,

  // --- Settings of open connections

  /** A look that the store did not answer is taken again. */
  standingAgain: "1 second",
  /** How often every name with open connections is looked at, whether or not word came; what is kept of a name lives as long. */
  standingEvery: "30 seconds",

  // --- Links

  /** How often credentials of links are judged again: a revocation reaches them within a second. */
  judgeEvery: "1 second",
  /** A connection that was refused a link has this long to read why. */
  refusedMillis: 2_000,
  /** A link that was replaced is told and may hand over; one that was revoked is only told. */
  partingMillis: { replaced: 1_000, revoked: 100 },

  // --- TCP ports

  /** Between two tries to listen on a port that is in use. */
  portAgain: "1 second",
  /** Health tells of a port that another program held for this long. */
  portToldMillis: 3_600_000,

  // --- Other edges

  /** A dial that takes longer goes elsewhere: shorter than a name with lost links is waited for (3 s). */
  peerDialMillis: 2_000,
  /** How far the clocks of two edges may be apart. */
  peerStampMillis: 60_000,

  // --- What goes on by the clock

  /** Between two tries for a transfer lease that could not be had. */
  leaseAgainMillis: 1_000,
  /** How often counted bytes are written down: what a crash of the edge forgives. */
  flushEvery: "5 seconds",

  // --- Going down. All of it within `EdgeSettings.drainMillis`, of which connections that last may use the whole.

  /** Agents get this long to hear the goaway before anything is judged idle. */
  drainNoticeMillis: 100,
  drainStepMillis: 50,
  /** An agent that has another edge is gone in a moment; one that has none keeps its idle link no longer than this. */
  drainLinksMillis: 2_000,
  /** A connection between requests looks like this; so does a stream of events that has nothing to tell. */
  drainIdleMillis: 5_000,
  /** Requests and answers get this long; what lasts by its nature (WebSocket, TCP) gets the whole drain. */
  drainRequestMillis: 30_000,
  /** The actors of this process may be gone by then; what is not told of a lease is forgiven. */
  drainFlush: "1 second",
} as const
