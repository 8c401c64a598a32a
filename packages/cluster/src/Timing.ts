/**
 * Every interval of the cluster in one place, since they depend on one another: a lease is longer than the attempt it
 * covers, an ask waits longer than a failover takes, a drain is shorter than a process is given to leave.
 */
export const Timing = {
  /** How long a runner that stopped refreshing keeps its shards; after `kill -9` they move in about this time. */
  shardLockExpiration: "3 seconds",
  shardLockRefresh: "1 second",
  /** How often runners look for others that came or went. */
  refreshAssignments: "500 millis",
  runnerHealthCheck: "1 second",
  /** An ask not answered by then is `unavailable`: longer than the failover of a killed runner (about 3.2 s). */
  ask: "5 seconds",
  /** An SMTP client waits minutes for its reply, so its ask may outlast a failover and a slow disk. */
  askSmtp: "30 seconds",
  /** Between two tries of an ask whose actor has just moved. */
  askRetry: "100 millis",
  /** An actor that nobody asked for this long leaves memory. */
  actorIdle: "2 minutes",
  /** How long running writes may take to end when a shard or the process leaves. */
  drain: "8 seconds",
  /** What attempts under way get of that. */
  settle: "3 seconds",
  /** From the start of an attempt until another may start: longer than any attempt lasts. */
  leaseMillis: 60_000,
  /** A Webhook's target has this long to answer (decisions.md "Events"). */
  deliveryTimeoutMillis: 15_000,
  /** A saga whose actor died is taken up again this long after its last commit. */
  sagaLeaseMillis: 5_000,
  /** An actor that has just started attempts looks again this soon for others that fall due. */
  busyLookMillis: 1_000,
  /** Work due later than this is left to `Overdue`, so that a wait of hours keeps no actor in memory. */
  residentWaitMillis: 90_000,
  /** How often `Overdue` looks, and how late a row is before it counts as nobody's. */
  overdueScan: "2 seconds",
  overdueGraceMillis: 2_000,
  /** Statements of requests end after this; migrations and exports have a client without it. */
  statementTimeoutMillis: 5_000,
  /** Show-once secrets are given out for this long after `ready` (decisions.md "Resources"). */
  showOnceMillis: 60 * 60_000,
  magicLinkMillis: 15 * 60_000,
  sessionMillis: 30 * 24 * 60 * 60_000,
  /** `last_used_at` of a credential is written at most this often. */
  lastUsedMillis: 60_000,
  /** Announcements of changes are gathered for this long. */
  feedGather: "5 millis",
  feedReconnect: "1 second",
  /** How late a change is known whose announcement was lost. */
  feedRecheck: "2 seconds",
  /** An Event that waits for transactions of smaller numbers is looked for with pauses that grow, for this long. */
  settlingPause: "2 millis",
  settling: "2 seconds",
  /** Revocation reaches what lasts within a second, the look included. */
  credentialCheck: "800 millis",
} as const
