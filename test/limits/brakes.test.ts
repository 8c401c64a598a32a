/** Every limit on callers without a credential, over HTTP: the last call that passes and the first one that is rejected. */
import type { PublicLimitName } from "@svc/domain/account/Policy"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"
import { authorizationUrl, challengeOf, tokenCall, verifierOf } from "../oauth/Consent.ts"

const quota = 3
/** Limit of all calls of the token endpoint. {@link quota} also limits those that fail. */
const tokenQuota = 6
const quotaOf = (name: string) => (name === "oauth_token" ? tokenQuota : quota)

let service: TestService
/** Ids of the clients that the first test registered. */
const clients: Array<string> = []
beforeAll(async () => {
  const names = Object.keys(brakes).map((name) => [`SVC_LIMIT_${name.toUpperCase()}`, String(quotaOf(name))])
  service = await startService({ env: Object.fromEntries(names) })
})
afterAll(() => service.stop())

const here = "http://localhost:4711/callback"
const post = async (path: string, body: unknown) => (await call(service.base, "POST", path, { body })).status
const status = async (url: string) => (await fetch(url, { redirect: "manual" })).status

/** Makes one call that the limit counts, and returns its status; `n` numbers the calls. A new limit needs an entry here. */
const brakes: { readonly [Name in PublicLimitName]: ((n: number) => Promise<number>) | "by host" } = {
  oauth_register: async (n) => {
    const body = { client_name: `app ${n}`, redirect_uris: [here] }
    const registered = await call(service.base, "POST", "/api/oauth/register", { body })
    if (registered.status === 201) clients.push(registered.body.client_id)
    return registered.status
  },
  profile: () => status(`${service.base}/api/profiles/nobody`),
  hits: () => post("/api/hits", { path: "/" }),
  contact: () => post("/api/contact", { name: "Ada", email: "ada@example.org", message: "hello" }),
  magic_link: (n) => post("/api/auth/magic-link", { email: `ada${n}@example.org`, tos_accepted: true }),
  device: () => post("/api/auth/device", { client_name: "ci" }),
  oauth_authorize: () =>
    status(
      String(
        authorizationUrl(service.base, { client: clients[0]!, redirect: here, challenge: challengeOf(verifierOf()) }),
      ),
    ),
  oauth_token: async () =>
    (await tokenCall(service.base, { grant_type: "authorization_code", client_id: clients[1]! })).status,
  oauth_token_failed: async () => (await wrongCode(clients[2]!)).status,
  // This limit counts by the host that is requested and not by the client's address (test/oauth/documents.test.ts).
  oauth_document: "by host",
}

const wrongCode = (client_id: string) =>
  tokenCall(service.base, {
    grant_type: "authorization_code",
    client_id,
    redirect_uri: here,
    code: "svc_oac_wrong",
    code_verifier: verifierOf(),
  })

/** Waits until all calls of a test fit into the current minute. */
const atTheBeginningOfAMinute = async () => {
  const remaining = 60_000 - (Date.now() % 60_000)
  if (remaining < 15_000) await new Promise((resolve) => setTimeout(resolve, remaining + 100))
}

describe("a public limit", () => {
  for (const [name, brake] of Object.entries(brakes)) {
    if (brake === "by host") continue
    const most = quotaOf(name)
    it(`allows ${most} calls of ${name} per minute and rejects the next one`, async () => {
      await atTheBeginningOfAMinute()
      const statuses: Array<number> = []
      for (let n = 0; n <= most; n++) statuses.push(await brake(n))
      expect(statuses.slice(0, most)).not.toContain(429)
      expect(statuses[most], String(statuses)).toBe(429)
    })
  }
})
