/** A Webhook receiver as an integrator would write it with `standardwebhooks`. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import { Webhook } from "standardwebhooks"

export interface ReceivedDelivery {
  readonly at: number
  readonly headers: IncomingHttpHeaders
  readonly body: any
  readonly raw: string
}

export const startReceiver = async (
  answer: (response: ServerResponse, got: ReceivedDelivery) => void = (response) => response.end(),
) => {
  const got: Array<ReceivedDelivery> = []
  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const raw = Buffer.concat(chunks).toString()
      const one = { at: Date.now(), headers: request.headers, body: JSON.parse(raw), raw }
      got.push(one)
      answer(response, one)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/hook`,
    got,
    /** Throws unless the signature is valid, as users of the library rely on. */
    verify: (secret: string, one: ReceivedDelivery) =>
      new Webhook(secret).verify(one.raw, one.headers as Record<string, string>),
    /** Returns whether one of the signatures was made with this secret, at any time. */
    isSignedWith: (secret: string, { headers, raw }: ReceivedDelivery) => {
      const at = new Date(Number(headers["webhook-timestamp"]) * 1000)
      const signature = new Webhook(secret).sign(String(headers["webhook-id"]), at, raw)
      return String(headers["webhook-signature"]).split(" ").includes(signature)
    },
    stop: () => new Promise<void>((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  }
}
