/** Threads by references and by subject (RFC 5256), of any shape. */
import * as BaseSubject from "@svc/mail-gateway/mail/imap/session/BaseSubject"
import type { Threadable } from "@svc/mail-gateway/mail/imap/session/Store"
import * as Threads from "@svc/mail-gateway/mail/imap/session/Threads"
import { describe, expect, it } from "vitest"

/** A message with its UID and the UIDs of its references. Without a subject, it gets one that no other message has. */
const mail = (uid: number, references: ReadonlyArray<number> = [], subject = `own ${uid}`, sent = uid): Threadable => ({
  uid,
  messageId: `<${uid}>`,
  references: references.map((one) => `<${one}>`),
  subject,
  sent,
})
const threads = (by: typeof Threads.references, messages: ReadonlyArray<Threadable>) => {
  const work = by(messages, (uid) => uid)
  for (let step = work.next(); ; step = work.next()) if (step.done === true) return step.value
}

describe("Threads by references", () => {
  it.each([
    ["a chain", [mail(1), mail(2, [1]), mail(3, [1, 2])], "(1 2 3)"],
    ["a chain that arrives backwards", [mail(3, [1, 2]), mail(2, [1]), mail(1)], "(1 2 3)"],
    ["two replies", [mail(1), mail(2, [1]), mail(3, [1])], "(1 (2)(3))"],
    ["two replies in the order of their dates", [mail(1), mail(2, [1], "a", 9), mail(3, [1], "b", 8)], "(1 (3)(2))"],
    ["two replies of the same moment", [mail(1), mail(3, [1], "a", 5), mail(2, [1], "b", 5)], "(1 (2)(3))"],
    ["replies to a missing message", [mail(2, [1]), mail(3, [1])], "((2)(3))"],
    ["one reply to a missing message", [mail(2, [1])], "(2)"],
    ["a missing message in between", [mail(1), mail(3, [1, 2]), mail(4, [1, 2])], "(1 (3)(4))"],
    [
      "replies to a reply in the order of their dates",
      [mail(1), mail(2, [1]), mail(3, [1, 2], "a", 9), mail(4, [1, 2], "b", 8)],
      "(1 2 (4)(3))",
    ],
    [
      "a reply for which a later message names another parent",
      [mail(1), mail(2), mail(3, [1]), mail(4, [2, 3])],
      "(1 3 4)(2)",
    ],
    ["a loop", [mail(1, [2]), mail(2, [1])], "(2 1)"],
    ["a reference to itself", [mail(1, [1]), mail(2)], "(1)(2)"],
    ["a repeated Message-ID", [mail(1), { ...mail(2), messageId: "<1>" }, mail(3, [1])], "(1 3)(2)"],
    ["no Message-ID", [{ ...mail(1), messageId: null }, mail(2)], "(1)(2)"],
    ["roots in the order of their dates", [mail(1, [], "a", 9), mail(2, [], "b", 8)], "(2)(1)"],
    ["an original and its reply", [mail(1, [], "Plan"), mail(2, [], "Re: plan")], "(1 2)"],
    ["an earlier reply and its original", [mail(1, [], "Re: plan"), mail(2, [], "Plan")], "(2 1)"],
    ["two originals of one subject", [mail(1, [], "Plan"), mail(2, [], "plan")], "((1)(2))"],
    ["three originals of one subject", [mail(1, [], "Plan"), mail(2, [], "plan"), mail(3, [], "PLAN")], "((1)(2)(3))"],
    ["two replies of one subject", [mail(1, [], "Re: a"), mail(2, [], "Re: a")], "((1)(2))"],
    ["messages without a subject", [mail(1, [], ""), mail(2, [], "Re:")], "(1)(2)"],
    [
      "replies to two missing messages of one subject",
      [mail(3, [1], "a"), mail(4, [1], "a"), mail(5, [2], "a"), mail(6, [2], "a")],
      "((3)(4)(5)(6))",
    ],
    [
      "a message that joins replies to a missing one",
      [mail(2, [1], "a"), mail(3, [1], "a"), mail(4, [], "a")],
      "((2)(3)(4))",
    ],
    [
      "a message before replies to a missing one",
      [mail(1, [], "a"), mail(3, [2], "a"), mail(4, [2], "a")],
      "((1)(3)(4))",
    ],
  ])("of %s", (_, messages, expected) => {
    const found = threads(Threads.references, messages)
    // The order of merged siblings is theirs by date.
    expect(found).toBe(expected)
  })

  it("list messages below a depth of 100 side by side, and no message twice", () => {
    const chain = Array.from({ length: 120 }, (_, n) => mail(n + 1, n === 0 ? [] : [n]))
    const found = threads(Threads.references, chain)
    expect(
      found
        .match(/\d+/g)!
        .map(Number)
        .sort((a, b) => a - b),
    ).toEqual(chain.map(({ uid }) => uid))
    expect(found.startsWith("(1 2 3 ")).toBe(true)
    expect(found.match(/\(\d+\)/g)).toHaveLength(19)
  })
})

describe("Threads by subject", () => {
  it.each([
    ["each subject", [mail(1, [], "a"), mail(2, [], "b"), mail(3, [], "Re: a")], "(1 3)(2)"],
    ["several answers", [mail(1, [], "a"), mail(2, [], "Re: a"), mail(3, [], "a")], "(1 (2)(3))"],
    ["messages by date", [mail(1, [], "a", 9), mail(2, [], "a", 8)], "(2 1)"],
  ])("of %s", (_, messages, expected) => {
    expect(threads(Threads.orderedSubject, messages)).toBe(expected)
  })
})

describe("The base of a subject", () => {
  it.each([
    ["Plan", "PLAN", false],
    ["Re: Plan", "PLAN", true],
    ["RE : re: Fw: FWD: Plan", "PLAN", true],
    ["Re[2]: Plan", "PLAN", true],
    ["[list] Plan", "PLAN", false],
    ["[list] Re: [list] Plan", "PLAN", true],
    ["Re: [list] [other] Plan", "PLAN", true],
    ["[only]", "[ONLY]", false],
    ["Plan (fwd)", "PLAN", true],
    ["Plan (fwd) (FWD) ", "PLAN", true],
    ["[Fwd: Plan]", "PLAN", true],
    ["[fwd: Re: Plan (fwd)]", "PLAN", true],
    ["  A \t  b ", "A B", false],
    ["Re:", "", true],
    ["Regards: x", "REGARDS: X", false],
  ])("%j is %j", (subject, text, isReply) => {
    expect(BaseSubject.of(subject)).toEqual({ text, isReply })
  })
})
