/** Every limit on callers without a credential, over HTTP: the last call that passes and the first one that is rejected. */
import type { PublicLimitName } from "@svc/domain/account/Policy"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, newHandle } from "../harness/Client.ts"
import { startService, type OwnService } from "../harness/Service.ts"
import { authorizationUrl, challengeOf, verifierOf } from "../oauth/Consent.ts"

const quota = 3
/** Limit of all calls of the token endpoint. {@link quota} also limits those that fail. */
const tokenQuota = 6
const profilePaths = [
  "/api/profiles/nobody",
  "/@nobody",
  "/@nobody/agent-card.json",
  "/@nobody/did.json",
  "/.well-known/webfinger?resource=acct:nobody@localhost",
]
const quotas: Readonly<Record<string, number>> = { oauth_token: tokenQuota, profile: profilePaths.length - 1 }
const quotaOf = (name: string) => quotas[name] ?? quota

let service: OwnService
beforeAll(async () => {
  const names = Object.keys(brakes).map((name) => [`SVC_LIMIT_${name.toUpperCase()}`, String(quotaOf(name))])
  service = await startService({ env: { ...Object.fromEntries(names), SVC_TRUSTED_PROXIES: "127.0.0.0/8" } })
})
afterAll(() => service.stop())

const here = "http://localhost:4711/callback"
let addresses = 0
/** The client's address and app of a test, which no other test uses. */
const client = { address: "", app: "" }
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  call(service.base, method, path, { body, headers: { "x-forwarded-for": client.address, ...headers } })
/** `Retry-After` of the latest response. */
let retryAfter: string | null = null
const status = async (...request: Parameters<typeof send>) => {
  const { status: answered, headers } = await send(...request)
  retryAfter = headers.get("retry-after")
  return answered
}
const form = { "content-type": "application/x-www-form-urlencoded" }
const token = (members: Record<string, string>) =>
  status(
    "POST",
    "/api/oauth/token",
    String(new URLSearchParams({ grant_type: "authorization_code", client_id: client.app, ...members })),
    form,
  )
const newApp = { client_name: "app", redirect_uris: [here] }
const register = () => send("POST", "/api/oauth/register", newApp)
const newAddress = () => `198.51.100.${++addresses}`

/** Makes the call with this number that the limit counts, and returns its status. A new limit needs an entry here. */
const brakes: { readonly [Name in PublicLimitName]: ((n: number) => Promise<number>) | "by host" } = {
  oauth_register: () => status("POST", "/api/oauth/register", newApp),
  profile: (n) => status("GET", profilePaths[n]!),
  hits: () => status("POST", "/api/hits", { path: "/" }),
  contact: () => status("POST", "/api/contact", { name: "Ada", email: "ada@example.org", message: "hello" }),
  magic_link: (n) => {
    const email = `${newHandle()}@example.org`
    return n % 2 === 0
      ? status("POST", "/api/auth/magic-link", { email, tos_accepted: true })
      : status("POST", "/auth/sign-in", String(new URLSearchParams({ email, terms: "yes" })), form)
  },
  device: () => status("POST", "/api/auth/device", { client_name: "ci" }),
  oauth_authorize: () => {
    const url = authorizationUrl(service.base, {
      client: client.app,
      redirect: here,
      challenge: challengeOf(verifierOf()),
    })
    return status("GET", url.pathname + url.search)
  },
  oauth_token: () => token({}),
  oauth_token_failed: () => token({ redirect_uri: here, code: "svc_oac_wrong", code_verifier: verifierOf() }),
  // This limit counts by the host that is requested and not by the client's address (test/oauth/documents.test.ts).
  oauth_document: "by host",
}

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
      client.address = newAddress()
      client.app = (await register()).body.client_id
      client.address = newAddress()
      const statuses: Array<number> = []
      for (let n = 0; n <= most; n++) statuses.push(await brake(n))
      expect(statuses.slice(0, most)).not.toContain(429)
      expect(statuses[most], String(statuses)).toBe(429)
      expect(Number(retryAfter)).toBeGreaterThan(0)
    })
  }
})
