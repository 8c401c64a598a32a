/** An agent that answers a mail, with the OpenAI Agents SDK. */
import { Agent, Runner, tool } from "@openai/agents"
import { z } from "zod"
import { instructions } from "../instructions.mjs"

export const model = "gpt-5.2"

export const answer = async (identity, id, model) => {
  const agent = new Agent({
    name: "Mail",
    model,
    instructions,
    tools: [
      tool({
        name: "read_mail",
        description: "Reads a message.",
        parameters: z.object({ id: z.string() }),
        execute: async ({ id }) => {
          const { from, subject, text } = await identity.messages.read({ id })
          return { from, subject, text }
        },
      }),
      tool({
        name: "reply",
        description: "Replies to a message.",
        parameters: z.object({ id: z.string(), text: z.string() }),
        execute: ({ id, text }) => identity.reply({ id }, { text }),
      }),
    ],
  })
  // Traces would send the mail to OpenAI's dashboard.
  const { finalOutput } = await new Runner({ tracingDisabled: true }).run(agent, `Answer the message ${id}.`)
  return finalOutput
}
