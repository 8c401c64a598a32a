/** Send permits that expire at any point of an SMTP session. */
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

layer(foundation)("A relay", (it) => {
  it.effect("gets no DATA if the permit expired after it was granted, and no content if it expired after DATA", () =>
    Effect.gen(function* () {
      const { port, heard: lines } = yield* scripted((line) =>
        line === "" ? "220 hi" : line === "DATA" ? "354 go" : "250 ok",
      )
      const count = (word: string) => lines.filter((line) => line.startsWith(word)).length
      const held = [{ recipient: "grace@example.org", state: "held", reply: null }]
      const send = via(`smtp://127.0.0.1:${port}`)
      // The process freezes after the permit was granted and before DATA is written.
      expect(yield* send({ isPermitted: () => false })).toEqual(held)
      expect([count("RCPT"), count("DATA"), count("RSET")]).toEqual([1, 0, 1])
      // The process freezes after the server's 354; the permit has expired and is not renewed.
      const mayLeave = Effect.sync(() => count("DATA") === 0)
      expect(yield* send({ mayLeave, isPermitted: () => count("DATA") === 0 })).toEqual(held)
      expect([count("DATA"), count("Subject"), count(".")]).toEqual([1, 0, 0])
    }),
  )

  it.effect("gets the content of a long message under successive permits", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      const long = Buffer.concat([content, Buffer.from(`${"x".repeat(70)}\r\n`.repeat(4_000))])
      let requests = 0
      let remaining = 0
      const mayLeave = Effect.sync(() => {
        requests++
        remaining = 1
        return true
      })
      const outcomes = yield* via(`smtp://127.0.0.1:${port}`)({
        content: long,
        mayLeave,
        isPermitted: () => remaining-- > 0,
      })
      expect(outcomes).toMatchObject([{ state: "sent" }])
      expect(taken[0]!.raw.endsWith(long.toString())).toBe(true)
      expect(requests).toBeGreaterThan(4)
    }),
  )
})
