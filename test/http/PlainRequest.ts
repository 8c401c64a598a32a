/** A plain request, since `fetch` decompresses responses and forbids some methods. */
import { request as httpRequest } from "node:http"

export interface PlainResponse {
  readonly status: number
  readonly headers: Record<string, string | ReadonlyArray<string> | undefined>
  readonly body: Buffer
}

export const plainRequest = (
  base: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
) =>
  new Promise<PlainResponse>((resolve, reject) => {
    const outgoing = httpRequest(base, { method, headers, path }, (incoming) => {
      const chunks: Array<Buffer> = []
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk))
      incoming.on("end", () =>
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: Buffer.concat(chunks) }),
      )
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })
