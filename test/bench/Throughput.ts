/** How often something is done per second, with so many at a time. */
import { Agent, request } from "node:http"
import { percentile, round } from "../harness/Report.ts"

export interface Rate {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
}

/** Does `work` for `seconds`, `width` at a time, after a warm-up of a fifth of that. */
export const rate = async (
  width: number,
  seconds: number,
  work: (worker: number) => Promise<unknown>,
): Promise<Rate> => {
  const warm = Date.now() + seconds * 200
  const end = warm + seconds * 1000
  const waits: Array<number> = []
  await Promise.all(
    Array.from({ length: width }, async (_, worker) => {
      while (Date.now() < end) {
        const start = performance.now()
        await work(worker)
        if (Date.now() > warm) waits.push(performance.now() - start)
      }
    }),
  )
  return {
    perSecond: Math.round(waits.length / seconds),
    p50: round(percentile(waits, 0.5)),
    p99: round(percentile(waits, 0.99)),
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 256 })

/** The leanest client there is here, so that the server is what is measured. Answers the status and, if asked, the body. */
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
