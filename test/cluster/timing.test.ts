/** Intervals that the documents promise, and those that must be longer than others. */
import { Timing } from "@svc/cluster/Timing"
import { Timing as Gateway } from "@svc/mail-gateway/Timing"
import { Timing as Edge } from "@svc/tunnel-edge/edge/Timing"
import { Duration } from "effect"
import { describe, expect, it } from "vitest"

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

type Name = keyof typeof Timing
/** Returns milliseconds. Names that end in `Millis` are numbers, the others are durations. */
const millisOf = (value: unknown): number =>
  typeof value === "number" ? value : Duration.toMillis(Duration.fromInputUnsafe(value as Duration.Input))
const millis = (name: Name): number => millisOf(Timing[name])

describe("An interval", () => {
  it.each<[Name, number]>([
    // Credentials and access.
    ["magicLinkMillis", 15 * minute],
    ["sessionMillis", 30 * day],
    ["showOnceMillis", hour],
    ["lastUsedMillis", minute],
    ["oauthRequestMillis", 15 * minute],
    ["codeMillis", minute],
    ["accessTokenMillis", hour],
    ["refreshTokenMillis", 90 * day],
    ["refreshReplayMillis", minute],
    ["documentKeptMillis", 7 * day],
    ["signInApprovedMillis", day],
    ["idTokenMillis", 5 * minute],
    // Limits and repeats.
    ["callWindowMillis", minute],
    ["transferWindowMillis", day],
    ["idempotencyMillis", day],
    ["equalCallMillis", minute],
    // Mail.
    ["mailRepeat", 5 * day],
    ["threadRejoin", 30 * day],
    ["inboundLapse", 30 * day],
    ["refusalWindow", hour],
    ["mailHourMillis", hour],
    ["approvalMillis", 7 * day],
    ["dkimWaitMillis", 7 * day],
    ["dkimOverlapMillis", 8 * day],
    // Proofs.
    ["issuerWaitMillis", day],
    ["issuerOverlapMillis", day],
    ["signingKeyOverlapMillis", 7 * day],
    ["directoryOverlapMillis", 5 * minute],
    // Webhooks, Tunnels and Connectors.
    ["deliveryTimeoutMillis", 15 * second],
    ["secretOverlapMillis", day],
    ["linkLeaseMillis", 45 * second],
    ["portRest", 30 * day],
    ["authorizationMillis", 15 * minute],
    ["pollSoonestMillis", 30 * second],
    ["pollLongestMillis", 10 * minute],
    ["profileCheckMillis", day],
    ["profileRecheckMillis", hour],
    // The account and its audit log.
    ["exportMillis", 7 * day],
    ["auditHeadMillis", day],
    ["auditReadingMillis", hour],
    ["housekeeping", 10 * minute],
  ])("%s is as documented", (name, expected) => expect(millis(name)).toBe(expected))

  it("of attempts grows as documented", () => {
    expect(Timing.outboxWaitsMillis).toEqual([5 * minute, 15 * minute, ...[1, 3, 6, 12, 24].map((n) => n * hour)])
    expect(Timing.revocationWaitsMillis).toEqual([
      30 * second,
      5 * minute,
      30 * minute,
      2 * hour,
      6 * hour,
      day,
      2 * day,
    ])
    expect(Timing.streamAgainMillis).toEqual([5 * second, 15 * second, minute, 5 * minute, 15 * minute])
    expect(Timing.documentFreshMillis).toEqual({ least: 5 * minute, most: day })
    expect(Timing.agentKeysFreshMillis).toEqual({ least: minute, most: day })
  })

  it.each<[longer: Name, shorter: Name, factor: number, why: string]>([
    ["leaseMillis", "deliveryTimeoutMillis", 2, "an attempt ends before another process may retry"],
    ["outboxLeaseMillis", "outboxRenew", 3, "a lease survives two lost renewals"],
    ["linkLeaseMillis", "linkRenew", 3, "a lease survives two lost renewals"],
    ["ask", "shardLockExpiration", 1.5, "a request outlives a failover"],
    ["askSmtp", "ask", 2, "mail is accepted through a failover"],
    ["askPlatform", "platformCall", 1.1, "the caller gets the answer of the platform"],
    ["shardLockExpiration", "shardLockRefresh", 3, "a runner keeps its shards after a lost refresh"],
    ["shardLockRefresh", "shardLockPatience", 1.5, "the library does not give up first"],
    ["ask", "permitMillis", 2, "a stop is answered although it waits for permits"],
    ["shardLockExpiration", "permitMillis", 1.2, "a new owner rarely waits for permits"],
    ["drain", "settle", 2, "running writes end after the attempts"],
    ["lineSilenceMillis", "statementTimeoutMillis", 1.1, "the server ends a statement before the connection is closed"],
    ["ask", "idempotencyAbandonedMillis", 1.1, "a repeat joins the first request"],
    ["embeddedStop", "healthProbe", 2, "a shutdown is no failure"],
    ["socketSilenceMillis", "socketPingMillis", 2, "one lost ping closes no socket"],
    ["issuerOverlapMillis", "accessTokenMillis", 1, "a token is verifiable until it ends"],
    ["dkimOverlapMillis", "mailRepeat", 1, "mail in a queue is verifiable until it bounces"],
    ["residentWaitMillis", "leaseMillis", 1, "a retry needs no activation"],
  ])("%s is longer than %s (%d times): %s", (longer, shorter, factor) =>
    expect(millis(longer)).toBeGreaterThanOrEqual(factor * millis(shorter)),
  )

  it("of a check lets a revocation reach a connection within a second", () => {
    expect(millis("credentialCheck")).toBeLessThan(second)
    expect(millis("feedGather") + millis("resourcesGather")).toBeLessThan(second)
  })
})

