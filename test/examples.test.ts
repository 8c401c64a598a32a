/** The examples with the packages of their frameworks and scripted models. */
import { execFile as execFileCallback } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { promisify } from "node:util"
import { createClient } from "@agent-identity/sdk"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { signUp } from "./harness/Client.ts"
import { sharedService, type TestService } from "./harness/Service.ts"

const execFile = promisify(execFileCallback)
const folder = path.join(import.meta.dirname, "..", "examples")
const examples = readdirSync(folder).filter((name) => existsSync(path.join(folder, name, "package.json")))

/** Returns whether the packages of an example are installed; they are not part of the workspace. */
const isInstalled = (name: string) => {
  const { dependencies } = JSON.parse(readFileSync(path.join(folder, name, "package.json"), "utf8"))
  return Object.keys(dependencies).every((one) => existsSync(path.join(folder, name, "node_modules", one)))
}

let service: TestService
let session: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
})
afterAll(async () => {
  const missing = examples.filter((name) => !isInstalled(name))
  if (missing.length > 0) console.log(missing.map((name) => `npm install --prefix examples/${name}`).join("\n"))
})

describe("An example", () => {
  it("is named in the overview with the others", () => {
    const overview = readFileSync(path.join(folder, "README.md"), "utf8")
    expect(examples.filter((name) => !overview.includes(`| \`${name}\` |`))).toEqual([])
    expect(examples.length).toBeGreaterThanOrEqual(5)
  })

  for (const name of examples) {
    it.skipIf(!isInstalled(name))(`of ${name} answers a mail`, async () => {
      const client = createClient({ key: session, baseUrl: service.base })
      const [agent, person] = [
        await client.createIdentity(`${name}-agent`),
        await client.createIdentity(`${name}-person`),
      ]
      const [from, to] = [(await person.identities.read()).email, (await agent.identities.read()).email]
      await person.mailSettings.allow({ address: to })
      await agent.mailSettings.allow({ address: from })
      // The agent waits for messages after one of its own, so that the mail may arrive before it is started.
      const first = await agent.send({ to: [from], text: "Write to me." })
      const asked = await person.send({ to: [to], subject: `A question for ${name}`, text: "Shall we?" })
      const env = {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"],
        SVC_KEY: session,
        SVC_API_URL: service.base,
        HANDLE: agent.handle,
        AFTER: first.id,
      }
      const words = [path.join(folder, "answer-mail.mjs"), name, "--scripted"]
      const { stdout } = await execFile(process.execPath, words, { env, timeout: 60_000 })
      expect(stdout).toBe("Answered.\n")
      const answer = await person.waitForMessage({ from: to, query: "question", after: asked.id, timeoutSeconds: 30 })
      expect(answer).toMatchObject({
        subject: `Re: A question for ${name}`,
        text_reply: expect.stringContaining(`I read: A question for ${name}`),
      })
    })
  }
})
