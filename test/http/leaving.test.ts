/** A shutdown while a request is incomplete, or a stream is open. */
import { connect } from "node:net"
import { expect, it } from "vitest"
import { signUp } from "../harness/Client.ts"
import { eventually, startService } from "../harness/Service.ts"

it(
  "shutdown does not wait for a body that never arrives, and ends streams of Events",
  { timeout: 45_000 },
  async () => {
    const service = await startService()
    const ended = ["/api/contact", "/api/keys", "/api/mcp", "/auth/sign-in", "/api/oauth/token"].flatMap((path) =>
      ["", "Authorization: Bearer x\r\n"].flatMap((credential) =>
        [50, 50_000].map((length) => {
          const socket = connect(service.httpPort, "127.0.0.1")
          const fields = `Host: localhost\r\n${credential}Content-Type: application/json\r\nContent-Length: ${length}\r\n`
          socket.on("error", () => undefined).resume()
          return new Promise<void>((resolve) => {
            socket.once("close", () => resolve())
            socket.write(`POST ${path} HTTP/1.1\r\n${fields}\r\n{`)
          })
        }),
      ),
    )
    // The response follows the previous ones. On a busy machine, the store may be late for a moment after the start.
    await eventually(
      () => fetch(`${service.base}/api/healthz`),
      ({ status }) => status === 200,
    )
    const { session } = await signUp(service.base)
    const stream = await fetch(`${service.base}/api/events/stream`, { headers: { authorization: `Bearer ${session}` } })
    await service.leave()
    await Promise.all(ended)
    expect(await stream.text()).toMatch(/^: connected/)
    await service.stop()
  },
)