describe("An interval of a gateway", () => {
  it.each<[keyof typeof Gateway, number]>([
    ["smtpDataMillis", 5 * minute],
    ["smtpSessionMillis", 30 * minute],
    ["smtpIdleMillis", minute],
    ["recipientKnownMillis", second],
    ["smtpClientWindowMillis", minute],
    ["smtpUnknownWindowMillis", 10 * minute],
    ["greylistMillis", minute],
    ["verdictMillis", 10 * second],
    ["judgingAnswersMillis", 5 * second],
    ["dnsMillis", 2 * second],
    ["imapLoginMillis", minute],
    ["imapIdleMillis", 31 * minute],
    ["imapStirMillis", 3 * minute],
    ["submissionIdleMillis", 5 * minute],
    ["submissionSessionMillis", hour],
    ["loginWindowMillis", 10 * minute],
    ["loginMostMillis", 8 * second],
    ["sendMillis", 9 * minute],
    ["letterMillis", 30 * second],
    ["backOffMillis", 30 * second],
    ["backOffMostMillis", 15 * minute],
    ["policyRetryMillis", 5 * minute],
    ["bounceWindowMillis", day],
  ])("%s of mail is what its clients and servers see", (name, expected) =>
    expect(millisOf(Gateway[name])).toBe(expected),
  )

  it.each<[keyof typeof Edge, number]>([
    ["firstBytesMillis", 30 * second],
    ["helloMillis", 10 * second],
    ["headMillis", 30 * second],
    ["firstByteMillis", minute],
    ["idleMillis", 2 * minute],
    ["rawKeepAliveMillis", minute],
    ["rawIdleMillis", hour],
    // The lifetime of a cached name is as long, so settings reach a name within this time without a notification.
    ["standingEvery", 30 * second],
    ["judgeEvery", second],
    ["portToldMillis", hour],
    ["peerStampMillis", minute],
    ["flushEvery", 5 * second],
    ["drainIdleMillis", 5 * second],
    ["drainRequestMillis", 30 * second],
  ])("%s of Tunnels is what agents and visitors see", (name, expected) => expect(millisOf(Edge[name])).toBe(expected))

  it("is shorter than the one that contains it", () => {
    expect(Edge.firstByteMillis).toBeLessThan(Edge.idleMillis)
    expect(Edge.peerDialMillis).toBeLessThan(3 * second)
    expect(Edge.partingMillis.revoked).toBeLessThan(Edge.partingMillis.replaced)
    expect(Gateway.smtpFinalMillis + Gateway.smtpConnectMillis + Gateway.smtpGreetingMillis).toBeLessThan(
      Gateway.sendMillis,
    )
    expect(Gateway.dnsMillis).toBeLessThan(Gateway.verdictMillis)
    expect(Gateway.judgingPingMillis).toBeLessThan(Gateway.judgingSilenceMillis)
    expect(Gateway.loginStepMillis).toBeLessThan(Gateway.loginMostMillis)
  })
})
