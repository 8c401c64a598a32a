/** An agent that answers a mail, with Mastra. */
import { Agent } from "@mastra/core/agent"
import { createTool } from "@mastra/core/tools"
import { z } from "zod"
import { instructions } from "../instructions.mjs"

export const model = "openai/gpt-5.2"

export const answer = async (identity, id, model) => {
  const agent = new Agent({
    id: "mail",
    name: "Mail",
    model,
    instructions,
    tools: {
      read_mail: createTool({
        id: "read_mail",
        description: "Reads a message.",
        inputSchema: z.object({ id: z.string() }),
        execute: async ({ id }) => {
          const { from, subject, text } = await identity.messages.read({ id })
          return { from, subject, text }
        },
      }),
      reply: createTool({
        id: "reply",
        description: "Replies to a message.",
        inputSchema: z.object({ id: z.string(), text: z.string() }),
        execute: ({ id, text }) => identity.reply({ id }, { text }),
      }),
    },
  })
  const { text } = await agent.generate(`Answer the message ${id}.`, { maxSteps: 5 })
  return text
}
