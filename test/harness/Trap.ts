/** A server that must not receive any request; it records the requests it gets. */
import { createServer } from "node:http"

export const startTrap = async () => {
  const requests: Array<string> = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? "")
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return { asked: requests, base: `http://127.0.0.1:${port}`, stop: () => void server.close() }
}
