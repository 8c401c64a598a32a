/** A session with a mail server, by what is sent after each of the server's replies. */
import { describe, expect, it } from "@effect/vitest"
import type { Socket } from "node:net"
import { begin, type Outcome, replyOf, type Terms, Unwelcome } from "@svc/mail-gateway/mail/sending/smtp/Conversation"
import type { Letter } from "@svc/mail-gateway/mail/sending/smtp/Letter"
import { Broken } from "@svc/mail-gateway/mail/sending/smtp/Wire"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { vi } from "vitest"
import { patience } from "../../harness/Eventually.ts"
import { scripted } from "./Sinks.ts"

const letter = (more: Partial<Letter> = {}): Letter => ({
  from: "ada@mail.example",
  recipients: ["grace@example.org", "alan@example.org"],
  id: "msg_1=+x",
  content: [Buffer.from("Subject: x\r\n\r\nhello\r\n")],
  mayLeave: Effect.succeed(true),
  isPermitted: () => true,
  ...more,
})

/** Replies by the beginning of the command; 250 to other commands. */
type Script = Readonly<Record<string, string>>

const login = (inTheClear = true) => ({ user: "ada", password: Redacted.make("pässword"), inTheClear })
const base64 = (text: string) => Buffer.from(text).toString("base64")

const plain = { name: "mx.example.org", helo: "mx.mail.example", tls: "none" } as const

/** Sends a message and returns what the server received, and the outcome. */
const session = Effect.fnUntraced(function* (script: Script, terms: Partial<Terms> = {}, more: Partial<Letter> = {}) {
  const known = Object.entries({ DATA: "354 go", ...script })
  const sockets = new Set<Socket>()
  const { port, heard } = yield* scripted((line, socket) => {
    sockets.add(socket)
    return line === ""
      ? (script["greeting"] ?? "220 hi")
      : (known.find(([command]) => command !== "greeting" && line.startsWith(command))?.[1] ?? "250 ok")
  })
  const outcome = yield* begin({ host: "127.0.0.1", port }, { ...plain, ...terms }).pipe(
    Effect.flatMap((conversation) =>
      Effect.map(conversation.transact(letter(more)), (outcome) => ({ ...outcome, isOpen: conversation.isOpen() })),
    ),
    Effect.catch((error: Unwelcome | Broken) => Effect.succeed(error)),
  )
  /** Completes when the client has closed every connection. */
  const closed = Effect.promise(() => vi.waitUntil(() => [...sockets].every(({ destroyed }) => destroyed), patience))
  return { heard, outcome, closed, sockets }
})

const hello = "EHLO mx.mail.example"
const transaction = [
  "MAIL FROM:<ada@mail.example>",
  "RCPT TO:<grace@example.org>",
  "RCPT TO:<alan@example.org>",
  "DATA",
  ".",
]
const codes = (outcome: { readonly _tag: string } | Outcome) =>
  "replies" in outcome ? outcome.replies.map(({ code, command, shared }) => [code, command, shared]) : outcome._tag

