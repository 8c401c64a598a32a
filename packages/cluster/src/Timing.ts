/**
 * All intervals of the cluster, since they depend on one another: a lease is longer than the attempt it covers, a request to an
 * actor waits longer than a failover takes, and a drain is shorter than the time a process has to shut down. Names that end in
 * `Millis` are milliseconds; the others are durations of Effect or intervals of PostgreSQL.
 */
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

export const Timing = {
  // --- The cluster

  /** How long a frozen runner keeps its shards. A killed one loses them when its connection to PostgreSQL ends. */
  shardLockExpiration: "2700 millis",
  shardLockRefresh: "900 millis",
  /** After this time, a confirmation of the shard locks is late: well below `shardLockRefresh`, the limit of the library. */
  shardLockPatience: "500 millis",
  /** How often each process looks for crashed runners. Runners that register or leave are announced. */
  refreshAssignments: "200 millis",
  /** The interval of attempts to acquire a shard that its previous owner still holds. */
  shardAcquire: "20 millis",
  /** How long a message waits before it is sent again while its shard moves to another process. */
  sendRetry: "20 millis",
  runnerHealthCheck: "1 second",
  /** How long the TLS handshake of a connection to a runner may take. */
  runnerHandshakeMillis: 2 * second,
  /** How long a runner that shuts down waits for the connections of other runners to close. */
  runnerClose: "2 seconds",
  /** How often each process compares its clock with the store's. */
  storeClock: "5 seconds",
  /** How often a runner reacquires assigned shards that it lost, for example with its lock session. */
  shardLook: "500 millis",

  // --- Listeners

  /** How often certificate files are checked for changes. */
  certificateLook: "5 seconds",

  // --- Requests to actors

  /** The timeout of a request to an actor, then `unavailable`: longer than the failover of a frozen runner (about 3 s). */
  ask: "5 seconds",
  /** An SMTP client waits minutes for its reply, so this timeout may cover a failover and a slow disk. */
  askSmtp: "30 seconds",
  /** The delay before a request is retried whose actor has just moved. */
  askRetry: "100 millis",

  // --- Actors and their work

  /** An actor is unloaded after this time without a request. */
  actorIdle: "2 minutes",
  /** How long running writes may take when a shard moves or the process shuts down. */
  drain: "8 seconds",
  /** How much of the drain is spent waiting for attempts in flight. */
  settle: "3 seconds",
  /** Lease of an attempt, longer than any attempt lasts. Then another process may retry. */
  leaseMillis: minute,
  /** How often, and for how long, an attempt tries to record what it did while the store is away: less than a lease. */
  recordPause: "500 millis",
  recordAtMost: "30 seconds",
  /**
   * How often a queue with attempts in flight looks for deliveries that a crashed process left leased: each freed slot
   * would look otherwise, while due deliveries wait for a slot.
   */
  abandonedLookMillis: 5_000,
  /** A saga whose actor crashed resumes this long after its last commit. */
  sagaLeaseMillis: 5 * second,
  /** An actor that is busy checks for other due work this often. */
  busyLookMillis: second,
  /** Work due later than this is left to `Overdue`, so that a wait of hours keeps no actor in memory. */
  residentWaitMillis: 90 * second,
  /** How often `Overdue` scans, and how late a row is before it counts as abandoned. */
  overdueScan: "2 seconds",
  overdueGraceMillis: 2 * second,
  /** How often the lateness of work is measured for the metrics. */
  latenessLookMillis: 15 * second,

  /**
   * How long a permit to start sending is valid (`actor/Permit.ts`). A stop waits for at most this time, so it is shorter than the
   * timeout of a request. The shards of a frozen owner move later than this, so a new owner rarely has to wait.
   */
  permitMillis: 2 * second,
  /** How often a stop checks whether the permits of former owners have expired. */
  permitLookMillis: 100,

  // --- The store

  /** How long a migration waits for a lock, while later statements queue behind it; then it rolls back and retries. */
  migrationLockMillis: 2 * second,
  migrationRetry: "1 second",
  migrationTries: 60,
  /** The timeout of statements of requests; migrations and exports use a client without it. */
  statementTimeoutMillis: 5 * second,
  /** A connection without a response is closed after this: the server would have ended the statement earlier. */
  lineSilenceMillis: 6 * second,
  /** The same for long work: no batch and no statement of a migration takes this long. */
  lineSilenceUnhurriedMillis: 10 * minute,
  lineLookMillis: 250,
  lineKeepAliveMillis: 10 * second,
  housekeeping: "10 minutes",
  /** How often the sizes of tables are measured for the metrics. */
  tableSizesMillis: 5 * minute,
  /** Crash recovery of the embedded server after a power cut may take a while. */
  embeddedStart: "2 minutes",
  /** How often a start checks whether the server accepts connections, and whether it exited. */
  embeddedPoll: "10 millis",
  embeddedDied: "500 millis",
  /** How long a start waits for the server that a former process is stopping; longer than the shell of its lease does. */
  embeddedLeaving: "65 seconds",
  /** How often a holder of a lease checks whether the server still runs. */
  embeddedWatch: "250 millis",
  /** How long the last process waits for the server to shut down. */
  embeddedStop: "15 seconds",
  /** The timeout of a health probe. */
  healthProbe: "2 seconds",

  // --- The feed of changes

  /** Notifications of changes are batched for this long. */
  feedGather: "20 millis",
  /** Notifications of changed resources, which open pages show within a second, are batched for this long. */
  resourcesGather: "250 millis",
  /** A page that hears nothing from its stream for longer than this checks whether the service is reachable. */
  streamBeat: "1 second",
  feedReconnect: "1 second",
  /** How late subscribers learn of a change whose notification was lost. */
  feedRecheck: "2 seconds",
  /** An Event that waits for older transactions is polled with growing pauses for this long. */
  settlingPause: "2 millis",
  settling: "2 seconds",

  // --- Credentials

  /** Long-lived connections notice a revocation within a second, query included. */
  credentialCheck: "800 millis",

  /** Show-once secrets are available for this long after `ready`. */
  showOnceMillis: hour,
  magicLinkMillis: 15 * minute,
  sessionMillis: 30 * day,
  /** `last_used_at` of a credential is updated at most this often. */
  lastUsedMillis: minute,

  // --- Access for clients (OAuth)

  /** How long an agent may use the approval of a sign-in at a site. */
  signInApprovedMillis: day,
  /** The lifetime of an ID token, and of the access token for the claims of the Identity. */
  idTokenMillis: 5 * minute,

  /** How long an authorization request waits for the decision of the account holder. */
  oauthRequestMillis: 15 * minute,
  codeMillis: minute,
  accessTokenMillis: hour,
  /** An unused refresh token expires after this. */
  refreshTokenMillis: 90 * day,
  /** A used refresh token is accepted again for this long, since its response may have been lost. */
  refreshReplayMillis: minute,
  documentTimeoutMillis: 3 * second,
  /** The bounds of the `max-age` of a client metadata document. */
  documentFreshMillis: { least: 5 * minute, most: day },
  /** How long the last copy of a document is used that cannot be fetched. */
  documentKeptMillis: 7 * day,
  /** How often pending notices about Grants are looked for. */
  grantNotices: "5 seconds",

  // --- The audit log

  /** How often a record that could not be stored is retried. */
  auditRetry: "1 second",
  /** How often refusals of past minutes are recorded, and counts of reads are flushed. */
  auditRefusals: "10 seconds",
  auditUsage: "10 seconds",
  /** How often the counts of usage are written. A crash loses the counts of this time. */
  usageFlush: "5 seconds",
  /** Reading the audit log is recorded once in this time for a credential and a client address. */
  auditReadingMillis: hour,
  /** Records are sealed this long after they were written, in batches. */
  auditSealMillis: 10 * second,
  /** How often a chain is checked again that the service refused to continue. */
  auditRefusedMillis: 10 * 60 * second,
  /** How often the end of a chain that has grown is signed and published. */
  auditHeadMillis: day,
  /** How often partitions of months are created and dropped, and unsealed records are looked for. */
  auditMonths: "10 minutes",

  // --- Limits and repeats

  /** The window that an Org's calls are counted in. */
  callWindowMillis: minute,
  /** How long an edge may hold a lease of the transfer budget, which is counted per day (UTC). */
  transferLeaseMillis: minute,
  transferWindowMillis: day,
  /**
   * How long the first response is kept for its `Idempotency-Key`. A request without a response after the second interval was
   * interrupted or is about to time out: its repeat continues the same command, which is carried out once in either case.
   */
  idempotencyMillis: day,
  idempotencyAbandonedMillis: 4 * second,
  /** A tool call without a key counts as a repeat of an equal call for this long: clients retry within seconds. */
  equalCallMillis: minute,

  // --- Mail

  /** How long the repeat of a transaction without a 250 reply is recognized; senders give up by then. */
  mailRepeat: "5 days",
  /** How long a small batch waits for the statement in flight before a second statement starts. */
  besideMillis: 20,
  /** The same for a small batch of inbound messages. */
  arrivalsBesideMillis: 50,
  /** Time after which a search returns its results so far. It consists of several statements, so this is far below their timeout. */
  searchMillis: second,
  /** How often messages are moved into search segments; until then a search scans them. */
  segmenting: "1 second",
  /** A reply to an unknown message joins a conversation of the same subject that was active within this time. */
  threadRejoin: "30 days",
  /** An automatic Allowed Recipient lapses this long after the last verified message. */
  inboundLapse: "30 days",
  /** `email.refused` is raised at most once in this time, with the number of refused messages. */
  refusalWindow: "1 hour",
  /**
   * The delays between attempts to send a message; after the last one it has bounced. An attempt leases its row and renews the
   * lease three times before it expires, so a message of a crashed process is retried within a minute.
   */
  outboxWaitsMillis: [5 * minute, 15 * minute, hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour],
  outboxLeaseMillis: minute,
  outboxRenew: "20 seconds",
  /** How often mail is checked that no transport can carry. */
  outboxHeldMillis: hour,
  /** The window of the hourly limit. */
  mailHourMillis: hour,
  /** How often the notice about a nearly full Mailbox is repeated. */
  nearlyFullMillis: day,
  /** A message that waits for approval expires after this. */
  approvalMillis: 7 * day,
  /** How often mail for the operator is looked for. */
  systemMailForwarding: "15 seconds",
  /**
   * When a letter of the service, or mail for the operator, that was not accepted is tried again: after `first`, then twice as
   * long each time, at most `last`. Servers block a client that offers the same rejected message again and again.
   */
  letterRetry: { first: "15 seconds", last: "1 day", doublings: 13 },
  /**
   * A DKIM key whose record is not visible signs after `dkimWaitMillis` nevertheless, since our resolver may not see public DNS.
   * A replaced key stays published for `dkimOverlapMillis`, until the last mail that it signed was delivered or bounced: two days in
   * our queue, five in another one. The signing keys are reloaded every `dkimReloadMillis`.
   */
  dkimWaitMillis: 7 * day,
  dkimOverlapMillis: 8 * day,
  dkimReloadMillis: minute,
  /**
   * A new issuer key is published for `issuerWaitMillis` before it signs, so that verifiers that cache the key set know it. A
   * replaced one stays published for `issuerOverlapMillis`: longer than an hour, the longest life of a token. The keys are
   * reloaded every `issuerReloadMillis`.
   */
  issuerWaitMillis: day,
  issuerOverlapMillis: day,
  issuerReloadMillis: minute,
  /** How long a rotated key of an Identity stays published, for copies of cards that it signed. */
  signingKeyOverlapMillis: 7 * day,
  /**
   * How long a rotated key stays in the signature directory. A signature of a request is valid for a minute; clocks of
   * verifiers may differ.
   */
  directoryOverlapMillis: 5 * minute,
  /** The bounds of the `max-age` of another service's directory of keys. */
  agentKeysFreshMillis: { least: minute, most: day },
  /** How long the keys of this service's own Identities are cached, so that a deleted Identity soon proves nothing. */
  ownKeysFreshMillis: 2 * second,
  /** How long an unreadable directory is not read again, and how often a directory is read for an unknown key. */
  agentKeysFailedMillis: 10 * second,
  agentKeysAgainMillis: second,

  /** The waits between attempts to read the DID document of a message's agent. */
  agentClaimWaitsMillis: [minute, 10 * minute],

  // --- Webhooks

  /** The timeout of a request to a Webhook. */
  deliveryTimeoutMillis: 15 * second,
  /** How long both secrets sign after a rotation. */
  secretOverlapMillis: day,

  // --- Tunnels

  /** The lease of a link, renewed three times before it expires. */
  linkLeaseMillis: 45 * second,
  linkRenew: "15 seconds",
  /** How long a freed port is not reassigned, so that a client of its former owner does not reach a stranger. */
  portRest: "30 days",

  // --- Connectors

  /** The timeout of all requests that one call makes to a platform; the request to the actor waits a little longer. */
  platformCall: "20 seconds",
  askPlatform: "25 seconds",
  /** How long a caller waits for the revocation of a credential; after that it continues in the background. */
  revokeAtOnce: "8 seconds",
  /** An authorization must be completed within this time. */
  authorizationMillis: 15 * minute,
  /** The shortest and the longest poll interval of a platform; it grows while nothing arrives. */
  pollSoonestMillis: 30 * second,
  pollLongestMillis: 10 * minute,
  /**
   * Streams that trigger polls: the minimum gap between two polls (longer when there are many), the delays before a lost
   * stream is reopened, and how often a stream is tried on a server that does not offer it.
   */
  streamGapMillis: second,
  streamManyGapMillis: 5 * second,
  streamAgainMillis: [5 * second, 15 * second, minute, 5 * minute, 15 * minute],
  streamKeptMillis: minute,
  streamAbsentMillis: 6 * hour,
  /** The timeout of opening a socket, the window of its rate limit, its ping interval, and how long it may be silent. */
  socketOpenMillis: 10 * second,
  socketWindowMillis: 10 * second,
  socketPingMillis: 30 * second,
  socketSilenceMillis: 75 * second,
  /** An interrupted refresh may have used the token; its new token may still be stored within this time. */
  refreshDoubtMillis: 30 * second,
  /** How often a server is polled until it has processed an image. */
  mediaLook: "500 millis",
  /** How often a profile is checked; more often while it fails to state that the account is automated. */
  profileCheckMillis: day,
  profileRecheckMillis: hour,
  /** The delays between attempts to revoke a credential at an unreachable platform; then the failure is recorded. */
  revocationWaitsMillis: [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour, day, 2 * day],

  // --- The account

  /** How often the deletion of an account checks whether its Identities are deleted. */
  deletionLook: "500 millis",
  /** Archives of exports are kept for this long. */
  exportMillis: 7 * day,
} as const
