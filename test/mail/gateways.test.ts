/**
 * Mail processes that die while they receive a message, before the actor is called, between the commit and the 250, or
 * right after a 250, and two that receive identical messages concurrently. A process that survives one test is the one
 * that dies in the next, because each takes a second of processor time to start.
 */
import { connect } from "node:net"
import { afterAll, beforeAll, expect, it } from "vitest"
import { inStore } from "../faults/Store.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../harness/Deployment.ts"
import { stopAfterCommit } from "../harness/StopAfterCommit.ts"
import { conversation, converse, upToData } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"

let deployment: Deployment
let api: Process
let token: string
/** A mail process that runs between the tests. */
let gateway: Process
beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["actors", "api"])
  gateway = await deployment.start(["mail"])
  token = (await signUp(api.base)).session
})
afterAll(() => deployment.stop(), 60_000)

const begun = (subject: string) => `From: cron@example.org\r\nSubject: ${subject}\r\n\r\nNothing to report.\r\n`
const letter = (subject: string) => `${begun(subject)}.\r\n`

const makeMailbox = async () => {
  const { handle, secrets } = await makeIdentity(api.base, token)
  const messages = async () =>
    (await call(api.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages
  const subjects = async (): Promise<ReadonlyArray<string>> =>
    (await messages()).map(({ subject }: { readonly subject: string }) => subject)
  const { username, password } = secrets.smtp
  return {
    handle,
    to: `${handle}@mail.localhost`,
    login: `AUTH PLAIN ${Buffer.from(`\0${username}\0${password}`).toString("base64")}\r\n`,
    messages,
    subjects,
  }
}

/** Delivers the message to this gateway and returns the reply to its data. */
const deliver = async ({ smtpPort }: Process, to: string, subject: string) =>
  (await converse(smtpPort, [...upToData(to), letter(subject), "QUIT\r\n"])).at(-2)

const marks = (count: number) =>
  eventually(
    () => inStore<{ n: number }>(deployment, "select count(*)::int as n from unanswered_mail"),
    ([row]) => row!.n === count,
    60,
  )

it("a gateway that dies with a complete message before calling the actor has stored nothing, and the sender's retry is stored", async () => {
  const { to, subjects } = await makeMailbox()
  // Stopped after its 354, so that the message is complete and unprocessed.
  const socket = connect(gateway.smtpPort, "127.0.0.1")
  const commands = [...upToData(to)]
  let text = ""
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk) => {
      text += chunk.toString()
      if (/^354 /m.test(text)) resolve()
      else if (/^\d{3} .*\r\n$/m.test(text)) {
        text = ""
        socket.write(commands.shift()!)
      }
    })
    socket.on("error", () => {})
  })
  text = ""
  gateway.signal("SIGSTOP")
  await new Promise<void>((resolve) => void socket.write(letter("unread"), () => resolve()))
  const broke = new Promise((resolve) => socket.once("close", resolve))
  gateway.signal("SIGKILL")
  await broke
  expect(text).toBe("")
  expect(await inStore(deployment, "select from message")).toEqual([])
  expect(await inStore(deployment, "select from unanswered_mail")).toEqual([])

  gateway = await deployment.start(["mail"])
  expect(await deliver(gateway, to, "unread")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["unread"])
})

