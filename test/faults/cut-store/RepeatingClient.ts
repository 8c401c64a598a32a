/** A client of the API that repeats each request until it has an answer, as docs/api.md tells clients to do. */
import { setTimeout as sleep } from "node:timers/promises"
import { type ApiResponse, call } from "../../harness/Client.ts"
import type { Findings } from "./Findings.ts"

export interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
  readonly token?: string
  /** Calls this tool with `body` as its arguments in place of a REST operation. */
  readonly tool?: string
}

export interface Answer extends ApiResponse {
  /** Whether the request was repeated, so an earlier attempt may have had its effect. */
  readonly isRepeated: boolean
}

/** A request without an answer after this time fails the row. */
const patienceMillis = 120_000

/** Whether a response is final: it neither asks the client to wait nor reports a fault of the service. */
const isAnswer = ({ status, body }: ApiResponse) => status < 500 && body?.agent_hint !== "wait"

/** Calls a tool over MCP. Its result, or its problem, is the body of the returned response. */
const callTool = async (base: string, name: string, input: unknown, token: string): Promise<ApiResponse> => {
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: input } }
  const response = await call(base, "POST", "/api/mcp", { token, body })
  const { isError = false, structuredContent } = response.body?.result ?? {}
  if (structuredContent === undefined) return response
  return { ...response, status: isError === true ? structuredContent.status : 200, body: structuredContent }
}

export class RepeatingClient {
  requests = 0
  repeats = 0
  toolCalls = 0
  readonly #base: () => string
  readonly #token: string
  readonly #findings: Findings

  /** `base` returns the process for the next request. */
  constructor(base: () => string, token: string, findings: Findings) {
    this.#base = base
    this.#token = token
    this.#findings = findings
  }

  async ask({ method, path, body, headers = {}, token = this.#token, tool }: Request): Promise<Answer> {
    const began = Date.now()
    for (let attempt = 1; ; attempt++) {
      this.requests++
      if (attempt > 1) this.repeats++
      if (tool !== undefined) this.toolCalls++
      const attempted =
        tool === undefined
          ? call(this.#base(), method, path, { token, headers, body })
          : callTool(this.#base(), tool, body, token)
      const response = await attempted.catch(() => undefined)
      if (response !== undefined) {
        if (isAnswer(response)) return { ...response, isRepeated: attempt > 1 }
        // A moment without the store is reported as `unavailable`, which asks the client to wait, and as nothing else.
        if (response.body?.agent_hint !== "wait") {
          this.#findings.add(`${method} ${path} answered ${response.status} ${JSON.stringify(response.body)}`)
        }
      }
      if (Date.now() - began > patienceMillis) {
        throw new Error(`${method} ${path} has no answer: ${response?.status} ${JSON.stringify(response?.body)}`)
      }
      await sleep(Math.min(30 + 20 * attempt, 250))
    }
  }

  /** Reads all pages of a list. */
  async list(path: string, member: string): Promise<ReadonlyArray<any>> {
    const all: Array<any> = []
    for (let cursor = ""; ;) {
      const { status, body } = await this.ask({ method: "GET", path: `${path}?limit=100${cursor}` })
      if (status !== 200) throw new Error(`GET ${path} answered ${status} ${JSON.stringify(body)}`)
      all.push(...body[member])
      if (body.next_cursor === null) return all
      cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`
    }
  }
}
