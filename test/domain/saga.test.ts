import { currentStep, fail, rerun, start, succeed, triesPerStep } from "@svc/cluster/identity/Saga"
import { attemptsInAll, nextAttemptAt } from "@svc/domain/webhooks/RetrySchedule"
import { describe, expect, it } from "vitest"

const now = new Date("2026-11-20T12:00:00.000Z")

describe("the provisioning saga", () => {
  it("runs its steps in order and completes after the last", () => {
    let saga = start("provisioning", now)
    expect(saga.steps.map(({ status }) => status)).toEqual(["running", "pending", "pending", "pending"])
    expect(succeed(saga, "mailbox", now).steps.map(({ status }) => status)).toEqual([
      "done",
      "running",
      "pending",
      "pending",
    ])
    const order: Array<string> = []
    for (let step = currentStep(saga); step !== undefined; step = currentStep(saga)) {
      order.push(step)
      saga = succeed(saga, step, now)
    }
    expect(order).toEqual(["mailbox", "tunnel", "card", "identity_key"])
    expect(saga.status).toBe("completed")
    expect(saga.finished_at).toEqual(now)
  })

  it("attempts a step six times with waits of 1, 2, 4, 8 and 16 s, 20 % longer or shorter, and then fails", () => {
    let saga = succeed(start("provisioning", now), "mailbox", now)
    const waits: Array<number> = []
    for (let tries = 1; tries <= triesPerStep; tries++) {
      const failed = fail(saga, "tunnel", "no port", now, tries % 2)
      saga = failed.saga
      if (failed.dueAt !== undefined) expect(saga.steps[1]).toMatchObject({ status: "retrying", finished_at: null })
      if (failed.dueAt !== undefined) waits.push((failed.dueAt.getTime() - now.getTime()) / 1000)
    }
    expect(waits.map((wait) => Math.round(wait * 1000))).toEqual([1_200, 1_600, 4_800, 6_400, 19_200])
    expect(saga.status).toBe("failed")
    expect(saga.steps.map(({ status }) => status)).toEqual(["done", "failed", "pending", "pending"])
    expect(saga.steps[1]).toMatchObject({ attempts: 6, error: "no port", finished_at: now })
  })

  it("resumes at the failed step and does not repeat completed ones", () => {
    let saga = succeed(start("provisioning", now), "mailbox", now)
    for (let tries = 1; tries <= triesPerStep; tries++) saga = fail(saga, "tunnel", "x", now, 0).saga
    const again = rerun(saga)
    expect(again).toMatchObject({ status: "running", finished_at: null, started_at: now })
    expect(currentStep(again)).toBe("tunnel")
    expect(again.steps.map(({ status, attempts, finished_at }) => [status, attempts, finished_at])).toEqual([
      ["done", 1, now],
      ["running", 0, null],
      ["pending", 0, null],
      ["pending", 0, null],
    ])
  })
})

describe("a delivery's next attempt", () => {
  it("follows the required schedule of seven attempts", () => {
    const seconds = Array.from({ length: 8 }, (_, i) => nextAttemptAt(i + 1, now)).map(
      (at) => at && (at.getTime() - now.getTime()) / 1000,
    )
    expect(seconds).toEqual([30, 300, 1800, 7200, 21_600, 86_400, undefined, undefined])
    expect(attemptsInAll).toBe(7)
  })
})
