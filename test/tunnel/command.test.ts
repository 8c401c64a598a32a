import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { fetchPublic, hostOf, openConnection } from "../harness/Public.ts"
import { freePort } from "../harness/Ports.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { startSvc } from "../harness/Svc.ts"

let service: TestService
let session: string
let origin: Server
let port: number
/** Functions that send the delayed responses. */
const waiting: Array<() => void> = []

beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  origin = createServer((incoming, outgoing) => {
    const respond = () => outgoing.end(`${incoming.url} for ${incoming.headers.host}`)
    if (incoming.url === "/wait") waiting.push(respond)
    else respond()
  })
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve))
  port = (origin.address() as AddressInfo).port
})
afterAll(async () => {
  origin.closeAllConnections()
  origin.close()
})

const around = (key: string) => ({ home: "/nonexistent", env: { SVC_KEY: key, SVC_API_URL: service.base } })
const svc = (key: string, ...args: ReadonlyArray<string>) => {
  const ran = startSvc(around(key), "tunnel", ...args)
  const until = (holds: () => boolean) =>
    eventually(
      async () => holds() || `${ran.out()}\n${ran.errors()}`,
      (is) => is === true,
    )
  return { ...ran, until }
}

it("rejects an invalid port", async () => {
  const ran = await Promise.all(["0", "65536", "70000", "nonsense"].map((text) => runHere(around("x"), "tunnel", text)))
  expect(ran.map(({ code }) => code)).toEqual([2, 2, 2, 2])
})

it("accepts @name, sets Host, and exits with 1 and a message when its key is revoked", async () => {
  const { handle, secrets } = await makeIdentity(service.base, session)
  const tunnel = svc(secrets.identity_key, String(port), "--handle", `@${handle}`, "--host-header", "shop.example")
  await tunnel.until(() => tunnel.out().includes(`http://${hostOf(handle)}`))
  expect((await fetchPublic(service.edgePort, handle, "/one")).body).toBe("/one for shop.example")
  await call(service.base, "DELETE", `/api/keys/${secrets.api_key.id}`, { token: session })
  expect(await tunnel.ended).toBe(1)
  expect(tunnel.errors()).toBe("svc: The credential was revoked.\n")
})

it("forwards only the TCP port with --tcp, and prints only its address", async () => {
  const { handle, identity, secrets } = await makeIdentity(service.base, session)
  const tunnel = svc(secrets.identity_key, String(port), "--tcp")
  const address = `tcp://${hostOf(handle).replace(/:\d+$/, "")}:${identity.tunnel.port}`
  await tunnel.until(() => tunnel.out().includes(`${address}  ->  127.0.0.1:${port}\n`))
  expect(tunnel.out()).not.toContain("http")
  expect(await fetch(`http://127.0.0.1:${identity.tunnel.port}/raw`).then((answer) => answer.text())).toMatch(
    /^\/raw for/,
  )
  expect((await fetchPublic(service.edgePort, handle, "/")).status).toBe(502)
  tunnel.stop()
  await tunnel.ended
})

it("stores who may call, without a port too", async () => {
  const { handle } = await makeIdentity(service.base, session)
  const callers = async () =>
    (await call(service.base, "GET", `/api/identities/${handle}/tunnel`, { token: session })).body.settings.callers
  const set = async (...args: ReadonlyArray<string>) => {
    const { code, out, errors } = await runHere(around(session), "tunnel", ...args, "--handle", handle)
    return [code, out + errors] as const
  }
  expect(await set("--callers", "signed")).toEqual([0, `The settings of the Tunnel of ${handle} are stored.\n`])
  expect(await callers()).toBe("signed")
  expect((await set("--callers", `https://agent.example, ${handle}`))[0]).toBe(0)
  expect(await callers()).toEqual(["https://agent.example", handle])
  expect((await set("--callers", "https://agent.example/path"))[0]).toBe(1)
  expect((await set())[0]).toBe(2)
})

it("reports when the local port stops and resumes responding", async () => {
  const { handle, secrets } = await makeIdentity(service.base, session)
  const dead = await freePort()
  // Linux has every address of 127.0.0.0/8.
  const host = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1"
  const tunnel = svc(secrets.identity_key, String(dead), "--host", host)
  // The warning appears before the first request.
  await tunnel.until(() => tunnel.errors().includes(`${host}:${dead} is unreachable (ECONNREFUSED)`))
  expect((await fetchPublic(service.edgePort, handle, "/")).status).toBe(502)
  const late = createServer((_, outgoing) => outgoing.end("late"))
  await new Promise<void>((resolve) => late.listen(dead, host, resolve))
  expect((await fetchPublic(service.edgePort, handle, "/")).body).toBe("late")
  await tunnel.until(() => tunnel.out().includes("answers again"))
  tunnel.stop()
  await tunnel.ended
  late.closeAllConnections()
  late.close()
})

it("finishes requests in flight on the first signal and accepts no new ones", async () => {
  const { handle, secrets } = await makeIdentity(service.base, session)
  const tunnel = svc(secrets.identity_key, String(port))
  await tunnel.until(() => tunnel.out().includes(hostOf(handle)))
  const get = (target: string) => `GET ${target} HTTP/1.1\r\nHost: ${hostOf(handle)}\r\n\r\n`
  const idle = await openConnection(service.edgePort)
  await idle.say(get("/idle"), /localhost$/)
  const connection = await openConnection(service.edgePort)
  await connection.say(get("/kept"), /localhost$/)
  const slow = await Promise.all([0, 1, 2].map(() => openConnection(service.edgePort)))
  const answers = slow.map((one) => one.say(get("/wait"), /localhost$/))
  await eventually(
    async () => waiting.length,
    (count) => count === 3,
  )
  tunnel.stop()
  await tunnel.until(() => tunnel.out().includes("Waiting for"))
  // The response to a last request on an open connection has `Connection: close`.
  expect(await connection.say(get("/last"), /localhost$/)).toMatch(/^HTTP\/1\.1 200 [^]*\r\nConnection: close\r\n/)
  // An idle connection closes without a response.
  await idle.closed
  expect((await fetchPublic(service.edgePort, handle, "/new")).status).toBe(503)
  for (const respond of waiting.splice(0)) respond()
  expect((await Promise.all(answers)).map((text) => text.slice(0, 12))).toEqual(Array(3).fill("HTTP/1.1 200"))
  await tunnel.ended
})

it("exits immediately with 130 on the second signal", async () => {
  const { handle, secrets } = await makeIdentity(service.base, session)
  const tunnel = svc(secrets.identity_key, String(port))
  await tunnel.until(() => tunnel.out().includes(hostOf(handle)))
  const held = fetchPublic(service.edgePort, handle, "/wait")
  await eventually(
    async () => waiting.length,
    (count) => count === 1,
  )
  tunnel.stop("SIGINT")
  await tunnel.until(() => tunnel.out().includes("Waiting for 1 requests"))
  tunnel.stop("SIGINT")
  expect(await tunnel.ended).toBe(130)
  expect((await held).status).toBe(502)
  for (const respond of waiting.splice(0)) respond()
})
