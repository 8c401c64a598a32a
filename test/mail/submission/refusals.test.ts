/** Problems of a send request as replies to a mail program. */
import type { Problem } from "@svc/domain/problems/Problem"
import * as Refusals from "@svc/mail-gateway/mail/submission/Refusals"
import { describe, expect, it } from "vitest"

const problem = (_tag: Problem["_tag"], more: object = {}) => ({ _tag, detail: "x", ...more }) as unknown as Problem
const at = (path: string, tag: Problem["_tag"] = "message_invalid") => problem(tag, { errors: [{ path }] })

describe("The reply to", () => {
  it.each([
    ["a recipient that is not allowed", at("/to/0", "recipient_not_allowed"), "550 5.7.1"],
    ["paused mail", problem("mail_paused"), "550 5.7.1"],
    ["an invalid message", at("/text"), "554 5.6.0"],
    ["an invalid message without a place", problem("message_invalid"), "554 5.6.0"],
    ["another sender", at("/from"), "550 5.7.1"],
    ["another address for replies", at("/reply_to/0"), "550 5.7.1"],
    ["an invalid recipient", at("/to/0"), "550 5.1.3"],
    ["an invalid copy", at("/cc"), "550 5.1.3"],
    ["an invalid blind copy", at("/bcc/3"), "550 5.1.3"],
    ["a message that is too large", problem("message_too_large"), "552 5.3.4"],
    ["a full Mailbox", problem("conflict"), "452 4.2.2"],
    ["an Identity that is being set up", problem("identity_not_ready"), "450 4.2.1"],
    ["an Identity that is deleted", problem("identity_not_ready", { agent_hint: "stop" }), "550 5.7.1"],
    ["a missing Identity", problem("not_found"), "550 5.7.1"],
    ["a failure of the service", problem("unavailable", { retry_after_seconds: 5 }), "451 4.3.0"],
  ])("%s lets the program try again or not", (_, problem, expected) => {
    const { responseCode, message } = Refusals.of(problem)
    expect(`${responseCode} ${message.split(" ")[0]}`).toBe(expected)
  })

  it("a limit says how long to wait", () => {
    expect(Refusals.of(problem("rate_limited", { retry_after_seconds: 7 })).message).toMatch(
      /^4\.7\.1 .*: x Try again in 7 s\.$/,
    )
  })

  it("a long problem is one line of at most 512 bytes of ASCII", () => {
    const title = Refusals.of(problem("message_too_large")).message.slice("5.3.4 ".length, -": x".length)
    const fits = 460 - title.length - 2
    for (const [length, isCut] of [
      [fits, false],
      [fits + 1, true],
    ] as const) {
      const { message } = Refusals.of(problem("message_too_large", { detail: "x".repeat(length) }))
      expect([message.endsWith("..."), message.length <= 507]).toEqual([isCut, true])
    }
    expect(Refusals.of(problem("message_too_large", { detail: "a\r\nb\u007fc é" })).message).toMatch(/: a b c \?$/)
  })
})
