/** How many streams may be open at once. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { call, signUp } from "../harness/Client.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await startService({ env: { SVC_LIMIT_STREAMS_CREDENTIAL: "2", SVC_LIMIT_STREAMS_ORG: "3" } })
})
afterAll(() => service.stop())

it("streams are limited per credential and per Org, and one that ends makes room", async () => {
  const { session } = await signUp(service.base)
  const { body: admin } = await call(service.base, "POST", "/api/keys", { token: session, body: { name: "listener" } })
  const open = async (token: string) => {
    const controller = new AbortController()
    const response = await fetch(`${service.base}/api/events/stream`, {
      headers: { authorization: `Bearer ${token}` },
      signal: controller.signal,
    })
    return { response, close: () => controller.abort() }
  }
  const refusal = async (token: string) => {
    const { response } = await open(token)
    return {
      status: response.status,
      retryAfter: response.headers.get("retry-after"),
      policy: response.headers.get("ratelimit-policy"),
      left: response.headers.get("ratelimit"),
      ...((await response.json()) as any),
    }
  }
  const first = await open(session)
  await open(session)
  expect(await refusal(session)).toMatchObject({
    status: 429,
    code: "rate_limited",
    retryAfter: "30",
    policy: expect.stringContaining('"streams_credential";q=2'),
    left: expect.stringContaining('"streams_credential";r=0;t=30'),
    detail: "At most 2 streams of one credential may be open at once.",
  })
  const another = await open(admin.key)
  expect([another.response.status, first.response.status]).toEqual([200, 200])
  expect(await refusal(admin.key)).toMatchObject({
    status: 429,
    policy: expect.stringContaining('"streams_org";q=3'),
    detail: "At most 3 streams of one Org may be open at once.",
  })
  // A refusal takes nothing, and another Org has room of its own.
  expect((await open((await signUp(service.base)).session)).response.status).toBe(200)
  first.close()
  await eventually(
    async () => (await open(session)).response.status,
    (status) => status === 200,
  )
})
