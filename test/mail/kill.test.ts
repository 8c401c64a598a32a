/** A mail process that is killed while it receives a message, and between a message's commit and its 250. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Deployment, type Process } from "../harness/Deployment.ts"
import { stopAfterCommit } from "../harness/StopAfterCommit.ts"
import { conversation, converse, upToData } from "../harness/Mail.ts"
import { eventually } from "../harness/Service.ts"

let deployment: Deployment
let api: Process
let mail: Process
beforeAll(async () => {
  deployment = await deploy()
  api = await deployment.start(["actors", "api"])
  mail = await deployment.start(["mail"])
})
afterAll(() => deployment.stop(), 60_000)

const letter = (subject: string) => `From: cron@example.org\r\nSubject: ${subject}\r\n\r\nNothing to report.\r\n`

it("A killed mail process stores nothing of a partial message, and stores a committed one once when it is retried", async () => {
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
  await Promise.all(halves.map(({ allSent }) => allSent))
  const complete = conversation(mail.smtpPort, [hello!, ...envelope, `${letter("whole")}.\r\n`])

  await stopAfterCommit(deployment, { handle, table: "message", process: mail })
  mail.signal("SIGKILL")
  expect(await Promise.all([complete, ...halves].map(({ broke }) => broke))).toEqual(["", "", ""])

  const another = await deployment.start(["mail"])
  const replies = await converse(another.smtpPort, [hello!, ...envelope, `${letter("whole")}.\r\n`, "QUIT\r\n"])
  expect(replies.at(-2)).toMatch(/^250 /)
  const subjects = async () =>
    (await call(api.base, "GET", `/api/identities/${handle}/messages`, { token })).body.messages.map(
      ({ subject }: { readonly subject: string }) => subject,
    )
  expect(await subjects()).toEqual(["whole"])
  // The mark was deleted after the 250, so the next transaction is another message.
  await eventually(
    async () => {
      await converse(another.smtpPort, [hello!, ...envelope, `${letter("whole")}.\r\n`, "QUIT\r\n"])
      return (await subjects()).length
    },
    (count) => count === 2,
    30,
  )
})
