/** DNS rebinding: a site that resolves its own name to this machine must not read responses of a service in development. */
import { request } from "node:http"
import { beforeAll, expect, it } from "vitest"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

const post = (host: string, path: string, type: string, body: string, from: object = { origin: `http://${host}` }) =>
  new Promise<string>((resolve, reject) => {
    const headers = { host, "content-type": type, ...from }
    const outgoing = request(`${service.base}${path}`, { method: "POST", headers }, (answer) => {
      const parts: Array<Buffer> = []
      answer.on("data", (part: Buffer) => parts.push(part))
      answer.on("end", () => resolve(`${answer.statusCode} ${Buffer.concat(parts).toString()}`))
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })
/** The number of addresses so far; each request uses another one, because mail to one address is limited. */
let people = 0
const overApi = (host: string) =>
  post(
    host,
    "/api/auth/magic-link",
    "application/json",
    JSON.stringify({ email: `a${people++}@example.org`, tos_accepted: true }),
  )
const byPage = (host: string) =>
  post(host, "/auth/sign-in", "application/x-www-form-urlencoded", `email=a${people++}%40example.org&terms=yes`)

it.each([
  "rebound.example",
  "rebound.example:8080",
  "127.0.0.1.rebound.example",
  "localhost.rebound.example",
  "api.internal.rebound.example",
])("%s gets no sign-in link, neither from the API nor from the page", async (host) => {
  for (const answer of [await overApi(host), await byPage(host)]) {
    expect(answer).toMatch(/^20[02] /)
    expect(answer).not.toContain("token=")
  }
})

it.each([
  "localhost:8080",
  "LOCALHOST",
  "127.0.0.1:8080",
  "[::1]:8080",
  "api:8080",
  "console.localhost",
  "host.docker.internal:8080",
])("%s, which is in nobody else's hands, is", async (host) => {
  for (const answer of [await overApi(host), await byPage(host)]) expect(answer).toContain("token=")
})

it("a program, which sends no Origin, gets the link under any host name", async () => {
  const body = JSON.stringify({ email: `a${people++}@example.org`, tos_accepted: true })
  expect(await post("box.example", "/api/auth/magic-link", "application/json", body, {})).toContain("token=")
})
