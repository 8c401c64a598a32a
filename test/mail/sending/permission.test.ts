/** The permission to leave, as a conversation with a mail server keeps to it: it may expire at any point. */
import { expect, layer } from "@effect/vitest"
import { MailTransport, type Transmission } from "@svc/cluster/mail/sending/MailTransport"
import { Effect } from "effect"
import { foundation } from "../../harness/Stores.ts"
import { content, scripted, sink, throughRelay, transmission } from "./Sinks.ts"

const via = (url: string) => {
  const transport = throughRelay(url)
  return (more: Partial<Transmission>) =>
    Effect.flatMap(MailTransport, ({ send }) => send(transmission(more))).pipe(Effect.provide(transport))
}

layer(foundation)("a relay", (it) => {
  it.effect(
    "gets no DATA where the permission expired after it was asked for, and no content where it expired after DATA",
    () =>
      Effect.gen(function* () {
        const { port, heard: lines } = yield* scripted((line) =>
          line === "" ? "220 hi" : line === "DATA" ? "354 go" : "250 ok",
        )
        const said = (word: string) => lines.filter((line) => line.startsWith(word)).length
        const held = [{ recipient: "grace@example.org", state: "held", reply: null }]
        const send = via(`smtp://127.0.0.1:${port}`)
        // The process was frozen between the answer of the store and the turn in which DATA would be written.
        expect(yield* send({ isPermitted: () => false })).toEqual(held)
        expect([said("RCPT"), said("DATA"), said("RSET")]).toEqual([1, 0, 1])
        // Frozen until after the server said to go on: no permission any more, and none is granted.
        const mayLeave = Effect.sync(() => said("DATA") === 0)
        expect(yield* send({ mayLeave, isPermitted: () => said("DATA") === 0 })).toEqual(held)
        expect([said("DATA"), said("Subject"), said(".")]).toEqual([1, 0, 0])
      }),
  )

  it.effect("gets the content of a long message under permissions that follow one another", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      const long = Buffer.concat([content, Buffer.from(`${"x".repeat(70)}\r\n`.repeat(4_000))])
      let asked = 0
      let left = 0
      const mayLeave = Effect.sync(() => {
        asked++
        left = 1
        return true
      })
      const outcomes = yield* via(`smtp://127.0.0.1:${port}`)({
        content: long,
        mayLeave,
        isPermitted: () => left-- > 0,
      })
      expect(outcomes).toMatchObject([{ state: "sent" }])
      expect(taken[0]!.raw.endsWith(long.toString())).toBe(true)
      expect(asked).toBeGreaterThan(4)
    }),
  )
})
