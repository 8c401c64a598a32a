/** Sends requests from this process, for rows in which each response decides the next request. */
import { Agent, request } from "node:http"

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

/** Sends a request with the cheapest available client and returns status and body. */
export const fetchRaw = (
  url: string,
  options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: string } = {},
): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { agent, method: options.method ?? "GET", headers: options.headers ?? {} },
      (response) => {
        let body = ""
        response.setEncoding("utf8")
        response.on("data", (chunk: string) => (body += chunk))
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }))
      },
    )
    outgoing.on("error", reject)
    outgoing.end(options.body)
  })
