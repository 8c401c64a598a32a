/** Faults of the tunnel: the edge that holds a link is killed, drained, or reached over another one, under load. */
import { createServer, request } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../rig/Deployment.ts"
import { freePort } from "../rig/Ports.ts"
import type { Row } from "../rig/Report.ts"

const get = (port: number, handle: string) =>
  new Promise<number>((resolve) => {
    const outgoing = request(
      {
        host: "127.0.0.1",
        port,
        path: "/",
        agent: false,
        headers: { host: `${handle}.tunnel.localhost` },
        timeout: 10_000,
      },
      (incoming) => {
        incoming.resume()
        incoming.on("end", () => resolve(incoming.statusCode ?? 0))
        incoming.on("error", () => resolve(0))
      },
    )
    outgoing.on("error", () => resolve(0))
    outgoing.on("timeout", () => outgoing.destroy())
    outgoing.end()
  })

/** Two edges, an agent on the first; the public asks the second, which goes one hop. */
const twoEdges = async (
  id: string,
  what: string,
  hurt: (first: Process) => Promise<void> | void,
  judge: (seen: { failed: number; longestGapMillis: number; hopped: number }) => boolean,
): Promise<Row> => {
  const deployment = await deploy()
  const origin = createServer((_, outgoing) => outgoing.end("ok"))
  const port = await freePort()
  await new Promise<void>((resolve) => origin.listen(port, "127.0.0.1", resolve))
  try {
    const api = await deployment.start(["api", "actors"])
    const edges = [await deployment.start(["edge"]), await deployment.start(["edge"])]
    const { session } = await signUp(api.base)
    const { handle, secrets } = await makeIdentity(api.base, session)
    // A name with both edges behind it: the first try goes to the one, the next to the other.
    let tries = 0
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: () => `http://connect.tunnel.localhost:${edges[Math.min(tries++, 1)]!.edgePort}`,
      port,
    })
    await tunnel.ready
    await until("the hop", async () => (await get(edges[1]!.edgePort, handle)) === 200)
    let hopped = 0
    let failed = 0
    let last = Date.now()
    let longestGapMillis = 0
    const end = Date.now() + 8_000
    const load = Promise.all(
      Array.from({ length: 8 }, async () => {
        while (Date.now() < end) {
          const status = await get(edges[1]!.edgePort, handle)
          if (status === 200) {
            hopped++
            longestGapMillis = Math.max(longestGapMillis, Date.now() - last)
            last = Date.now()
          } else failed++
          await sleep(2)
        }
      }),
    )
    await sleep(2_000)
    await hurt(edges[0]!)
    await load
    await tunnel.close()
    const seen = { failed, longestGapMillis, hopped }
    return { id, ok: judge(seen), what, figures: { answered: hopped, failed, "longest gap ms": longestGapMillis } }
  } finally {
    origin.close()
    await deployment.stop()
  }
}

export const killEdge = () =>
  twoEdges(
    "kill-edge",
    "kill -9 of the edge that holds the link, while the public asks another edge",
    (first) => void first.child.kill("SIGKILL"),
    // Requests under way on the dead link fail; new ones are served as soon as the agent is back.
    ({ hopped, longestGapMillis }) => hopped > 500 && longestGapMillis < 4_000,
  )

export const drainEdge = () =>
  twoEdges(
    "drain-edge",
    "SIGTERM to the edge that holds the link, while the public asks another edge",
    (first) => void first.child.kill("SIGTERM"),
    ({ hopped, failed, longestGapMillis }) => hopped > 500 && failed === 0 && longestGapMillis < 4_000,
  )
