/** An agent that answers a mail, with LangChain.js. */
import { createAgent, tool } from "langchain"
import { z } from "zod"
import { instructions } from "../instructions.mjs"

/** Needs the package `@langchain/openai`. */
export const model = "openai:gpt-5.2"

export const answer = async (identity, id, model) => {
  const readMail = tool(
    async ({ id }) => {
      const { from, subject, text } = await identity.messages.read({ id })
      return JSON.stringify({ from, subject, text })
    },
    { name: "read_mail", description: "Reads a message.", schema: z.object({ id: z.string() }) },
  )
  const reply = tool(async ({ id, text }) => JSON.stringify(await identity.reply({ id }, { text })), {
    name: "reply",
    description: "Replies to a message.",
    schema: z.object({ id: z.string(), text: z.string() }),
  })
  const agent = createAgent({ model, tools: [readMail, reply], systemPrompt: instructions })
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: `Answer the message ${id}.` }] })
  return messages.at(-1).content
}
