/** A mail process that is killed within a message, and between a message's commit and its 250. */
import { connect } from "node:net"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { settingsOf } from "../faults/Store.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../harness/Deployment.ts"
import { converse, upToData } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"

let deployment: Deployment
let api: Process
let mail: Process
beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["actors", "api"])
  mail = await deployment.start(["mail"])
}, 180_000)
afterAll(() => deployment.stop(), 60_000)

const letter = (subject: string) => `From: cron@example.org\r\nSubject: ${subject}\r\n\r\nNothing to report.\r\n`

/** Says these lines, each when the one before it was answered; `said` once the last one is on its way. */
const conversation = (port: number, lines: ReadonlyArray<string>) => {
  const said = Promise.withResolvers<void>()
  const broke = Promise.withResolvers<string>()
  const left = [...lines]
  let text = ""
  const socket = connect(port, "127.0.0.1")
  socket.on("data", (chunk) => {
    text += chunk.toString()
    const line = /^\d{3} .*\r\n$/m.test(text) ? left.shift() : undefined
    if (line === undefined) return
    text = ""
    socket.write(line, () => left.length === 0 && said.resolve())
  })
  socket.on("error", () => {})
  socket.on("close", () => broke.resolve(text))
  return {
    said: said.promise,
    /** What was answered to the last line until the connection broke. */
    broke: broke.promise,
  }
}

it("has stored nothing of the one, and stores the other once when it comes again", async () => {
  const token = (await signUp(api.base)).session
  const { handle, secrets } = await makeIdentity(api.base, token)
  const to = `${handle}@mail.localhost`
  const { username, password } = secrets.smtp
  const login = Buffer.from(`\0${username}\0${password}`).toString("base64")
  const [hello, ...envelope] = upToData(to)

  const halves = [
    conversation(mail.smtpPort, [hello!, ...envelope, letter("half of a letter that arrives")]),
    conversation(mail.submissionPort, [
      "EHLO laptop\r\n",
      `AUTH PLAIN ${login}\r\n`,
      `MAIL FROM:<${to}>\r\n`,
      `RCPT TO:<${to}>\r\n`,
      "DATA\r\n",
      letter("half of a letter that is handed in").replace("cron@example.org", to),
    ]),
  ]
  await Promise.all(halves.map(({ said }) => said))
  const whole = conversation(mail.smtpPort, [hello!, ...envelope, `${letter("whole")}.\r\n`])

  await Effect.runPromise(
    Effect.gen(function* () {
      const sql = yield* Stores.Unhurried
      const one = (statement: string) =>
        eventually(
          () => Effect.runPromise(sql.unsafe<{ n: number }>(statement)),
          ([row]) => row?.n === 1,
          60,
        )
      // The actor's statement waits for the Mailbox, which we hold; then its gateway is stopped, and never goes on.
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`select from mailbox m join identity i on i.id = m.identity_id where i.handle = ${handle} for update of m`
          yield* Effect.promise(() =>
            one(`select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`),
          )
          mail.signal("SIGSTOP")
        }),
      )
      yield* Effect.promise(() => one(`select count(*)::int as n from message`))
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Stores.layer(settingsOf(deployment))))),
  )
  mail.signal("SIGKILL")
  expect(await Promise.all([whole, ...halves].map(({ broke }) => broke))).toEqual(["", "", ""])

  const another = await deployment.start(["mail"])
  const replies = await converse(another.smtpPort, [hello!, ...envelope, `${letter("whole")}.\r\n`, "QUIT\r\n"])
  expect(replies.at(-2)).toMatch(/^250 /)
  const subjects = async () =>
    (await call(api.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages.map(
      ({ subject }: { readonly subject: string }) => subject,
    )
  expect(await subjects()).toEqual(["whole"])
  // The mark of its transaction has gone with the 250, so that what comes now is another letter.
  await eventually(
    async () => {
      await converse(another.smtpPort, [hello!, ...envelope, `${letter("whole")}.\r\n`, "QUIT\r\n"])
      return (await subjects()).length
    },
    (count) => count === 2,
    30,
  )
}, 180_000)
