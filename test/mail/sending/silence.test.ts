/** Servers that neither reply nor close. The connection is dropped wherever they stop, and the mail is deferred. */
import { expect, layer } from "@effect/vitest"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import { Effect } from "effect"
import { foundation } from "../../harness/Stores.ts"
import { content, scripted, throughRelay, transmission } from "./Sinks.ts"

const short = { connect: 5_000, greeting: 200, command: 200, block: 200, final: 200 }

const honest = (line: string): string | null => (line === "" ? "220 hi" : line === "DATA" ? "354 go" : "250 ok")

/** Only the time without progress in the content is short: replies take longer on a busy machine. */
const shortBlock = { connect: 5_000, greeting: 20_000, command: 20_000, block: 200, final: 20_000 }

/** Silent from this line on. */
const until = (silent: RegExp) => (line: string) => (silent.test(line) ? null : honest(line))

layer(foundation)("A relay that stops responding", (it) => {
  it.effect.each([
    ["before it greets", /^$/],
    ["at EHLO", /^EHLO/],
    ["at MAIL", /^MAIL/],
    ["at RCPT", /^RCPT/],
    ["at DATA", /^DATA/],
    ["after the content", /^\.$/],
  ] as const)("at %s is disconnected, and the attempt sends nothing else", ([, silent]) =>
    Effect.gen(function* () {
      const { port, heard } = yield* scripted(until(silent))
      const [outcome] = yield* Effect.flatMap(MailTransport, ({ send }) => send(transmission())).pipe(
        Effect.provide(throughRelay(`smtp://127.0.0.1:${port}`, undefined, undefined, short)),
      )
      expect(outcome).toMatchObject({ state: "deferred", reply: { code: null } })
      expect(outcome!.reply!.text).toMatch(/did not respond/)
      expect(heard.filter((line) => silent.test(line)).length).toBeLessThanOrEqual(1)
    }),
  )

  it.effect("during the content is disconnected", () =>
    Effect.gen(function* () {
      const { port } = yield* scripted((line, socket) => {
        // The server stops reading, so the buffers fill up.
        if (line === "DATA") setImmediate(() => socket.pause())
        return honest(line)
      })
      const large = Buffer.concat([content, Buffer.from(`${"x".repeat(76)}\r\n`.repeat(200_000))])
      const [outcome] = yield* Effect.flatMap(MailTransport, ({ send }) => send(transmission({ content: large }))).pipe(
        Effect.provide(throughRelay(`smtp://127.0.0.1:${port}`, undefined, undefined, shortBlock)),
      )
      expect(outcome).toMatchObject({ state: "deferred", reply: { code: null } })
      expect(outcome!.reply!.text).toMatch(/accepted no data/)
    }),
  )
})
