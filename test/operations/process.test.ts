/** A process as its operator observes it: first log lines, health checks, shutdown, and exported traces. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { type Deployment, deploy, isHealthy, type Process, until } from "../harness/Deployment.ts"
import { send } from "../harness/Mail.ts"
import { freePort } from "../harness/Ports.ts"
import { startReceiver } from "../harness/Receiver.ts"

let deployment: Deployment
let started: Process | undefined
let ops: string
let exported = ""
const collector = createServer((request, response) => {
  request.on("data", (chunk: Buffer) => (exported += chunk.toString()))
  request.on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"))
})

const probe = async (path: string) => {
  const answer = await fetch(`${ops}${path}`)
  return { status: answer.status, text: await answer.text() }
}

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
  deployment = await deploy()
  const port = await freePort()
  ops = `http://127.0.0.1:${port}`
  started = await deployment.start([], {
    SVC_OPS_PORT: String(port),
    // The delay is longer than the test, even on a slow machine; the process is killed before it ends.
    SVC_SHUTDOWN_DELAY: "600",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    OTEL_TRACES_SAMPLER_ARG: "1",
    OTEL_BSP_SCHEDULE_DELAY: "200",
  })
})
afterAll(async () => {
  // Kills the process, which would otherwise wait for the rest of its shutdown delay.
  started?.signal("SIGKILL")
  await deployment.stop()
  collector.close()
})

const running = (): Process => {
  if (started === undefined) throw new Error("the process did not start")
  return started
}

const entries = () =>
  running()
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe("a process", () => {
  it("logs its start before any message of a library", async () => {
    await until("its banner", () => running().output().includes("Begin with"))
    // Requests and failures may be logged before the banner.
    const own = running()
      .output()
      .split("\n")
      .filter((line) => line !== "" && !/"message":"request"|"level":"(WARN|ERROR)"/.test(line))
    expect(own[0]).toBe("The agent identity service is running.")
    expect(running().output()).not.toContain("Listening on")
    expect(running().output()).toContain(`Operators  ${ops}/readyz`)
  })

  it("reports that it is alive and ready", async () => {
    expect(await probe("/livez")).toMatchObject({ status: 200 })
    await until("it is ready", async () => (await probe("/readyz")).status === 200)
    const metrics = (await probe("/metrics")).text
    expect(metrics).toMatch(/^svc_ready 1$/m)
    expect(metrics.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length).toBeLessThan(500)
    expect(await probe("/nowhere")).toMatchObject({ status: 404 })
  })

  it("writes flat log entries with fixed members", async () => {
    await signUp(running().base)
    await until("the line of a request", () => entries().some(({ message }) => message === "request"))
    const request = entries().find(({ message }) => message === "request")!
    expect(Object.keys(request)).toEqual(
      expect.arrayContaining(["timestamp", "level", "message", "role", "instance", "route", "status", "request_id"]),
    )
    expect(request["role"]).toBe("api,actors,mail,edge")
  })

  it("exports spans that continue the caller's trace and contain no secret", async () => {
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    const { session } = await signUp(running().base)
    await fetch(`${running().base}/api/auth/whoami?token=${session}`, {
      headers: { authorization: `Bearer ${session}`, traceparent: `00-${trace}-00f067aa0ba902b7-00` },
    })
    await until("the spans", () => exported.includes(trace))
    expect(exported).not.toContain(session)
    expect(exported).toContain('"svc.role"')
  })

  it("passes the trace of an attempt to the target of a Webhook", async () => {
    const receiver = await startReceiver()
    const { session } = await signUp(running().base)
    const { handle } = await makeIdentity(running().base, session)
    const body = { url: receiver.url, event_types: ["email.received"] }
    await call(running().base, "POST", `/api/identities/${handle}/webhooks`, { token: session, body })
    await send(running().smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject: "s", text: "t" })
    await until("the delivery", () => receiver.got.length === 1)
    const [, trace, span] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(
      String(receiver.got[0]!.headers["traceparent"]),
    )!
    await until("its span", () => exported.includes(trace!) && exported.includes(span!))
    await receiver.stop()
  })

  it("logs each SMTP session and each tunnel link in one line with the reason of its end", async () => {
    const { session } = await signUp(running().base)
    const { handle, secrets } = await makeIdentity(running().base, session)
    const key = secrets.identity_key as string
    const before = entries().filter(({ message }) => message === "smtp session").length
    await send(running().smtpPort, { from: "a@example.org", to: `${handle}@mail.localhost`, subject: "s", text: "t" })
    const sessions = () => entries().filter(({ message }) => message === "smtp session")
    await until("the line of the session", () => sessions().length > before)
    const line = sessions().at(-1)!
    expect(line).toMatchObject({
      level: "INFO",
      ended: "left",
      recipients: { accepted: 1, deferred: 0, refused: 0 },
      messages: { accepted: 1, deferred: 0, refused: 0 },
      duration_ms: expect.any(Number),
    })
    // The log line contains neither recipient nor client address.
    expect(line).not.toHaveProperty("client")
    expect(JSON.stringify(line)).not.toMatch(/127\.0\.0\.1|example\.org/)

    const edge = `http://connect.tunnel.localhost:${running().edgePort}`
    const tunnel = connectTunnel({ key, edge, port: 1, links: 1, client: "a test" })
    await tunnel.ready
    await tunnel.close()
    const links = () => entries().filter(({ message, handle: of }) => message === "tunnel link" && of === handle)
    await until("the line of the link", () => links().length === 1)
    expect(links()[0]).toMatchObject({ level: "INFO", ended: "closed", agent: "a test", link: expect.any(String) })
    expect(running().output()).not.toContain(key)
  })

  it("reports not ready on SIGTERM before it closes anything", async () => {
    running().signal("SIGTERM")
    await until("it is leaving", async () => (await probe("/readyz")).status === 503)
    expect((await probe("/readyz")).text).toContain("leaving")
    expect(await isHealthy(running().base)).toBe(true)
    expect(await probe("/livez")).toMatchObject({ status: 200 })
  })
})
