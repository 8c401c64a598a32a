/** Cooperative work on many messages: its results, and that other fibers run in between. */
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

describe("cooperative work", () => {
  it("sorts stably, like a normal sort", () => {
    const next = random(11)
    for (const length of [0, 1, 99, 100, 101, 999, 4_321]) {
      const list = Array.from({ length }, (_, at) => ({ at, of: Math.floor(next() * 50) }))
      const byOf = (a: (typeof list)[number], b: (typeof list)[number]) => a.of - b.of
      expect(all(CooperativeWork.sorted(list, byOf))).toEqual(list.toSorted(byOf))
    }
  })

  it("yields to other fibers and runs one large computation at a time", async () => {
    let open = false
    let started = 0
    // Runs until the event loop has processed later work.
    function* waiting(): CooperativeWork.CooperativeWork<number> {
      started++
      for (let n = 0; !open && n < 10_000_000; n++) yield
      return open ? started : 0
    }
    setTimeout(() => (open = true), 0)
    const one = CooperativeWork.exclusive(50_000, CooperativeWork.done(waiting))
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

  it("link replies to parents, including missing parents", () => {
    expect(references([message(1), message(2, ["<1>"]), message(3, ["<1>", "<2>"]), message(4, ["<1>"])])).toBe(
      "(1 (2 3)(4))",
    )
    expect(references([message(1), message(2, ["<3>", "<1>"]), message(3, ["<2>"])])).toBe("(3 1 2)")
    expect(references([message(1, ["<x>"]), message(2, ["<x>"])])).toBe("((1)(2))")
    const of = (uid: number, subject: string) => message(uid, [], { subject })
    expect(references([of(1, "a"), of(2, "Re: a"), of(3, "b"), of(4, "b")])).toBe("(1 2)((3)(4))")
    expect(bySubject([of(1, "b"), of(2, "a"), of(3, "Re: b"), of(4, "[l] a (fwd)")])).toBe("(1 3)(2 4)")
  })

  it("ignore reference loops, and a message's own references replace those implied by others", () => {
    expect(references([message(1, ["<2>"]), message(2, ["<1>"])])).toBe("(2 1)")
    expect(references([message(1, ["<2>", "<1>"]), message(2)])).toBe("(1)(2)")
    expect(references([message(1, ["<1>"]), message(2, ["<2>", "<2>"])])).toBe("(1)(2)")
    // Message 3 implies that 1 replies to 2; message 1 arrives later and has no references, or refers to 3.
    expect(references([message(2), message(3, ["<2>", "<1>"]), message(1)])).toBe("(1 3)(2)")
    expect(references([message(2), message(3, ["<2>", "<1>"]), message(1, ["<3>"])])).toBe("(1 3)(2)")
    expect(references([message(2), message(3, ["<2>", "<1>"]), message(1, ["<2>"])])).toBe("(2 1 3)")
    expect(references([message(1), message(2, ["<3>", "<1>"]), message(3, ["<2>"])])).toBe("(3 1 2)")
  })

  it("contain each message once for arbitrary references", () => {
    const next = random(7)
    /** Only a few steps per message; visiting messages repeatedly would take more. */
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
    // The last message came first: each other message gets its parent twice.
    const late = Array.from({ length: 60 }, (_, at) => {
      const number = 60 - at
      return message(
        number,
        Array.from({ length: number - 1 }, (__, before) => `<${before + 1}>`),
      )
    })
    expect(uids(bounded(late))).toHaveLength(60)
  })

  it("of many messages do not depend on the number of children", () => {
    const pairs = Array.from({ length: 2_000 }, (_, n) => [
      message(2 * n + 1, [], { sent: -n }),
      message(2 * n + 2, [`<${2 * n + 1}>`]),
    ])
    const expected = pairs
      .toReversed()
      .map(([one, other]) => `(${one!.uid} ${other!.uid})`)
      .join("")
    expect(references(pairs.flat())).toBe(expected)
    // A missing message has more children than a call can take arguments.
    const wide = Array.from({ length: 3_000 }, (_, n) =>
      message(
        n + 1,
        Array.from({ length: 100 }, (__, at) => (at % 2 === 0 ? "<root>" : `<${n}.${at}>`)),
      ),
    )
    expect(references(wide).startsWith("((1)(2)(3)")).toBe(true)
  })
})