describe("A session with a mail server", () => {
  it.effect.each([
    ["greets with 554", { greeting: "554 5.7.1 no" }, "greeting", 554, []],
    ["greets with 300", { greeting: "300 what" }, "greeting", 300, []],
    ["greets with 421", { greeting: "421 busy" }, "greeting", 421, []],
    ["is busy at EHLO, so HELO is not tried", { EHLO: "421 4.3.2 busy" }, "hello", 421, [hello]],
    ["rejects EHLO and HELO", { EHLO: "502 what", HELO: "550 no" }, "hello", 550, [hello, "HELO mx.mail.example"]],
  ] as const)("ends before a transaction if the server %s", ([, script, stage, code, commands]) =>
    Effect.gen(function* () {
      const { heard, outcome, closed, sockets } = yield* session(script, { tls: "optional" })
      expect(outcome).toMatchObject({ _tag: "Unwelcome", stage, code })
      expect(heard).toEqual(commands)
      yield* closed
      expect(sockets.size).toBe(1)
    }),
  )

  it.effect("uses HELO without extensions with a server that does not know EHLO", () =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session({ EHLO: "500 5.5.1 what", HELO: "250-x\r\n250 SIZE 1" })
      expect(heard).toEqual([hello, "HELO mx.mail.example", ...transaction])
      expect(codes(outcome)).toEqual([
        [250, "DATA", true],
        [250, "DATA", true],
      ])
    }),
  )

  it.effect("uses the extensions that the server offers in any case", () =>
    Effect.gen(function* () {
      const { heard } = yield* session({ EHLO: "250-x\r\n250-size 1000\r\n250-dsn\r\n250 Pipelining" })
      expect(heard).toEqual([
        hello,
        "MAIL FROM:<ada@mail.example> SIZE=21 RET=HDRS ENVID=msg_1+3D+2Bx",
        "RCPT TO:<grace@example.org> NOTIFY=FAILURE,DELAY ORCPT=rfc822;grace@example.org",
        "RCPT TO:<alan@example.org> NOTIFY=FAILURE,DELAY ORCPT=rfc822;alan@example.org",
        "DATA",
        ".",
      ])
    }),
  )

  it.effect("offers no extension by its greeting, a size limit without a number, and escapes in addresses", () =>
    Effect.gen(function* () {
      const { heard } = yield* session({ EHLO: "250-DSN\r\n250 SIZE" }, {}, { recipients: ["a+b@example.org"] })
      expect(heard.slice(1, 3)).toEqual(["MAIL FROM:<ada@mail.example> SIZE=21", "RCPT TO:<a+b@example.org>"])
      const dsn = yield* session({ EHLO: "250-x\r\n250 DSN" }, {}, { recipients: ["a+b@example.org"] })
      expect(dsn.heard[2]).toBe("RCPT TO:<a+b@example.org> NOTIFY=FAILURE,DELAY ORCPT=rfc822;a+2Bb@example.org")
    }),
  )

  const patient = { connect: 60_000, greeting: 60_000, command: 60_000, block: 60_000, final: 60_000 }
  it.effect.each([
    ["greeting", { greeting: "220-wait" }],
    ["command", { EHLO: "250-wait" }],
    ["command", { MAIL: "250-wait" }],
    ["final", { ".": "250-wait" }],
  ] as const)("waits for its reply as long as for a %s", ([which, silent]) =>
    Effect.gen(function* () {
      const { outcome } = yield* session(silent, { deadlines: { ...patient, [which]: 50 } })
      expect(outcome).toMatchObject({ message: "The server did not respond for 0.05 s" })
    }),
  )

  it.effect.each(["for a reply", "for a permit"])("is closed if a message is interrupted while it waits %s", (what) =>
    Effect.gen(function* () {
      const waits = yield* Deferred.make<void>()
      const { port } = yield* scripted((line) => {
        if (what === "for a permit" || !line.startsWith("MAIL")) return line === "" ? "220 hi" : "250 ok"
        Deferred.doneUnsafe(waits, Effect.void)
        return null
      })
      const mayLeave = Effect.andThen(Deferred.succeed(waits, undefined), Effect.never)
      const conversation = yield* begin({ host: "127.0.0.1", port }, plain)
      const sending = yield* Effect.forkChild(conversation.transact(letter({ mayLeave })), { startImmediately: true })
      yield* Deferred.await(waits)
      yield* Fiber.interrupt(sending)
      expect(conversation.isOpen()).toBe(false)
    }),
  )

  it("that refuses to begin has a reply with its codes, or with the failure in at most 500 characters", () => {
    const refused = new Unwelcome({ stage: "tls", code: 454, status: "4.7.0", text: "no" })
    expect(replyOf(refused, "mx")).toEqual({ code: 454, status: "4.7.0", text: "no", host: "mx" })
    const broken = replyOf(new Broken({ message: "x".repeat(501) }), null)
    expect(broken).toEqual({ code: null, status: null, text: "x".repeat(500), host: null })
  })
})

