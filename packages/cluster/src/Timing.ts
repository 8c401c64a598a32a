/**
 * Every interval of the cluster in one place, since they depend on one another: a lease is longer than the attempt it
 * covers, an ask waits longer than a failover takes, a drain is shorter than a process is given to leave. Names that end
 * in `Millis` are numbers of milliseconds; the others are durations, or intervals as PostgreSQL reads them.
 */
const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

export const Timing = {
  // --- The cluster

  /** How long a runner that stopped refreshing keeps its shards; after `kill -9` they move in about this time. */
  shardLockExpiration: "3 seconds",
  shardLockRefresh: "1 second",
  /** How often runners look for others that came or went. */
  refreshAssignments: "500 millis",
  runnerHealthCheck: "1 second",
  /** Whoever connects to a runner has proved itself by then. */
  runnerHandshakeMillis: 2 * second,
  /** What the connections of other runners may take to end when this one leaves. */
  runnerClose: "2 seconds",
  /** How often a runner looks for shards of its own that it lost, with a hiccup of the store or with its lock session. */
  shardLook: "1 second",

  // --- Listeners

  /** How often certificate files are looked at. */
  certificateLook: "5 seconds",

  // --- Asking

  /** An ask not answered by then is `unavailable`: longer than the failover of a killed runner (about 3.2 s). */
  ask: "5 seconds",
  /** An SMTP client waits minutes for its reply, so its ask may outlast a failover and a slow disk. */
  askSmtp: "30 seconds",
  /** Between two tries of an ask whose actor has just moved. */
  askRetry: "100 millis",

  // --- Actors and their work

  /** An actor that nobody asked for this long leaves memory. */
  actorIdle: "2 minutes",
  /** How long running writes may take to end when a shard or the process leaves. */
  drain: "8 seconds",
  /** What attempts under way get of that. */
  settle: "3 seconds",
  /** From the start of an attempt until another may start: longer than any attempt lasts. */
  leaseMillis: minute,
  /** A saga whose actor died is taken up again this long after its last commit. */
  sagaLeaseMillis: 5 * second,
  /** An actor that has just started work looks again this soon for other work that falls due. */
  busyLookMillis: second,
  /** Work due later than this is left to `Overdue`, so that a wait of hours keeps no actor in memory. */
  residentWaitMillis: 90 * second,
  /** How often `Overdue` looks, and how late a row is before it counts as nobody's. */
  overdueScan: "2 seconds",
  overdueGraceMillis: 2 * second,
  /** How often it is looked how late work is, for the metrics. */
  latenessLookMillis: 15 * second,

  /**
   * How long a permit to begin what leaves the service is good for (`actor/Permit.ts`). A stop waits for as long at most,
   * so it is shorter than an ask; a frozen owner's shards move later than this, so a new owner seldom has to wait.
   */
  permitMillis: 2 * second,
  /** How often a stop looks whether the permits of former owners have ended. */
  permitLookMillis: 100,

  // --- The store

  /** How long a migration waits for a lock, with everybody else behind it; then all of it gives way, and is tried again. */
  migrationLockMillis: 2 * second,
  migrationRetry: "1 second",
  migrationTries: 60,
  /** Statements of requests end after this; migrations and exports have a client without it. */
  statementTimeoutMillis: 5 * second,
  /** A connection that was asked and says nothing is cut after this: the server would have ended the statement before. */
  lineSilenceMillis: 6 * second,
  /** The same for what may run long: no batch, and no statement of a migration, takes this. */
  lineSilenceUnhurriedMillis: 10 * minute,
  lineLookMillis: 250,
  lineKeepAliveMillis: 10 * second,
  housekeeping: "10 minutes",
  /** How often the sizes of tables are looked at, for the metrics. */
  tableSizesMillis: 5 * minute,
  /** Crash recovery of the embedded server after a power cut may take a while. */
  embeddedStart: "2 minutes",
  /** How often a start looks whether the server accepts, and whether it died early. */
  embeddedPoll: "10 millis",
  embeddedDied: "500 millis",
  /** How often a holder of a lease looks whether the server still runs. */
  embeddedWatch: "250 millis",
  /** How long the last one out waits until the server has written everything down. */
  embeddedStop: "15 seconds",
  /** A health probe that takes longer is a part that does not answer. */
  healthProbe: "2 seconds",

  // --- The feed of changes

  /** Announcements of changes are gathered for this long. */
  feedGather: "20 millis",
  feedReconnect: "1 second",
  /** How late a change is known whose announcement was lost. */
  feedRecheck: "2 seconds",
  /** An Event that waits for transactions of smaller numbers is looked for with pauses that grow, for this long. */
  settlingPause: "2 millis",
  settling: "2 seconds",

  // --- Credentials

  /** Revocation reaches what lasts within a second, the look included. */
  credentialCheck: "800 millis",

  /** Show-once secrets are given out for this long after `ready` (decisions.md "Resources"). */
  showOnceMillis: hour,
  magicLinkMillis: 15 * minute,
  sessionMillis: 30 * day,
  /** `last_used_at` of a credential is written at most this often. */
  lastUsedMillis: minute,

  // --- Access for clients (OAuth)

  /** What a client asks for waits this long for its holder's decision. */
  oauthRequestMillis: 15 * minute,
  codeMillis: minute,
  accessTokenMillis: hour,
  /** A refresh token that nobody uses for this long is no good any more. */
  refreshTokenMillis: 90 * day,
  /** A used refresh token is taken again for this long, whatever became of what it was given for. */
  refreshReplayMillis: minute,
  documentTimeoutMillis: 3 * second,
  /** The bounds of a document's `max-age`. */
  documentFreshMillis: { least: 5 * minute, most: day },
  /** A document that cannot be read is taken as it was for this long. */
  documentKeptMillis: 7 * day,
  /** How often letters about Grants are looked for. */
  grantNotices: "5 seconds",
  // --- The audit log

  /** Records that the store did not take are tried again this often. */
  auditRetry: "1 second",
  /** How often refusals of minutes that are over are recorded, and counts of reads are added up. */
  auditRefusals: "10 seconds",
  auditUsage: "10 seconds",
  /** Reading the audit log is recorded once in this time for a credential and a client address. */
  auditReadingMillis: hour,
  /** What was recorded is sealed this long afterwards, together. */
  auditSealMillis: 10 * second,
  /** How often an end that the service refuses to continue is looked at again. */
  auditRefusedMillis: 10 * 60 * second,
  /** The end of a chain that went on is signed this often, and told. */
  auditHeadMillis: day,
  /** How often months are made and dropped, and it is looked for records that nobody marked. */
  auditMonths: "10 minutes",

  // --- Limits and repeats

  /** The window that an Org's calls are counted in. */
  callWindowMillis: minute,
  /** A budget of transfer is handed to an edge for this long at most, and counted by the day (UTC). */
  transferLeaseMillis: minute,
  transferWindowMillis: day,
  /**
   * A first answer is kept for its `Idempotency-Key` this long. A request that has not ended after the other was cut
   * short, or is about to give up: a repeat goes on as the same command, which is done once either way.
   */
  idempotencyMillis: day,
  idempotencyAbandonedMillis: 4 * second,
  /** A tool call without a key is a repeat of an equal one for this long: clients retry a call within seconds. */
  equalCallMillis: minute,

  // --- Mail

  /** A transaction that was not answered with 250 can be repeated for this long; senders give up by then. */
  mailRepeat: "5 days",
  /** Few calls of a kind wait this long for the statement under way; then they have one of their own beside it. */
  besideMillis: 20,
  /** Few messages that arrive wait this long for the statement under way; then they have one of their own beside it. */
  arrivalsBesideMillis: 50,
  /** A search that walks longer than this answers what it found; far below the time of a statement, several of which it is. */
  searchMillis: second,
  /** How often it is looked for messages to make searchable by segment; searches walk through them until then. */
  segmenting: "1 second",
  /** A reply that refers to nothing we have joins a conversation of its subject that went on within this time. */
  threadRejoin: "30 days",
  /** An automatic Allowed Recipient lapses this long after the last verified message. */
  inboundLapse: "30 days",
  /** `email.refused` is raised at most once in this time, with the number of messages turned away. */
  refusalWindow: "1 hour",
  /**
   * Between the tries of an outgoing message; after the last one it has bounced. An attempt holds its row by a lease that
   * is renewed three times before it runs out, so a message whose process died is tried again within a minute.
   */
  outboxWaitsMillis: [5 * minute, 15 * minute, hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour],
  outboxLeaseMillis: minute,
  outboxRenew: "20 seconds",
  /** What nothing can carry is looked at this often. */
  outboxHeldMillis: hour,
  /** The window of the hourly limit. */
  mailHourMillis: hour,
  /** How often a Mailbox that stays nearly full is told. */
  nearlyFullMillis: day,
  /** A message that waits for a person lapses after this. */
  approvalMillis: 7 * day,
  /** How often mail for the operator is looked for. */
  systemMailForwarding: "15 seconds",
  /**
   * DKIM keys that nobody was seen to publish sign from then on all the same, since our DNS need not be the world's. Keys
   * that were replaced stay published until the last letter they signed has arrived or come back: two days in our queue,
   * five in another's. What signs is looked up anew this often.
   */
  dkimWaitMillis: 7 * day,
  dkimOverlapMillis: 8 * day,
  dkimReloadMillis: minute,

  // --- Webhooks

  /** A target has this long to answer (decisions.md "Events"). */
  deliveryTimeoutMillis: 15 * second,
  /** After a rotation both secrets sign for this long (decisions.md "Resources"). */
  secretOverlapMillis: day,

  // --- Tunnels

  /** The lease of a link, renewed three times before it runs out. */
  linkLeaseMillis: 45 * second,
  linkRenew: "15 seconds",
  /** A freed port rests this long, so that a client of its former owner does not reach a stranger (traps.md 26). */
  portRest: "30 days",

  // --- Connectors

  /** All that one call asks of a platform has this long; whoever asks the actor for it waits a little longer. */
  platformCall: "20 seconds",
  askPlatform: "25 seconds",
  /** Ending a credential while somebody waits for it; what takes longer is done afterwards. */
  revokeAtOnce: "8 seconds",
  /** An authorization is to be ended by then. */
  authorizationMillis: 15 * minute,
  /** A platform is asked this soon again while something comes, and ever less often up to the longest wait. */
  pollSoonestMillis: 30 * second,
  pollLongestMillis: 10 * minute,
  /**
   * A stream that says when something was said. Polls that it asks for are a moment apart, and further where they are
   * many; one that is lost is opened again ever later, and one that a server does not have is asked for once in a while.
   */
  streamGapMillis: second,
  streamManyGapMillis: 5 * second,
  streamAgainMillis: [5 * second, 15 * second, minute, 5 * minute, 15 * minute],
  streamKeptMillis: minute,
  streamAbsentMillis: 6 * hour,
  /** Opening a socket, what may come at one within a while, and how long one that says nothing is held. */
  socketOpenMillis: 10 * second,
  socketWindowMillis: 10 * second,
  socketPingMillis: 30 * second,
  socketSilenceMillis: 75 * second,
  /** A refresh whose process went away may have spent the token, and may leave the new one within this time. */
  refreshDoubtMillis: 30 * second,
  /** How often it is looked whether a server has finished a picture. */
  mediaLook: "500 millis",
  /** How often a profile is looked at; more often while it must say again that the account is automated. */
  profileCheckMillis: day,
  profileRecheckMillis: hour,
  /** Waits between tries to revoke a credential at a platform that is out of reach; then it is given up, and noted. */
  revocationWaitsMillis: [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour, day, 2 * day],

  // --- The account

  /** An account that is being deleted looks this often whether its Identities have gone. */
  deletionLook: "500 millis",
  /** Archives of exports live this long (decisions.md "Resources"). */
  exportMillis: 7 * day,
} as const
