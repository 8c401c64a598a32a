/** The limit of 50 connected apps per account. */
import { beforeAll, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import {
  authorizationUrl,
  browser,
  challengeOf,
  obtainTokens,
  redirectOf,
  registerClient,
  verifierOf,
} from "./Consent.ts"

let service: TestService
beforeAll(async () => {
  service = await sharedService()
})

const here = "http://localhost:4711/callback"
const allow = { decision: "allow", agents: "one", rights: "read" }

/** Creates an account with `count` connected apps. */
const connected = async (count: number) => {
  const { session } = await signUp(service.base)
  await makeIdentity(service.base, session, newHandle("ada"))
  const person = browser(service.base, session)
  const client = (await registerClient(service.base, [here], newHandle("client"))).body["client_id"] as string
  await obtainTokens(service.base, person, client, here)
  const { body } = await call(service.base, "GET", "/api/grants", { token: session })
  const grant: string = body.grants[0].id
  await service.query(
    (sql) => sql`
      insert into client_grant (id, org_id, client_id, client_name, redirect_host, redirect_hash, resource, scopes, created_at, expires_at)
      select uuidv7(), org_id, 'oc_' || n, 'x', 'x', redirect_hash, resource, scopes, created_at, expires_at
      from client_grant, generate_series(2, ${count}::int) n where id = ${grant}`,
  )
  /** Opens the consent page for a new app. */
  const ask = async () => {
    const other = (await registerClient(service.base, [here], newHandle("more"))).body["client_id"] as string
    const challenge = challengeOf(verifierOf())
    return person.go(authorizationUrl(service.base, { client: other, redirect: here, challenge }))
  }
  return { session, person, client, grant, ask }
}

it("An account with 50 connected apps connects no other until one is revoked", async () => {
  const { session, person, client, grant, ask } = await connected(50)
  const shown = await ask()
  const full = await person.decide(shown, allow)
  expect([full.status, full.text.includes("50 connected apps")]).toEqual([400, true])
  // A connected app may authorize again, and revoking one makes room.
  expect((await obtainTokens(service.base, person, client, here)).answer.status).toBe(200)
  await call(service.base, "DELETE", `/api/grants/${grant}`, { token: session })
  expect(redirectOf(await person.decide(shown, allow)).searchParams.get("code")).not.toBeNull()
})

it("An account with 49 connected apps connects one of several that it allows at the same time", async () => {
  const { person, ask } = await connected(49)
  const shown = [await ask(), await ask(), await ask(), await ask()]
  const decided = await Promise.all(shown.map((page) => person.decide(page, allow)))
  expect(decided.filter(({ status }) => status === 400)).toHaveLength(3)
})
