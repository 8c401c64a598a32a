/** A gateway that dies after a message was committed and before its program heard of it; the program sends it again. */
import { connect } from "node:net"
import * as Stores from "@svc/cluster/store/Database"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { settingsOf } from "../../faults/Store.ts"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../../harness/Deployment.ts"
import { converse } from "../../harness/Mail.ts"
import { eventually } from "../../harness/Service.ts"

let deployment: Deployment
let api: Process
let mail: Process
beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["actors", "api"])
  mail = await deployment.start(["mail"])
}, 180_000)
afterAll(() => deployment.stop(), 60_000)

it("is sent once, though the program has no 250 and sends it again", async () => {
  const token = (await signUp(api.base)).session
  const { handle, secrets } = await makeIdentity(api.base, token)
  const address = `${handle}@mail.localhost`
  const own = { token, body: { address } }
  expect((await call(api.base, "POST", `/api/identities/${handle}/allowed-recipients`, own)).status).toBe(201)
  const { username, password } = secrets.smtp
  const says = [
    "EHLO laptop\r\n",
    `AUTH PLAIN ${Buffer.from(`\0${username}\0${password}`).toString("base64")}\r\n`,
    `MAIL FROM:<${address}>\r\n`,
    `RCPT TO:<${address}>\r\n`,
    "DATA\r\n",
    `From: ${address}\r\nTo: ${address}\r\nSubject: once\r\nMessage-ID: <once@laptop>\r\n\r\nHello.\r\n.\r\n`,
  ]

  /** Says all of it; what was answered until the connection broke. */
  const first = new Promise<string>((resolve) => {
    const left = [...says]
    let text = ""
    const socket = connect(mail.submissionPort, "127.0.0.1")
    socket.on("data", (chunk) => {
      text += chunk.toString()
      const line = /^\d{3} .*\r\n$/m.test(text) ? left.shift() : undefined
      if (line === undefined) return
      text = ""
      socket.write(line)
    })
    socket.on("error", () => {})
    socket.on("close", () => resolve(text))
  })

  await Effect.runPromise(
    Effect.gen(function* () {
      const sql = yield* Stores.Unhurried
      const count = (statement: string) =>
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
            count(`select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock'`),
          )
          mail.signal("SIGSTOP")
        }),
      )
      yield* Effect.promise(() => count(`select count(*)::int as n from outgoing`))
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(Stores.layer(settingsOf(deployment))))),
  )
  mail.signal("SIGKILL")
  expect(await first).toBe("")

  const another = await deployment.start(["mail"])
  const replies = await converse(another.submissionPort, [...says, "QUIT\r\n"])
  const [, id] = /^250 2\.6\.0 Queued as (msg_\w+)$/.exec(replies.at(-2)!) ?? []
  const list = async () => (await call(api.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages
  const messages = await eventually(list, (all) => all.length === 2, 30)
  expect(messages.filter((one: any) => one.direction === "outbound").map((one: any) => one.id)).toEqual([id])
}, 180_000)
