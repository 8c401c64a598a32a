/**
 * Mail processes that die while they receive a message, before the actor is called, between the commit and the 250, or
 * right after a 250, and two that receive identical messages concurrently.
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
beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["actors", "api"])
  token = (await signUp(api.base)).session
})
afterAll(() => deployment.stop(), 60_000)

/** Mail processes that survived a test. Another test uses them, because each takes a second of processor time to start. */
const surviving: Array<Process> = []
const mailProcess = async () => surviving.pop() ?? (await deployment.start(["mail"]))

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
  )

it("a gateway that dies with a complete message before calling the actor has stored nothing, and the sender's retry is stored", async () => {
  const [dying, { to, subjects }] = [await mailProcess(), await makeMailbox()]
  // Stopped after its 354, so that the message is complete and unprocessed.
  const socket = connect(dying.smtpPort, "127.0.0.1")
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
  dying.signal("SIGSTOP")
  await new Promise<void>((resolve) => void socket.write(letter("unread"), () => resolve()))
  const broke = new Promise((resolve) => socket.once("close", resolve))
  dying.signal("SIGKILL")
  await broke
  expect(text).toBe("")
  expect(await subjects()).toEqual([])
  expect(await inStore(deployment, "select from unanswered_mail")).toEqual([])

  const next = await mailProcess()
  expect(await deliver(next, to, "unread")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["unread"])
  surviving.push(next)
})

it("a gateway that dies after its 250 and before deleting the mark has lost nothing, and an identical message after it counts as a retry", async () => {
  const [dying, { to, subjects }] = [await mailProcess(), await makeMailbox()]
  await marks(0)
  // The mark cannot be deleted.
  await inStore(
    deployment,
    "create function stay() returns trigger language plpgsql as $$ begin raise exception 'held'; end $$",
  )
  await inStore(deployment, "create trigger stay before delete on unanswered_mail for each row execute function stay()")
  expect(await deliver(dying, to, "nightly")).toMatch(/^250 /)
  dying.signal("SIGKILL")
  await dying.exited
  await inStore(deployment, "drop function stay cascade")
  await marks(1)
  expect(await subjects()).toEqual(["nightly"])

  const next = await mailProcess()
  expect(await deliver(next, to, "nightly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["nightly"])
  await marks(0)
  expect(await deliver(next, to, "nightly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["nightly", "nightly"])
  surviving.push(next)
})

it("two gateways that receive identical messages concurrently store one if the first is frozen after its commit", async () => {
  const { handle, to, subjects } = await makeMailbox()
  await marks(0)
  const [one, two] = [await mailProcess(), await mailProcess()]
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
  surviving.push(one, two)
})

it("A killed mail process stores nothing of a partial message, and stores a committed one once when it is retried", async () => {
  const [dying, other] = [await mailProcess(), await mailProcess()]
  const { handle, to, login, subjects } = await makeMailbox()
  const [hello, ...envelope] = upToData(to)

  const halves = [
    conversation(dying.smtpPort, [hello!, ...envelope, begun("half of a letter that arrives")]),
    conversation(dying.submissionPort, [
      "EHLO laptop\r\n",
      login,
      `MAIL FROM:<${to}>\r\n`,
      `RCPT TO:<${to}>\r\n`,
      "DATA\r\n",
      begun("half of a letter that is handed in").replace("cron@example.org", to),
    ]),
  ]
  await Promise.all(halves.map(({ allSent }) => allSent))
  const complete = conversation(dying.smtpPort, [hello!, ...envelope, letter("whole")])

  await stopAfterCommit(deployment, { handle, table: "message", process: dying })
  dying.signal("SIGKILL")
  expect(await Promise.all([complete, ...halves].map(({ broke }) => broke))).toEqual(["", "", ""])

  const replies = await converse(other.smtpPort, [hello!, ...envelope, letter("whole"), "QUIT\r\n"])
  expect(replies.at(-2)).toMatch(/^250 /)
  expect(await subjects()).toEqual(["whole"])
  // The mark was deleted after the 250, so the next transaction is another message.
  await eventually(
    async () => {
      await converse(other.smtpPort, [hello!, ...envelope, letter("whole"), "QUIT\r\n"])
      return (await subjects()).length
    },
    (count) => count === 2,
    30,
  )
  surviving.push(other)
})

it("a submitted message is sent once if the program gets no 250 and retries", async () => {
  const dying = await mailProcess()
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

  const first = conversation(dying.submissionPort, commands)
  await stopAfterCommit(deployment, { handle, table: "outgoing", process: dying })
  dying.signal("SIGKILL")
  expect(await first.broke).toBe("")

  const next = await mailProcess()
  const replies = await converse(next.submissionPort, [...commands, "QUIT\r\n"])
  const [, id] = /^250 2\.6\.0 Queued as (msg_\w+)$/.exec(replies.at(-2)!) ?? []
  const both = await eventually(messages, (all) => all.length === 2)
  expect(both.filter((one: any) => one.direction === "outbound").map((one: any) => one.id)).toEqual([id])
})
