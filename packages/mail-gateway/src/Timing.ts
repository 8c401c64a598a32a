/** Every interval of the mail gateway. Intervals shared with the cluster are in its `Timing.ts`. */
const second = 1_000
const minute = 60 * second

export const Timing = {
  /**
   * Limits of an SMTP client: for DATA as a whole, for a session, between two lines, and for closing at shutdown. The
   * library restarts its own timers at every byte, so the first two are enforced here.
   */
  smtpDataMillis: 5 * minute,
  smtpSessionMillis: 30 * minute,
  smtpIdleMillis: minute,
  smtpCloseMillis: 5 * second,
  /** The time in which a load balancer must send its PROXY header. */
  smtpProxyHeaderMillis: 5 * second,
  /** How long a Mailbox that is at most half full is assumed to accept mail. */
  recipientKnownMillis: second,
  /** The windows in which a client's connections, and its unknown recipients, are counted. */
  smtpClientWindowMillis: minute,
  smtpUnknownWindowMillis: 10 * minute,
  /** The additional delay of each reply to an unknown recipient, after the first few of a session. */
  tarpitStepMillis: 250,
  /** After this timeout a block list counts as not listing the client. */
  blockList: "3 seconds",
  /** How long an unknown client is deferred (greylisting). */
  greylistMillis: minute,
  /**
   * The wait before checking again for a mark left by another process: longer than it takes to remove a mark after its
   * 250.
   */
  smtpRepeatPause: "2 seconds",
  /** How long a transaction waits for an equal one in progress. */
  smtpEqual: "1 minute",
  /**
   * The interval between attempts to remove marks of answered transactions, and the timeout of the last attempt at
   * shutdown.
   */
  smtpForgetRetry: "1 second",
  smtpForgetLast: "5 seconds",
  /** The limit for all DNS look-ups of one message. After it the verdict is `error`. */
  verdictMillis: 10 * second,
  /**
   * Verdict workers: the interval of pings while busy, the silence after which a worker is killed, the idle time after
   * which it is ended, and the wait before retrying after a worker could not be started.
   */
  judgingPingMillis: second / 4,
  judgingSilenceMillis: 5 * second,
  judgingIdleMillis: 5 * minute,
  judgingRetryMillis: minute,
  /** How long a verdict worker caches DNS answers. */
  judgingAnswersMillis: 5 * second,
  /** A worker that takes longer for a message gets no further messages behind it. */
  judgingBriskMillis: 10,
  /** The limit for composing one message, and the idle time after which the composing thread is ended. */
  composingMillis: 30 * second,
  composingIdleMillis: 5 * minute,
  /** Additional time for the first message of a composing thread, which must start first. */
  composingStartMillis: 30 * second,
  /** The timeout of one query to a name server. */
  dnsMillis: 2 * second,
  /**
   * An IMAP client's time to log in; its idle time, at least half an hour (RFC 9051 section 5.4); the interval of
   * keep-alives to idle clients, and of deadline checks; the time to read pending output; and the time for a TLS
   * handshake.
   */
  imapLoginMillis: minute,
  imapIdleMillis: 31 * minute,
  imapStirMillis: 3 * minute,
  imapLookMillis: 10 * second,
  imapUnreadMillis: 2 * minute,
  imapHandshakeMillis: 30 * second,
  /**
   * A submission client's time to log in, its idle time (RFC 5321 section 4.5.3.2.7 asks for 5 minutes), the length of
   * its session, and the time for one message, which may come from a slow mobile connection.
   */
  submissionLoginMillis: minute,
  submissionIdleMillis: 5 * minute,
  submissionSessionMillis: 60 * minute,
  submissionDataMillis: 15 * minute,
  /** The wait before an IMAP session retries reading changes that it failed to read. */
  imapAgain: "1 second",
  /** The window in which failed logins are counted, the additional delay for each, and the maximum delay. */
  loginWindowMillis: 10 * minute,
  loginStepMillis: 250,
  loginMostMillis: 8 * second,
  /**
   * Limits for a receiving mail server: to connect, to greet, to reply to a command, to accept the next 64 KiB, and to
   * reply to the message. RFC 5321 section 4.5.3.2 recommends longer ones, but an attempt must end within the lease of
   * its row.
   */
  smtpConnectMillis: 10 * second,
  smtpGreetingMillis: 30 * second,
  smtpCommandMillis: minute,
  smtpBlockMillis: minute,
  smtpFinalMillis: 4 * minute,
  /** The limit for a whole attempt, and for waiting for a connection slot, which does not count as an attempt. */
  sendMillis: 9 * minute,
  sendTurnMillis: 30 * second,
  /** The time in which the relay must accept a system letter that a person is waiting for. */
  letterMillis: 30 * second,
  /** The idle time after which a connection to the relay, or to another domain's server, is closed. */
  relayIdleMillis: 30 * second,
  directIdleMillis: 5 * second,
  /** The first and the longest back-off for a domain whose servers could not be reached. */
  backOffMillis: 30 * second,
  backOffMostMillis: 15 * minute,
  /**
   * The timeout for fetching an MTA-STS policy (RFC 8461 section 3.3), and the minimum interval between failed
   * attempts.
   */
  policyMillis: 15 * second,
  policyRetryMillis: 5 * minute,
  /** The window in which bounces of one message are counted. */
  bounceWindowMillis: 24 * 60 * minute,
  /** The interval of checks whether new DKIM keys are published in DNS. */
  dkimLook: "2 minutes",
} as const