describe("A login at a mail server", () => {
  const plain = { EHLO: "250-x\r\n250 AUTH LOGIN PLAIN" }
  const old = { EHLO: "250-x\r\n250 AUTH=LOGIN" }
  const steps = ["AUTH LOGIN", base64("ada"), base64("pässword")]
  const accepts = { AUTH: "334 VXNlcm5hbWU6", [base64("ada")]: "334 UGFzc3dvcmQ6", [base64("pässword")]: "235 in" }

  it.effect.each([
    ["PLAIN", { ...plain, AUTH: "235 in" }, [`AUTH PLAIN ${base64("\0ada\0pässword")}`]],
    ["LOGIN", { ...old, ...accepts }, steps],
    [
      "PLAIN in the old and in the lower spelling",
      { EHLO: "250-x\r\n250 auth=login plain", AUTH: "235 in" },
      [`AUTH PLAIN ${base64("\0ada\0pässword")}`],
    ],
  ] as const)("uses %s if it is offered", ([, script, commands]) =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session(script, { login: login() })
      expect(heard).toEqual([hello, ...commands, ...transaction])
      expect(codes(outcome)).toHaveLength(2)
    }),
  )

  it.effect.each([
    ["PLAIN", { ...plain, AUTH: "535 5.7.8 no" }, 535, 1],
    ["LOGIN", { ...old, AUTH: "504 what" }, 504, 1],
    ["the user name", { ...old, ...accepts, [base64("ada")]: "501 no" }, 501, 2],
    ["the password", { ...old, ...accepts, [base64("pässword")]: "535 no" }, 535, 3],
    ["the password, by asking for more", { ...old, ...accepts, [base64("pässword")]: "334 more" }, 334, 3],
  ] as const)("ends the session if the server refuses %s", ([, script, code, commands]) =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session(script, { login: login() })
      expect(outcome).toMatchObject({ _tag: "Unwelcome", stage: "login", code })
      expect(heard).toHaveLength(1 + commands)
    }),
  )

  it.effect("sends no password in clear text unless that is permitted", () =>
    Effect.gen(function* () {
      for (const tls of ["optional", "none"] as const) {
        const { heard, outcome } = yield* session(plain, { tls, login: login(false) })
        expect(outcome).toMatchObject({ stage: "tls", code: null, text: expect.stringContaining("only sent over TLS") })
        expect(heard).toEqual([hello])
      }
    }),
  )
})

describe("STARTTLS", () => {
  const offered = { EHLO: "250-x\r\n250 STARTTLS", STARTTLS: "454 4.7.0 later" }

  it.effect("that is required and refused, or not offered, ends the session without a second one", () =>
    Effect.gen(function* () {
      for (const tls of ["required", "judged"] as const) {
        const refused = yield* session(offered, { tls })
        expect(refused.outcome).toMatchObject({ stage: "tls", code: 454, status: "4.7.0" })
        expect(refused.heard).toEqual([hello, "STARTTLS"])
        const missing = yield* session({}, { tls })
        expect(missing.outcome).toMatchObject({ stage: "tls", code: null, text: expect.stringContaining("STARTTLS") })
        expect(missing.heard).toEqual([hello])
      }
    }),
  )

  it.effect("that is optional and refused is done without", () =>
    Effect.gen(function* () {
      const { heard } = yield* session(offered, { tls: "optional" })
      expect(heard).toEqual([hello, "STARTTLS", ...transaction])
    }),
  )

  it.effect("that is optional and fails is done without in a second session, but not with a password", () =>
    Effect.gen(function* () {
      // The server asks for the handshake and then closes.
      const script = { EHLO: "250-x\r\n250 STARTTLS", STARTTLS: "220 go\r\n220 early" }
      const { heard } = yield* session(script, { tls: "optional" })
      expect(heard).toEqual([hello, "STARTTLS", hello, ...transaction])
      const secret = yield* session(script, { tls: "optional", login: login(false) })
      expect(secret.outcome).toMatchObject({ _tag: "Unwelcome", stage: "tls" })
      expect(secret.heard).toEqual([hello, "STARTTLS"])
    }),
  )
})

it.effect("A session that is no longer needed ends with QUIT", () =>
  Effect.gen(function* () {
    const { port, heard } = yield* scripted((line) => (line === "" ? "220 hi" : "250 ok"))
    const conversation = yield* begin({ host: "127.0.0.1", port }, plain)
    expect(conversation.isOpen()).toBe(true)
    conversation.quit()
    conversation.quit()
    expect(conversation.isOpen()).toBe(false)
    yield* Effect.promise(() => vi.waitUntil(() => heard.length > 1, patience))
    expect(heard).toEqual([hello, "QUIT"])
  }),
)

