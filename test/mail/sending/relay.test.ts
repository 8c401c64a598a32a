/** Delivery through the operator's relay, and the outcome for each recipient. */
import type { Socket } from "node:net"
import { expect, layer } from "@effect/vitest"
import { DkimKeys } from "@svc/cluster/mail/dkim/DkimKeys"
import { MailTransport } from "@svc/cluster/mail/sending/MailTransport"
import { pause } from "@svc/cluster/store/Deadline"
import { Unavailable } from "@svc/domain/problems/Problem"
import { Effect, Layer } from "effect"
import { foundation } from "../../harness/Stores.ts"
import {
  certificate,
  content,
  withTransport,
  reply,
  scripted,
  sink,
  untrustedCertificate,
  throughRelay,
  transmission,
  sendEachOver,
} from "./Sinks.ts"

layer(foundation)("A relay", (it) => {
  it.effect("gets the message unchanged, with signatures on top, over verified TLS", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      const outcomes = yield* sendEachOver(`smtp://localhost:${port}?tls=required`, certificate.cert)()
      expect(outcomes).toMatchObject([
        { recipient: "grace@example.org", state: "sent", reply: { code: 250, host: "localhost" } },
      ])
      expect(taken).toHaveLength(1)
      expect(taken[0]).toMatchObject({ from: "bounce+abc@mail.example", to: ["grace@example.org"], secure: true })
      const signatures = /^(?:DKIM-Signature: [^]*?\r\n(?![ \t]))+/.exec(taken[0]!.raw)![0]
      expect(signatures.match(/^DKIM-Signature:/gm)).toHaveLength(2)
      expect(taken[0]!.raw.slice(signatures.length)).toBe(content.toString())
    }),
  )

  it.effect("gets nothing without TLS or with an untrusted certificate if TLS is required", () =>
    Effect.gen(function* () {
      const stripped = yield* sink({ disabledCommands: ["STARTTLS"] })
      const other = yield* sink(untrustedCertificate)
      for (const { port, taken } of [stripped, other]) {
        const [outcome] = yield* sendEachOver(
          `smtp://localhost:${port}?tls=required`,
          certificate.cert + untrustedCertificate.cert,
        )()
        expect(outcome).toMatchObject({ state: "deferred", reply: { code: null } })
        expect(outcome!.reply!.text).toMatch(/TLS/)
        expect(taken).toEqual([])
      }
    }),
  )

  it.effect("gets a password without TLS only if the URL disables TLS", () =>
    Effect.gen(function* () {
      const logins = Effect.fnUntraced(function* (query: string) {
        const { port, heard } = yield* scripted((line) =>
          line === "" ? "220 hi" : line.startsWith("EHLO") ? "250-x\r\n250 AUTH PLAIN" : "250 ok",
        )
        const transport = throughRelay(`smtp://u:p@relay.example:${port}${query}`, undefined, "127.0.0.1")
        yield* Effect.flatMap(MailTransport, ({ send }) => send(transmission())).pipe(Effect.provide(transport))
        return heard.filter((line) => line.startsWith("AUTH")).length
      })
      expect(yield* Effect.forEach(["", "?tls=optional", "?tls=none"], logins)).toEqual([0, 0, 1])
    }),
  )

  it.effect("that sends data before TLS is disconnected, since it could be mistaken for replies under TLS", () =>
    Effect.gen(function* () {
      const { port } = yield* scripted((line) =>
        line === ""
          ? "220 hi"
          : line.startsWith("EHLO")
            ? "250-x\r\n250 STARTTLS"
            : line === "STARTTLS"
              ? "220 go\r\n250-injected\r\n250 AUTH PLAIN"
              : "250 ok",
      )
      const [outcome] = yield* sendEachOver(`smtp://localhost:${port}?tls=required`, certificate.cert)()
      expect(outcome).toMatchObject({ state: "deferred", reply: { text: expect.stringContaining("before TLS") } })
    }),
  )

  it.effect("gets mail in clear text if its optional TLS fails, like a directly reached server", () =>
    Effect.gen(function* () {
      const broken = (line: string, socket: Socket) => {
        if (line === "") return "220 hi"
        if (line.startsWith("EHLO")) return "250-x\r\n250-AUTH PLAIN\r\n250 STARTTLS"
        if (line === "STARTTLS") {
          socket.write("220 go\r\n", () => socket.destroy())
          return null
        }
        return line === "DATA" ? "354 go" : line.startsWith("AUTH") ? "235 ok" : "250 ok"
      }
      const { port, heard } = yield* scripted(broken)
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}?tls=optional`)()).toMatchObject([{ state: "sent" }])
      expect(heard.filter((line) => line === "STARTTLS")).toHaveLength(1)
      // Required TLS does not fall back, and a password for a remote host is not sent in clear text.
      const strict = yield* scripted(broken)
      const withPassword = throughRelay(`smtp://u:p@relay.example:${strict.port}?tls=optional`, undefined, "127.0.0.1")
      const deferred = [
        yield* sendEachOver(`smtp://localhost:${strict.port}?tls=required`, certificate.cert)(),
        yield* Effect.flatMap(MailTransport, ({ send }) => send(transmission())).pipe(Effect.provide(withPassword)),
      ]
      for (const outcomes of deferred) {
        expect(outcomes).toMatchObject([{ state: "deferred", reply: { text: expect.stringContaining("TLS failed") } }])
      }
      expect(strict.heard.filter((line) => /^(AUTH|MAIL)/.test(line))).toEqual([])
    }),
  )

  it.effect.each([
    ["MAIL", { command: "MAIL" }],
    ["RCPT", { command: "RCPT" }],
    ["DATA", { command: "DATA", shared: true }],
    [".", { command: "DATA", shared: true }],
  ] as const)("that rejects %s is quoted with the rejected command", ([at, command]) =>
    Effect.gen(function* () {
      const { port } = yield* scripted((line) =>
        line === ""
          ? "220 hi"
          : line === at || line.startsWith(`${at} `)
            ? "550 no"
            : line === "DATA"
              ? "354 go"
              : line === "." || /^[A-Z]{4}/.test(line)
                ? "250 ok"
                : null,
      )
      const outcomes = yield* sendEachOver(`smtp://127.0.0.1:${port}`)({
        recipients: ["a@example.org", "b@example.org"],
      })
      for (const { reply } of outcomes) {
        expect(reply).toEqual({ code: 550, status: null, text: "no", host: "127.0.0.1", ...command })
      }
    }),
  )

  it.effect("determines the outcome of each recipient: sent, refused or deferred", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink({
        onRcptTo: ({ address }, _, done) => {
          if (address.startsWith("gone")) return done(reply(550, "no such user"))
          if (address.startsWith("full")) return done(reply(452, "mailbox full"))
          done()
        },
      })
      const recipients = ["gone@example.org", "grace@example.org", "full@example.org"]
      const outcomes = yield* sendEachOver(`smtp://127.0.0.1:${port}`)({ recipients })
      expect(outcomes.map(({ recipient, state }) => [recipient, state])).toEqual([
        ["gone@example.org", "refused"],
        ["grace@example.org", "sent"],
        ["full@example.org", "deferred"],
      ])
      expect(outcomes[0]!.reply).toMatchObject({ code: 550, status: "5.1.1", text: "no such user" })
      expect(taken.map(({ to }) => to)).toEqual([["grace@example.org"]])
    }),
  )

  it.effect.each([
    [451, "deferred"],
    [554, "refused"],
  ] as const)("that replies %i to the message makes it %s", ([code, state]) =>
    Effect.gen(function* () {
      const { port } = yield* sink({
        onData: (stream, _, done) => {
          stream.resume()
          stream.on("end", () => done(reply(code, "no")))
        },
      })
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)()).toMatchObject([{ state, reply: { code } }])
    }),
  )

  it.effect("that requires a missing login defers the mail for the operator to fix", () =>
    Effect.gen(function* () {
      const { port } = yield* sink({ authOptional: false })
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)()).toMatchObject([
        { state: "deferred", reply: { code: 530 } },
      ])
    }),
  )

  it.effect("gets no content after sending was stopped, which is checked right before DATA", () =>
    Effect.gen(function* () {
      const heard: Array<string> = []
      const { port, heard: lines } = yield* scripted((line) => {
        heard.push(line)
        return line === "" ? "220 hi" : line === "DATA" ? "354 go" : "250 ok"
      })
      const requestTimes: Array<number> = []
      const mayLeave = Effect.sync(() => {
        requestTimes.push(lines.filter((line) => line.startsWith("RCPT")).length)
        return false
      })
      const outcomes = yield* sendEachOver(`smtp://127.0.0.1:${port}`)({ mayLeave })
      expect(outcomes).toEqual([{ recipient: "grace@example.org", state: "held", reply: null }])
      expect(requestTimes).toEqual([1])
      expect(lines).not.toContain("DATA")
    }),
  )

  it.effect("reuses its connection, and gets a new one if it was closed", () =>
    Effect.gen(function* () {
      const { port, taken, connections, open } = yield* sink({ socketTimeout: 300, closeTimeout: 50 })
      yield* withTransport(`smtp://127.0.0.1:${port}`, (send) =>
        Effect.gen(function* () {
          yield* send()
          yield* send()
          expect(connections()).toBe(1)
          // The relay closes idle connections.
          yield* Effect.repeat(pause(20), { until: () => open() === 0 })
          expect(yield* send()).toMatchObject([{ state: "sent" }])
          expect(connections()).toBe(2)
        }),
      )
      expect(taken).toHaveLength(3)
    }),
  )

  it.effect("that closes a reused connection gets the message over a new one immediately", () =>
    Effect.gen(function* () {
      const letters = new WeakMap<Socket, number>()
      const { port, heard } = yield* scripted((line, socket) => {
        if (line.startsWith("MAIL")) {
          const count = (letters.get(socket) ?? 0) + 1
          letters.set(socket, count)
          if (count === 2) return "close"
        }
        return line === "" ? "220 hi" : line === "DATA" ? "354 go" : "250 ok"
      })
      yield* withTransport(`smtp://127.0.0.1:${port}`, (send) =>
        Effect.gen(function* () {
          expect(yield* send()).toMatchObject([{ state: "sent" }])
          expect(yield* send()).toMatchObject([{ state: "sent" }])
        }),
      )
      expect(heard.filter((line) => line === "DATA")).toHaveLength(2)
    }),
  )

  it.effect("that closes instead of replying to the message leaves it deferred without a second copy", () =>
    Effect.gen(function* () {
      const { port, heard } = yield* scripted((line) =>
        line === ""
          ? "220 hi"
          : line === "DATA"
            ? "354 go"
            : line === "."
              ? "close"
              : /^[A-Z]{4}/.test(line)
                ? "250 ok"
                : null,
      )
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)()).toMatchObject([
        { state: "deferred", reply: { code: null } },
      ])
      expect(heard.filter((line) => line === "DATA")).toHaveLength(1)
    }),
  )

  it.effect.each([
    [421, "deferred"],
    [451, "deferred"],
    [552, "refused"],
  ] as const)("that replies %i during the content and closes makes the mail %s with that reply", ([code, state]) =>
    Effect.gen(function* () {
      const { port } = yield* scripted((line, socket) => {
        if (line === "DATA") socket.once("data", () => socket.end(`${code} no more\r\n`))
        return line === "" ? "220 hi" : line === "DATA" ? "354 go" : line === "." ? null : "250 ok"
      })
      const large = Buffer.concat([content, Buffer.from(`${"0123456789".repeat(7)}\r\n`.repeat(400_000))])
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)({ content: large })).toMatchObject([
        { state, reply: { code } },
      ])
    }),
  )

  it.effect("gets nothing unsigned: no attempt is made while the keys cannot be read", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      const unavailableKeys = Layer.mock(DkimKeys, {
        signing: () => Effect.fail(new Unavailable({ detail: "The store is away.", retry_after_seconds: 1 })),
      })
      const transport = throughRelay(`smtp://localhost:${port}`, undefined, undefined, undefined, unavailableKeys)
      const outcomes = yield* Effect.flatMap(MailTransport, ({ send }) => send(transmission())).pipe(
        Effect.provide(transport),
      )
      expect(outcomes).toEqual([{ recipient: "grace@example.org", state: "held", reply: null }])
      expect(taken).toEqual([])
    }),
  )

  it.effect("with DSN support gets the parameters for failure notifications", () =>
    Effect.gen(function* () {
      const { port, heard } = yield* scripted((line) =>
        line === ""
          ? "220 hi"
          : line.startsWith("EHLO")
            ? "250-x\r\n250-PIPELINING\r\n250-SIZE 1000000\r\n250 DSN"
            : line === "DATA"
              ? "354 go"
              : line === "." || /^[A-Z]{4}/.test(line)
                ? "250 2.0.0 ok"
                : null,
      )
      const recipients = ["a+b=c@example.org"]
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)({ recipients })).toMatchObject([{ state: "sent" }])
      expect(heard.find((line) => line.startsWith("MAIL"))).toMatch(
        /^MAIL FROM:<bounce\+abc@mail\.example> SIZE=\d+ RET=HDRS ENVID=msg_1$/,
      )
      expect(heard).toContain("RCPT TO:<a+b=c@example.org> NOTIFY=FAILURE,DELAY ORCPT=rfc822;a+2Bb+3Dc@example.org")
    }),
  )

  it.effect("gets no message above its SIZE limit", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink({ size: 100 })
      expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)()).toMatchObject([
        { state: "refused", reply: { code: 552, status: "5.3.4" } },
      ])
      expect(taken).toEqual([])
    }),
  )

  it.effect("gets no content that could be read as two messages", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* sink()
      for (const body of ["a\nb\r\n", "a\r.\rb\r\n", "a\0b\r\n", "a\r"]) {
        const bad = Buffer.concat([content, Buffer.from(body)])
        expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)({ content: bad })).toMatchObject([
          { state: "refused", reply: { status: "5.6.0" } },
        ])
      }
      expect(taken).toEqual([])
    }),
  )

  it.effect("that does not speak SMTP, or sends endless lines, is disconnected", () =>
    Effect.gen(function* () {
      for (const greeting of ["HTTP/1.1 200 OK", "2".repeat(10_000), `220-x\r\n`.repeat(1_000)]) {
        const { port } = yield* scripted((line) => (line === "" ? greeting : "250 ok"))
        expect(yield* sendEachOver(`smtp://127.0.0.1:${port}`)()).toMatchObject([
          { state: "deferred", reply: { code: null } },
        ])
      }
    }),
  )
})