it("a gateway that dies after its 250 and before deleting the mark has lost nothing, and an identical message after it counts as a retry", async () => {
  const { to, subjects } = await makeMailbox()
  await marks(0)
  // The mark cannot be deleted.
  await inStore(
    deployment,
    "create function stay() returns trigger language plpgsql as $$ begin raise exception 'held'; end $$",
  )
  await inStore(deployment, "create trigger stay before delete on unanswered_mail for each row execute function stay()")
  expect(await deliver(gateway, to, "nightly")).toMatch(/^250 /)
  gateway.signal("SIGKILL")
  await gateway.exited
  await inStore(deployment, "drop function stay cascade")
  await marks(1)
  expect(await subjects()).toEqual(["nightly"])

  gateway = await deployment.start(["mail"])
  expect(await deliver(gateway, to, "nightly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["nightly"])
  await marks(0)
  expect(await deliver(gateway, to, "nightly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["nightly", "nightly"])
})

/** The second mail process of the test of two, which dies in the test after it. */
let two: Process

it("two gateways that receive identical messages concurrently store one if the first is frozen after its commit", async () => {
  const { handle, to, subjects } = await makeMailbox()
  await marks(0)
  const one = gateway
  two = await deployment.start(["mail"])
  const first = conversation(one.smtpPort, [...upToData(to), letter("weekly"), "QUIT\r\n"])
  await stopAfterCommit(deployment, { handle, table: "message", process: one })
  // It finds the mark, checks again, and still finds it.
  expect(await deliver(two, to, "weekly")).toMatch(/^250 /)
  one.signal("SIGCONT")
  expect(await first.broke).toMatch(/^221 /)
  expect(await subjects()).toEqual(["weekly"])
  await marks(0)
  expect(await deliver(two, to, "weekly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["weekly", "weekly"])
})

it("A killed mail process stores nothing of a partial message, and stores a committed one once when it is retried", async () => {
  const { handle, to, login, subjects } = await makeMailbox()
  const [hello, ...envelope] = upToData(to)

  const halves = [
    conversation(two.smtpPort, [hello!, ...envelope, begun("half of a letter that arrives")]),
    conversation(two.submissionPort, [
      "EHLO laptop\r\n",
      login,
      `MAIL FROM:<${to}>\r\n`,
      `RCPT TO:<${to}>\r\n`,
      "DATA\r\n",
      begun("half of a letter that is handed in").replace("cron@example.org", to),
    ]),
  ]
  await Promise.all(halves.map(({ allSent }) => allSent))
  const complete = conversation(two.smtpPort, [hello!, ...envelope, letter("whole")])

  await stopAfterCommit(deployment, { handle, table: "message", process: two })
  two.signal("SIGKILL")
  expect(await Promise.all([complete, ...halves].map(({ broke }) => broke))).toEqual(["", "", ""])

  const replies = await converse(gateway.smtpPort, [hello!, ...envelope, letter("whole"), "QUIT\r\n"])
  expect(replies.at(-2)).toMatch(/^250 /)
  expect(await subjects()).toEqual(["whole"])
  // The mark was deleted after the 250, so the next transaction is another message.
  await eventually(
    async () => {
      await converse(gateway.smtpPort, [hello!, ...envelope, letter("whole"), "QUIT\r\n"])
      return (await subjects()).length
    },
    (count) => count === 2,
    30,
  )
})

it("a submitted message is sent once if the program gets no 250 and retries", async () => {
  const { handle, to: address, login, messages } = await makeMailbox()
  const own = { token, body: { address } }
  expect((await call(api.base, "POST", `/api/identities/${handle}/allowed-recipients`, own)).status).toBe(201)
  const commands = [
    "EHLO laptop\r\n",
    login,
    `MAIL FROM:<${address}>\r\n`,
    `RCPT TO:<${address}>\r\n`,
    "DATA\r\n",
    `From: ${address}\r\nTo: ${address}\r\nSubject: once\r\nMessage-ID: <once@laptop>\r\n\r\nHello.\r\n.\r\n`,
  ]

  const first = conversation(gateway.submissionPort, commands)
  await stopAfterCommit(deployment, { handle, table: "outgoing", process: gateway })
  gateway.signal("SIGKILL")
  expect(await first.broke).toBe("")

  gateway = await deployment.start(["mail"])
  const replies = await converse(gateway.submissionPort, [...commands, "QUIT\r\n"])
  const [, id] = /^250 2\.6\.0 Queued as (msg_\w+)$/.exec(replies.at(-2)!) ?? []
  const both = await eventually(messages, (all) => all.length === 2)
  expect(both.filter((one: any) => one.direction === "outbound").map((one: any) => one.id)).toEqual([id])
})
