/** The log entry of an SMTP session: what it did, by the replies that the client got. */
import { Effect, Logger, References } from "effect"
import type { SMTPServerSession } from "smtp-server"
import * as SessionLog from "@svc/mail-gateway/mail/smtp/SessionLog"
import { sessionTimers } from "@svc/mail-gateway/mail/smtp/Server"
import { Timing } from "@svc/mail-gateway/Timing"
import { afterEach, expect, it, vi } from "vitest"

it("the log entry of a session counts accepted, deferred and refused recipients and messages", () => {
  const entries: Array<unknown> = []
  const logger = Logger.make(({ fiber }) => entries.push(fiber.getRef(References.CurrentLogAnnotations)))
  const log = SessionLog.make((line) => Effect.runSync(Effect.provide(line, Logger.layer([logger]))))
  // Only these members are read.
  const session = { id: "one", remoteAddress: "192.0.2.1", secure: true } as SMTPServerSession
  const reply = (responseCode: number) => ({ responseCode, message: "x" }) as Parameters<typeof log.recipient>[1]
  log.begin(session)
  for (const code of [undefined, undefined, 450, 499, 500, 550, 554]) {
    log.recipient(session, code === undefined ? null : reply(code))
  }
  for (const code of [undefined, 451, 550, 552]) log.message(session, code === undefined ? null : reply(code))
  log.end(session)
  expect(entries).toMatchObject([
    {
      session: "one",
      tls: true,
      ended: "left",
      recipients: { accepted: 2, deferred: 2, refused: 3 },
      messages: { accepted: 1, deferred: 1, refused: 2 },
    },
  ])
})

afterEach(() => void vi.useRealTimers())

it("the log entry of a session says who ended it and why", () => {
  vi.useFakeTimers({ toFake: ["Date"] })
  const entries: Array<unknown> = []
  const logger = Logger.make(({ fiber }) => entries.push(fiber.getRef(References.CurrentLogAnnotations)["ended"]))
  const log = SessionLog.make((line) => Effect.runSync(Effect.provide(line, Logger.layer([logger]))))
  const session = { id: "one", remoteAddress: "192.0.2.1", secure: true } as SMTPServerSession
  const ended = (...acts: ReadonlyArray<() => void>) => {
    log.begin(session)
    for (const act of acts) act()
    log.end(session)
    // A session is logged once, and actions after its end are ignored.
    log.end(session)
    log.recipient(session, null)
    log.message(session, null)
    log.ending(session, "too_large")
    return entries.splice(0)
  }
  const after = (millis: number) => () => void vi.setSystemTime(Date.now() + millis)
  const idle = Timing.smtpIdleMillis
  expect(ended()).toEqual(["left"])
  expect(ended(after(idle - 1))).toEqual(["left"])
  expect(ended(after(idle))).toEqual(["idle"])
  for (const reply of [() => log.recipient(session, null), () => log.message(session, null)]) {
    expect(ended(after(idle - 1), reply, after(idle - 1))).toEqual(["left"])
    expect(ended(reply, after(idle))).toEqual(["idle"])
  }
  expect(ended(() => log.ending(session, "data_too_slow"), after(idle))).toEqual(["data_too_slow"])
  expect(ended(() => log.leaving(), after(idle))).toEqual(["shutdown"])
})

it("a session ends at its last deadline, unless the deadline was cleared", () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const timers = sessionTimers()
  const expired: Array<string> = []
  // Only the id is read.
  const [one, two, three] = ["1", "2", "3"].map((id) => ({ id }) as SMTPServerSession)
  for (const [session, millis] of [
    [one, 100],
    [one, 200],
    [two, 150],
    [three, 150],
  ] as const)
    timers.set(session!, millis, () => expired.push(`${session!.id} ${millis}`))
  timers.clear(three!)
  vi.advanceTimersByTime(149)
  expect(expired).toEqual([])
  vi.advanceTimersByTime(51)
  expect(expired).toEqual(["2 150", "1 200"])
})
