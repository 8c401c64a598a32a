/** A local server of the Messages API whose model reads the message, replies, and says so. */
import { createServer } from "node:http"

const eventsOf = (block, reason) => {
  const isText = block.type === "text"
  const delta = isText
    ? { type: "text_delta", text: block.text }
    : { type: "input_json_delta", partial_json: JSON.stringify(block.input) }
  const message = { id: "msg_1", type: "message", role: "assistant", model: "scripted", content: [], stop_reason: null }
  return [
    { type: "message_start", message: { ...message, usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: isText ? { ...block, text: "" } : { ...block, input: {} } },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: "message_stop" },
  ]
}

export const scripted = async (id) => {
  const call = (name, input) => eventsOf({ type: "tool_use", id: `toolu_${name}`, name, input }, "tool_use")
  const next = ({ messages, tools = [] }) => {
    const results = messages
      .flatMap(({ content }) => (Array.isArray(content) ? content : []))
      .filter(({ type }) => type === "tool_result")
    const isAgent = tools.some(({ name }) => name === "mcp__mail__reply")
    if (isAgent && results.length === 0) return call("mcp__mail__read_mail", { id })
    if (isAgent && results.length === 1) {
      const { subject } = JSON.parse(results[0].content[0].text)
      return call("mcp__mail__reply", { id, text: `I read: ${subject}` })
    }
    return eventsOf({ type: "text", text: "Answered." }, "end_turn")
  }
  const server = createServer(async (request, response) => {
    let body = ""
    for await (const chunk of request) body += chunk
    if (!request.url.startsWith("/v1/messages")) return response.writeHead(404).end()
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const event of next(JSON.parse(body))) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    }
    response.end()
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  server.unref()
  const ANTHROPIC_BASE_URL = `http://127.0.0.1:${server.address().port}`
  const CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = "1"
  return {
    env: {
      ...process.env,
      ANTHROPIC_BASE_URL,
      ANTHROPIC_API_KEY: "scripted",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC,
    },
  }
}
