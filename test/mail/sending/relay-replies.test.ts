/** Replies of a relay at the edges of the protocol: its size limit, RSET, and a reply before the end of the message; and TLS from the beginning. */
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { foundation } from "../../harness/Stores.ts"
import { certificate, scripted, sendEachOver, sink, untrustedCertificate, withTransport } from "./Sinks.ts"

layer(foundation)("A relay", (it) => {
  it.effect("with TLS from the beginning gets a message if its certificate is that of its name", () =>
    Effect.gen(function* () {
      for (const [pem, state] of [
        [certificate, "sent"],
        [untrustedCertificate, "deferred"],
      ] as const) {
        const { port, taken } = yield* sink({ ...pem, secure: true })
        const trusted = certificate.cert + untrustedCertificate.cert
        expect(yield* sendEachOver(`smtps://localhost:${port}`, trusted)()).toMatchObject([{ state }])
        expect(taken.map(({ secure }) => secure)).toEqual(state === "sent" ? [true] : [])
      }
    }),
  )

  it.effect("gets a message of exactly its SIZE limit", () =>
    Effect.gen(function* () {
      const announcing = (limit: () => number) =>
        scripted((line) =>
          line === ""
            ? "220 hi"
            : line.startsWith("EHLO")
              ? `250-x\r\n250 SIZE ${limit()}`
              : line === "DATA"
                ? "354 go"
                : "250 ok",
        )
      let size = 1_000_000
      const { port, heard } = yield* announcing(() => size)
      const send = sendEachOver(`smtp://127.0.0.1:${port}`)
      yield* send()
      const exact = Number(/SIZE=(\d+)/.exec(heard.find((line) => line.startsWith("MAIL"))!)![1])
      size = exact
      expect(yield* send()).toMatchObject([{ state: "sent" }])
      size = exact - 1
      expect(yield* send()).toMatchObject([{ state: "refused", reply: { code: 552 } }])
    }),
  )

  it.effect.each([
    ["250 ok", 1],
    ["500 what", 2],
  ] as const)("that replies %s to RSET gets the next message over connection %i", ([answer, connection]) =>
    Effect.gen(function* () {
      let connections = 0
      const { port } = yield* scripted((line) => {
        if (line === "") connections++
        return line === "" ? "220 hi" : line.startsWith("RCPT") ? "450 later" : line === "RSET" ? answer : "250 ok"
      })
      yield* withTransport(`smtp://127.0.0.1:${port}`, (send) => Effect.andThen(send(), send()))
      expect(connections).toBe(connection)
    }),
  )

  it.effect("that replies before the end of the message has not accepted it", () =>
    Effect.gen(function* () {
      const { port } = yield* scripted((line) =>
        line === "" ? "220 hi" : line === "DATA" ? "354 go\r\n250 early" : "250 ok",
      )
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)()).toMatchObject([
        { state: "deferred", reply: { code: null } },
      ])
    }),
  )
})
