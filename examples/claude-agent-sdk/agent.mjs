/** An agent that answers a mail, with the Claude Agent SDK. */
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk"
import { z } from "zod"
import { instructions } from "../instructions.mjs"

/** Environment variables of the process that talks to the model; here those of this process, with `ANTHROPIC_API_KEY`. */
export const model = { env: process.env }

const text = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }] })

export const answer = async (identity, id, { env }) => {
  const mail = createSdkMcpServer({
    name: "mail",
    tools: [
      tool("read_mail", "Reads a message.", { id: z.string() }, async ({ id }) => {
        const { from, subject, text: body } = await identity.messages.read({ id })
        return text({ from, subject, text: body })
      }),
      tool("reply", "Replies to a message.", { id: z.string(), text: z.string() }, async ({ id, text: body }) =>
        text(await identity.reply({ id }, { text: body })),
      ),
    ],
  })
  const options = {
    systemPrompt: instructions,
    mcpServers: { mail },
    // Only these tools: no shell, no files.
    tools: [],
    allowedTools: ["mcp__mail__read_mail", "mcp__mail__reply"],
    settingSources: [],
    maxTurns: 5,
    env,
  }
  for await (const message of query({ prompt: `Answer the message ${id}.`, options })) {
    if (message.type !== "result") continue
    if (message.subtype !== "success" || message.is_error) throw new Error(JSON.stringify(message))
    return message.result
  }
}
