/** A gateway that dies after the commit of a submitted message and before its reply; the program retries. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../../harness/Deployment.ts"
import { stopAfterCommit } from "../../harness/StopAfterCommit.ts"
import { conversation, converse } from "../../harness/Mail.ts"
import { eventually } from "../../harness/Service.ts"

let deployment: Deployment
let api: Process
let mail: Process
beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["actors", "api"])
  mail = await deployment.start(["mail"])
})
afterAll(() => deployment.stop(), 60_000)

it("a submitted message is sent once if the program gets no 250 and retries", async () => {
  const token = (await signUp(api.base)).session
  const { handle, secrets } = await makeIdentity(api.base, token)
  const address = `${handle}@mail.localhost`
  const own = { token, body: { address } }
  expect((await call(api.base, "POST", `/api/identities/${handle}/allowed-recipients`, own)).status).toBe(201)
  const { username, password } = secrets.smtp
  const commands = [
    "EHLO laptop\r\n",
    `AUTH PLAIN ${Buffer.from(`\0${username}\0${password}`).toString("base64")}\r\n`,
    `MAIL FROM:<${address}>\r\n`,
    `RCPT TO:<${address}>\r\n`,
    "DATA\r\n",
    `From: ${address}\r\nTo: ${address}\r\nSubject: once\r\nMessage-ID: <once@laptop>\r\n\r\nHello.\r\n.\r\n`,
  ]

  const first = conversation(mail.submissionPort, commands)
  await stopAfterCommit(deployment, { handle, table: "outgoing", process: mail })
  mail.signal("SIGKILL")
  expect(await first.broke).toBe("")

  const another = await deployment.start(["mail"])
  const replies = await converse(another.submissionPort, [...commands, "QUIT\r\n"])
  const [, id] = /^250 2\.6\.0 Queued as (msg_\w+)$/.exec(replies.at(-2)!) ?? []
  const list = async () => (await call(api.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages
  const messages = await eventually(list, (all) => all.length === 2)
  expect(messages.filter((one: any) => one.direction === "outbound").map((one: any) => one.id)).toEqual([id])
})