describe("A transaction", () => {
  const pipelining = { EHLO: "250-x\r\n250 PIPELINING" }

  it.effect.each([
    ["one command at a time", {}, [transaction[0]!, "RSET"]],
    ["pipelined", pipelining, [...transaction.slice(0, 3), "RSET"]],
  ] as const)("with a refused sender concerns every recipient: %s", ([, script, commands]) =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session({ ...script, MAIL: "550 5.1.8 no" })
      expect(heard.slice(1)).toEqual(commands)
      expect(codes(outcome)).toEqual([
        [550, "MAIL", undefined],
        [550, "MAIL", undefined],
      ])
    }),
  )

  it.effect("without accepted recipients sends no DATA and keeps the replies apart", () =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session({ "RCPT TO:<grace": "550 5.1.1 no", "RCPT TO:<alan": "450 later" })
      expect(heard.slice(1)).toEqual([...transaction.slice(0, 3), "RSET"])
      expect(codes(outcome)).toEqual([
        [550, "RCPT", undefined],
        [450, "RCPT", undefined],
      ])
      expect(outcome).toMatchObject({ isOpen: true })
    }),
  )

  it.effect("with one accepted recipient gives the last reply to that one alone", () =>
    Effect.gen(function* () {
      const { outcome } = yield* session({ "RCPT TO:<grace": "550 no", ".": "451 later" })
      expect(codes(outcome)).toEqual([
        [550, "RCPT", undefined],
        [451, "DATA", undefined],
      ])
    }),
  )

  it.effect.each([
    ["451 later", 451],
    ["554 no", 554],
    ["334 what", 334],
  ] as const)("whose DATA is answered %s sends no content", ([reply, code]) =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session({ DATA: reply })
      expect(heard.slice(1)).toEqual([...transaction.slice(0, 4), "RSET"])
      expect(codes(outcome)).toEqual([
        [code, "DATA", true],
        [code, "DATA", true],
      ])
    }),
  )

  it.effect("whose DATA is acknowledged without the content is not sent", () =>
    Effect.gen(function* () {
      const { heard, outcome } = yield* session({ DATA: "250 ok" })
      expect(outcome).toMatchObject({ _tag: "Broken", isOpen: false })
      expect(heard).not.toContain(".")
    }),
  )

  it.effect.each([
    ["refuses", "552 5.3.4 no", { _tag: "Answered", replies: [552, 552].map((code) => ({ code, command: "DATA" })) }],
    // It has not received the message that it says it accepted.
    ["accepts", "250 ok", { _tag: "Unknown", message: "The server replied before the end of the message" }],
  ] as const)("ends its connection if the server %s its content early", ([, early, expected]) =>
    Effect.gen(function* () {
      const { heard, outcome, closed } = yield* session({ DATA: `354 go\r\n${early}` })
      expect(outcome).toMatchObject({ ...expected, isOpen: false })
      yield* closed
      expect(heard).not.toContain(".")
    }),
  )

  it.effect.each([
    ["MAIL", "Broken"],
    ["DATA", "Broken"],
    [".", "Unknown"],
  ] as const)("whose connection ends at %s is %s", ([command, tag]) =>
    Effect.gen(function* () {
      const { outcome } = yield* session({ [command]: "close" })
      expect(outcome).toEqual({ _tag: tag, message: "The server closed the connection", isOpen: false })
    }),
  )

  it.effect("that may not be sent any more is reset before DATA, and closed after it", () =>
    Effect.gen(function* () {
      const early = yield* session({}, {}, { mayLeave: Effect.succeed(false) })
      expect(early.outcome).toEqual({ _tag: "Held", isOpen: true })
      expect(early.heard.slice(1)).toEqual([...transaction.slice(0, 3), "RSET"])
      let checks = 0
      const late = yield* session(
        {},
        {},
        { isPermitted: () => checks++ === 0, mayLeave: Effect.sync(() => checks < 2) },
      )
      expect(late.outcome).toEqual({ _tag: "Held", isOpen: false })
      expect(late.heard.slice(1)).toEqual(transaction.slice(0, 4))
    }),
  )
})
