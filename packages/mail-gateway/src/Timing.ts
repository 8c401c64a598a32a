/** Every interval of the mail gateway in one place; those it shares with the cluster stand there. */
const second = 1_000
const minute = 60 * second

export const Timing = {
  /**
   * How long a client may take: over DATA as a whole, over its session, between two of its lines, to end when we leave.
   * The library restarts its own timers at every byte, so the first two are ours.
   */
  smtpDataMillis: 5 * minute,
  smtpSessionMillis: 30 * minute,
  smtpIdleMillis: minute,
  smtpCloseMillis: 5 * second,
  /** The window that connections of a client are counted in. */
  smtpClientWindowMillis: minute,
  /** All look-ups of one message together; a sender's slow DNS makes the verdict `error`. */
  verdictMillis: 10 * second,
  /**
   * How often a judging thread at work is asked for a sign of life, how long it may owe one, when threads that nothing
   * was asked of are ended, and when one is tried again after none could be had.
   */
  judgingPingMillis: second / 4,
  judgingSilenceMillis: 5 * second,
  judgingIdleMillis: 5 * minute,
  judgingRetryMillis: minute,
  /** How long a thread keeps an answer of DNS to itself. */
  judgingAnswersMillis: 5 * second,
  /** One try of a name server. */
  dnsMillis: 2 * second,
  /** The relay's connection, its greeting, and its silence. */
  relayConnectMillis: 10 * second,
  relayGreetingMillis: 10 * second,
  relaySilenceMillis: 30 * second,
} as const
