/** Waits for a message and lets the agent of a folder answer it: `node examples/answer-mail.mjs FOLDER [--scripted]`. */
import { createClient } from "@agent-identity/sdk"

const [folder, option] = process.argv.slice(2)
const { answer, model } = await import(`./${folder}/agent.mjs`)
const ada = createClient().identity(process.env.HANDLE ?? "ada")

const message = await ada.waitForMessage(process.env.AFTER ? { after: process.env.AFTER } : {})
if (message === undefined) throw new Error("No message arrived within five minutes")
const chosen = option === "--scripted" ? await (await import(`./${folder}/scripted.mjs`)).scripted(message.id) : model
console.log(await answer(ada, message.id, chosen))
