/** The live stream row: the latency of an Event on an idle stream, and the cost of idle streams. */
import { connect, type Socket } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { deploy, until } from "../harness/Deployment.ts"
import { percentile, round, type Row } from "../harness/Report.ts"
import { family, measurable, meter } from "./Processes.ts"
import { fetchRaw } from "./Requests.ts"

const orgs = 10
const streams = 1_000
const rounds = 60
const idleSeconds = 6

/** Opens an Event stream on a raw socket, without a client library that would add latency. */
const open = async (base: string, token: string, onEvent: (at: number) => void): Promise<Socket> => {
  const { port } = new URL(base)
  const socket = connect(Number(port), "127.0.0.1")
  let connected = false
  socket.setEncoding("utf8")
  socket.on("data", (text: string) => {
    connected ||= text.includes(": connected")
    if (text.includes("event: mail.")) onEvent(performance.now())
  })
  socket.write(`GET /api/events/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`)
  await until("the stream", () => connected)
  return socket
}

export const event = async (): Promise<Row> => {
  const deployment = await deploy()
  const sockets: Array<Socket> = []
  try {
    const raised = { SVC_LIMIT_STREAMS_CREDENTIAL: String(streams), SVC_LIMIT_STREAMS_ORG: String(streams) }
    const service = await deployment.start([], raised)
    const other = await deployment.start(["api"], raised)
    const owners = await Promise.all(
      Array.from({ length: orgs }, async () => {
        const { session } = await signUp(service.base)
        return { session, handle: (await makeIdentity(service.base, session)).handle }
      }),
    )
    /** Measures the CPU usage in percent of a core during some idle seconds. */
    const usage = async () => {
      await sleep(3_000)
      const share = (nanos: number) => nanos / 1e7 / idleSeconds
      const ours = meter(() => [service.child.pid!])
      const store = meter(() => family(deployment.postgres()))
      await sleep(idleSeconds * 1_000)
      return { service: share(ours()), postgres: share(store()) }
    }
    const idleOf = async (): ReturnType<typeof usage> =>
      measurable ? usage() : { service: Number.NaN, postgres: Number.NaN }
    const alone = await idleOf()

    const here: Array<number> = []
    const elsewhere: Array<number> = []
    for (let opened = 0; opened < streams; opened += 20) {
      sockets.push(
        ...(await Promise.all(
          Array.from({ length: 20 }, (_, i) => {
            const owner = owners[(opened + i) % orgs]!
            return open(service.base, owner.session, (at) => here.push(at))
          }),
        )),
      )
    }
    for (const { session } of owners) sockets.push(await open(other.base, session, (at) => elsewhere.push(at)))

    const idle = await idleOf()

    const waits = {
      request: Array<number>(),
      committed: Array<number>(),
      requested: Array<number>(),
      elsewhere: Array<number>(),
    }
    for (let round = 0; round < rounds; round++) {
      const { session, handle } = owners[round % orgs]!
      here.length = 0
      elsewhere.length = 0
      const start = performance.now()
      const { status } = await fetchRaw(
        `${service.base.replace("localhost", "127.0.0.1")}/api/identities/${handle}/mail`,
        {
          method: "PATCH",
          headers: { authorization: `Bearer ${session}`, "content-type": "application/json" },
          body: JSON.stringify({ outgoing: Math.floor(round / orgs) % 2 === 0 ? "stopped" : "active" }),
        },
      )
      const answered = performance.now()
      if (status !== 200) throw new Error(`the change answered ${status}`)
      await until("the Event on every stream", () => here.length === streams / orgs && elsewhere.length === 1)
      waits.request.push(answered - start)
      // The commit is between the request and its response.
      waits.committed.push(...here.map((at) => Math.max(0, at - answered)))
      waits.requested.push(...here.map((at) => at - start))
      waits.elsewhere.push(elsewhere[0]! - start)
    }
    return {
      id: "event",
      ok: true,
      what: `${streams} streams of ${orgs} Orgs: latency from a change to its Event on the Org's ${streams / orgs} streams, and CPU usage while idle`,
      goals: [
        { what: "response to stream p50 ms", value: round(percentile(waits.committed, 0.5)), atMost: 15 },
        ...(measurable
          ? [{ what: "CPU for idle streams, % of a core", value: round(idle.service - alone.service, 1), atMost: 1 }]
          : []),
      ],
      figures: {
        "p99 ms": round(percentile(waits.committed, 0.99)),
        "request p50 ms": round(percentile(waits.request, 0.5)),
        "request to stream p50 ms": round(percentile(waits.requested, 0.5)),
        "request to stream of another process p50 ms": round(percentile(waits.elsewhere, 0.5)),
        ...(measurable
          ? {
              "with streams service %": round(idle.service, 1),
              "with streams PostgreSQL %": round(idle.postgres, 1),
              "without streams service %": round(alone.service, 1),
              "without streams PostgreSQL %": round(alone.postgres, 1),
            }
          : {}),
      },
    }
  } finally {
    for (const socket of sockets) socket.destroy()
    await deployment.stop()
  }
}
