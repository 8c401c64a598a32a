/** An agent that answers a mail, with the Vercel AI SDK. */
import { isStepCount, tool, ToolLoopAgent } from "ai"
import { z } from "zod"
import { instructions } from "../instructions.mjs"

export const model = "openai/gpt-5.2"

export const answer = async (identity, id, model) => {
  const agent = new ToolLoopAgent({
    model,
    instructions,
    stopWhen: isStepCount(5),
    tools: {
      read_mail: tool({
        description: "Reads a message.",
        inputSchema: z.object({ id: z.string() }),
        execute: async ({ id }) => {
          const { from, subject, text } = await identity.messages.read({ id })
          return { from, subject, text }
        },
      }),
      reply: tool({
        description: "Replies to a message.",
        inputSchema: z.object({ id: z.string(), text: z.string() }),
        execute: ({ id, text }) => identity.reply({ id }, { text }),
      }),
    },
  })
  const { text } = await agent.generate({ prompt: `Answer the message ${id}.` })
  return text
}
