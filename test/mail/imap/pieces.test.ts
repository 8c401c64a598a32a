/** Work on many messages, a piece at a time: what comes of it, and that others go on in between. */
import * as CooperativeWork from "@svc/mail-gateway/mail/imap/session/CooperativeWork"
import type { Threadable } from "@svc/mail-gateway/mail/imap/session/Store"
import * as Threads from "@svc/mail-gateway/mail/imap/session/Threads"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { random } from "./Sessions.ts"

const all = <A>(work: CooperativeWork.CooperativeWork<A>): A => {
  while (true) {
    const piece = work.next()
    if (piece.done === true) return piece.value
  }
}

describe("work in pieces", () => {
  it("puts in order as a whole would, and leaves what is equal as it stood", () => {
    const next = random(11)
    for (const length of [0, 1, 99, 100, 101, 999, 4_321]) {
      const list = Array.from({ length }, (_, at) => ({ at, of: Math.floor(next() * 50) }))
      const byOf = (a: (typeof list)[number], b: (typeof list)[number]) => a.of - b.of
      expect(all(CooperativeWork.sorted(list, byOf))).toEqual(list.toSorted(byOf))
    }
  })

  it("lets others go on, and one large work after another", async () => {
    let open = false
    let begun = 0
    // Goes on until what comes after it on the event loop was done.
    function* waiting(): CooperativeWork.CooperativeWork<number> {
      begun++
      for (let n = 0; !open && n < 10_000_000; n++) yield
      return open ? begun : 0
    }
    setTimeout(() => (open = true), 0)
    const one = CooperativeWork.alone(50_000, CooperativeWork.done(waiting))
    const both = Effect.all([one, one], { concurrency: 2 })
    expect(await Effect.runPromise(both)).toEqual([1, 2])
  })
})

const message = (uid: number, references: ReadonlyArray<string> = [], part: Partial<Threadable> = {}): Threadable => ({
  uid,
  messageId: `<${uid}>`,
  references,
  subject: "",
  sent: uid,
  ...part,
})

describe("threads", () => {
  const references = (messages: ReadonlyArray<Threadable>) => all(Threads.references(messages, (uid) => uid))
  const bySubject = (messages: ReadonlyArray<Threadable>) => all(Threads.orderedSubject(messages, (uid) => uid))

  it("are who answers whom, also where what was answered is not there", () => {
    expect(references([message(1), message(2, ["<1>"]), message(3, ["<1>", "<2>"]), message(4, ["<1>"])])).toBe(
      "(1 (2 3)(4))",
    )
    expect(references([message(1), message(2, ["<3>", "<1>"]), message(3, ["<2>"])])).toBe("(3 1 2)")
    expect(references([message(1, ["<x>"]), message(2, ["<x>"])])).toBe("((1)(2))")
    const of = (uid: number, subject: string) => message(uid, [], { subject })
    expect(references([of(1, "a"), of(2, "Re: a"), of(3, "b"), of(4, "b")])).toBe("(1 2)((3)(4))")
    expect(bySubject([of(1, "b"), of(2, "a"), of(3, "Re: b"), of(4, "[l] a (fwd)")])).toBe("(1 3)(2 4)")
  })

  it("do not follow references round in circles, and a message's own references replace what others say of it", () => {
    expect(references([message(1, ["<2>"]), message(2, ["<1>"])])).toBe("(2 1)")
    expect(references([message(1, ["<2>", "<1>"]), message(2)])).toBe("(1)(2)")
    expect(references([message(1, ["<1>"]), message(2, ["<2>", "<2>"])])).toBe("(1)(2)")
    // Message 3 says that 1 answers 2; 1 comes later and says that it answers nobody, or 3.
    expect(references([message(2), message(3, ["<2>", "<1>"]), message(1)])).toBe("(1 3)(2)")
    expect(references([message(2), message(3, ["<2>", "<1>"]), message(1, ["<3>"])])).toBe("(1 3)(2)")
    expect(references([message(2), message(3, ["<2>", "<1>"]), message(1, ["<2>"])])).toBe("(2 1 3)")
    expect(references([message(1), message(2, ["<3>", "<1>"]), message(3, ["<2>"])])).toBe("(3 1 2)")
  })

  it("have each message once, whatever refers to whatever", () => {
    const next = random(7)
    /** No more than a few steps for each message: a message that is met again and again would take more. */
    const bounded = (messages: ReadonlyArray<Threadable>) => {
      const work = Threads.references(messages, (uid) => uid)
      for (let steps = 0; steps < 1_000; steps++) {
        const piece = work.next()
        if (piece.done === true) return piece.value
      }
      throw new Error("Endless")
    }
    const uids = (threads: string) => Array.from(threads.matchAll(/\d+/g), ([uid]) => Number(uid)).sort((a, b) => a - b)
    for (let round = 0; round < 5_000; round++) {
      const count = 2 + Math.floor(next() * 8)
      const any = () => `<${1 + Math.floor(next() * count)}>`
      const messages = Array.from({ length: count }, (_, at) =>
        message(at + 1, Array.from({ length: Math.floor(next() * 4) }, any), next() < 0.2 ? { messageId: any() } : {}),
      )
      expect(uids(bounded(messages))).toEqual(messages.map(({ uid }) => uid))
    }
    // The last came first: each of the others is told twice whose answer it is.
    const late = Array.from({ length: 60 }, (_, at) => {
      const number = 60 - at
      return message(
        number,
        Array.from({ length: number - 1 }, (__, before) => `<${before + 1}>`),
      )
    })
    expect(uids(bounded(late))).toHaveLength(60)
  })

  it("of many messages are the same, whatever stands under one of them", () => {
    const pairs = Array.from({ length: 2_000 }, (_, n) => [
      message(2 * n + 1, [], { sent: -n }),
      message(2 * n + 2, [`<${2 * n + 1}>`]),
    ])
    const expected = pairs
      .toReversed()
      .map(([one, other]) => `(${one!.uid} ${other!.uid})`)
      .join("")
    expect(references(pairs.flat())).toBe(expected)
    // More than a call could be given as arguments stand under one that is not there.
    const wide = Array.from({ length: 3_000 }, (_, n) =>
      message(
        n + 1,
        Array.from({ length: 100 }, (__, at) => (at % 2 === 0 ? "<root>" : `<${n}.${at}>`)),
      ),
    )
    expect(references(wide).startsWith("((1)(2)(3)")).toBe(true)
  })
})
