/** A model that reads the message, replies, and says so. */
import { Usage } from "@openai/agents"

const call = (name, input) => ({
  type: "function_call",
  callId: name,
  name,
  status: "completed",
  arguments: JSON.stringify(input),
})

export const scripted = (id) => ({
  getResponse: async ({ input }) => {
    const results = input.filter(({ type }) => type === "function_call_result")
    const next = () => {
      if (results.length === 0) return call("read_mail", { id })
      if (results.length === 1) {
        const { subject } = JSON.parse(results[0].output.text)
        return call("reply", { id, text: `I read: ${subject}` })
      }
      const content = [{ type: "output_text", text: "Answered." }]
      return { type: "message", role: "assistant", status: "completed", content }
    }
    return { usage: new Usage(), output: [next()] }
  },
})
