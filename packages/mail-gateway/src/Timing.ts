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
  /** A balancer says at once whose connection it hands on. */
  smtpProxyHeaderMillis: 5 * second,
  /** How long a Mailbox with room to spare is known to take mail. */
  recipientKnownMillis: second,
  /** The windows that connections of a client, and recipients it named that do not exist, are counted in. */
  smtpClientWindowMillis: minute,
  smtpUnknownWindowMillis: 10 * minute,
  /** Each unknown recipient of a session after the first few is answered this much later than the one before. */
  tarpitStepMillis: 250,
  /** A block list that has not answered by then lists nobody. */
  blockList: "3 seconds",
  /** How long a client not seen before is kept waiting. */
  greylistMillis: minute,
  /** A mark that another process left is looked at again after this: longer than it takes to remove one after its 250. */
  smtpRepeatPause: "2 seconds",
  /** How long a transaction waits for an equal one that is under way. */
  smtpEqual: "1 minute",
  /** Between two tries to remove the marks of what was answered, and what the last try of a process may take. */
  smtpForgetRetry: "1 second",
  smtpForgetLast: "5 seconds",
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
  /** A message that a judging thread works on for longer is not one that others should stand behind. */
  judgingBriskMillis: 10,
  /** How long one message may be written, and how long a thread stays for the next. */
  composingMillis: 30 * second,
  composingIdleMillis: 5 * minute,
  /** One try of a name server. */
  dnsMillis: 2 * second,
  /**
   * An IMAP client's time to log in, and to say something again, which is half an hour at the least (RFC 9051 section
   * 5.4); how often an idle one hears that we are there, and all are looked at; how long one may leave what it was sent
   * unread, and a TLS handshake take.
   */
  imapLoginMillis: minute,
  imapIdleMillis: 31 * minute,
  imapStirMillis: 3 * minute,
  imapLookMillis: 10 * second,
  imapUnreadMillis: 2 * minute,
  imapHandshakeMillis: 30 * second,
  /**
   * A mail program's time to log in; its silence, which RFC 5321 section 4.5.3.2.7 wants to be heard out for as long; its
   * session, and one message of it, which may come from a telephone.
   */
  submissionLoginMillis: minute,
  submissionIdleMillis: 5 * minute,
  submissionSessionMillis: 60 * minute,
  submissionDataMillis: 15 * minute,
  /** Until a session that was to tell an idle client of changes, and could not see them, looks again. */
  imapAgain: "1 second",
  /** The window that failed logins are counted in, and what each of them is answered later than the one before, at most. */
  loginWindowMillis: 10 * minute,
  loginStepMillis: 250,
  loginMostMillis: 8 * second,
  /**
   * What a mail server that we send to may take: to be connected, to greet, to answer a command, to take the next 64 KiB, to
   * answer the message. RFC 5321 section 4.5.3.2 has longer ones; an attempt must end within the lease of its row.
   */
  smtpConnectMillis: 10 * second,
  smtpGreetingMillis: 30 * second,
  smtpCommandMillis: minute,
  smtpBlockMillis: minute,
  smtpFinalMillis: 4 * minute,
  /** All of an attempt, whatever its servers do; and how long it waits for its turn, which is no attempt yet. */
  sendMillis: 9 * minute,
  sendTurnMillis: 30 * second,
  /** A letter to a person who waits for it: until the relay has it. */
  letterMillis: 30 * second,
  /** A connection to which nothing more was given: the relay's, and another domain's. */
  relayIdleMillis: 30 * second,
  directIdleMillis: 5 * second,
  /** A domain none of whose servers could be reached is left alone: at first, and at most. */
  backOffMillis: 30 * second,
  backOffMostMillis: 15 * minute,
  /** Fetching a domain's MTA-STS policy (RFC 8461 section 3.3), and the least time between two tries where it fails. */
  policyMillis: 15 * second,
  policyRetryMillis: 5 * minute,
  /** The window in which the bounces of one message are counted. */
  bounceWindowMillis: 24 * 60 * minute,
  /** How often DNS is asked whether new DKIM keys are published. */
  dkimLook: "2 minutes",
} as const
