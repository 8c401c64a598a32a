/** A model that reads the message, replies, and says so. */
import { MockLanguageModelV3 } from "ai/test"

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }

export const scripted = (id) => {
  const call = (toolName, input) => ({
    content: [{ type: "tool-call", toolCallId: toolName, toolName, input: JSON.stringify(input) }],
    finishReason: { unified: "tool-calls" },
    usage,
    warnings: [],
  })
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const results = prompt.filter(({ role }) => role === "tool").flatMap(({ content }) => content)
      if (results.length === 0) return call("read_mail", { id })
      if (results.length === 1) return call("reply", { id, text: `I read: ${results[0].output.value.subject}` })
      return { content: [{ type: "text", text: "Answered." }], finishReason: { unified: "stop" }, usage, warnings: [] }
    },
  })
}
