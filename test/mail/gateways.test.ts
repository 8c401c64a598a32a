/**
 * Mail processes that die before the actor is called or right after a 250, and two that receive identical messages
 * concurrently.
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

const letter = (subject: string) => `From: cron@example.org\r\nSubject: ${subject}\r\n\r\nNothing to report.\r\n.\r\n`

const makeMailbox = async () => {
  const { handle } = await makeIdentity(api.base, token)
  const subjects = async (): Promise<ReadonlyArray<string>> =>
    (await call(api.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages.map(
      ({ subject }: { readonly subject: string }) => subject,
    )
  return { handle, to: `${handle}@mail.localhost`, subjects }
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
  const gateway = await deployment.start(["mail"])
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

  const another = await deployment.start(["mail"])
  expect(await deliver(another, to, "unread")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["unread"])
  another.signal("SIGTERM")
  await another.exited
})

it("a gateway that dies after its 250 and before deleting the mark has lost nothing, and an identical message after it counts as a retry", async () => {
  const { to, subjects } = await makeMailbox()
  await marks(0)
  const gateway = await deployment.start(["mail"])
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

  const another = await deployment.start(["mail"])
  expect(await deliver(another, to, "nightly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["nightly"])
  await marks(0)
  expect(await deliver(another, to, "nightly")).toMatch(/^250 /)
  expect(await subjects()).toEqual(["nightly", "nightly"])
  another.signal("SIGTERM")
  await another.exited
})

it("two gateways that receive identical messages concurrently store one if the first is frozen after its commit", async () => {
  const { handle, to, subjects } = await makeMailbox()
  await marks(0)
  const [one, two] = [await deployment.start(["mail"]), await deployment.start(["mail"])]
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
