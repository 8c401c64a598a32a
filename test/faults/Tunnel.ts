/** Tunnel edges that are killed, drained or suspended under load. */
import { setTimeout as sleep } from "node:timers/promises"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { startOrigin } from "../bench/TunnelReferences.ts"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, type Process, until } from "../harness/Deployment.ts"
import type { Row } from "../harness/Report.ts"
import { get, load, type Observed } from "./TunnelLoad.ts"

/** Starts an agent with links to two edges; clients use a third edge, which forwards to them. */
const threeEdges = async (
  id: string,
  what: string,
  hurt: (first: Process) => Promise<void> | void,
  judge: (seen: Observed) => boolean,
): Promise<Row> => {
  const deployment = await deploy()
  const origin = await startOrigin(64 * 1024 * 1024)
  try {
    const api = await deployment.start(["api", "actors"])
    const edges = [await deployment.start(["edge"]), await deployment.start(["edge"]), await deployment.start(["edge"])]
    const { session } = await signUp(api.base)
    const { handle, secrets } = await makeIdentity(api.base, session)
    const tunnel = connectTunnel({
      key: secrets.identity_key,
      edge: (conn) => `http://connect.tunnel.localhost:${edges[conn]!.edgePort}`,
      port: origin.port,
    })
    await tunnel.ready
    const links = async () =>
      (await call(api.base, "GET", `/api/identities/${handle}/tunnel`, { token: session })).body.links.length
    await until("two links", async () => (await links()) === 2)
    await until("the hop", async () => (await get(edges[2]!.edgePort, handle)) === 200)
    const under = load(edges[2]!.edgePort, handle, 10_000)
    await sleep(2_000)
    await hurt(edges[0]!)
    const seen = await under
    await tunnel.close()
    return {
      id,
      ok: judge(seen),
      what,
      figures: { answered: seen.answered, failed: seen.failed, "longest gap ms": seen.longestGapMillis },
    }
  } finally {
    origin.stop()
    await deployment.stop()
  }
}

export const killEdge = () =>
  threeEdges(
    "kill-edge",
    "kill -9 of an edge that holds one of the agent's two links, while the public asks a third edge",
    (first) => void first.child.kill("SIGKILL"),
    // Requests in flight on the dead link fail: at most the eight of the load.
    ({ answered, failed, longestGapMillis }) => answered > 1_000 && failed <= 8 && longestGapMillis < 1_000,
  )

export const drainEdge = () =>
  threeEdges(
    "drain-edge",
    "SIGTERM to an edge that holds one of the agent's two links, while the public asks a third edge",
    (first) => void first.child.kill("SIGTERM"),
    ({ answered, failed, longestGapMillis }) => answered > 1_000 && failed === 0 && longestGapMillis < 1_000,
  )

export const freezeEdge = () =>
  threeEdges(
    "freeze-edge",
    "an edge that holds one of the agent's two links is frozen for 5 s, while the public asks a third edge",
    async (first) => {
      first.signal("SIGSTOP")
      await sleep(5_000)
      first.signal("SIGCONT")
    },
    // Its requests in flight are answered when it resumes.
    ({ answered, failed, longestGapMillis }) => answered > 1_000 && failed === 0 && longestGapMillis < 1_000,
  )
