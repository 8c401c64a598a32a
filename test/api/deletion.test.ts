import { unzipSync } from "fflate"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { send } from "../harness/Mail.ts"
import { eventually, startService, type TestService } from "../harness/Service.ts"

let service: TestService
beforeAll(async () => {
  service = await startService({ env: { SVC_TOS_VERSION: "2030-01-01" } })
})
afterAll(() => service.stop())

describe("Terms", () => {
  it("of another version close the console until the account holder accepts them", async () => {
    const owner = await signUp(service.base)
    const session = () => call(service.base, "GET", "/api/auth/session", { token: owner.session })
    await service.query((sql) => sql`update org set tos_version = '2020-01-01' where email = ${owner.email}`)
    expect((await session()).body.tos).toMatchObject({
      current_version: "2030-01-01",
      accepted_version: "2020-01-01",
      gated: true,
    })
    const accept = (version: string, token = owner.session) =>
      call(service.base, "POST", "/api/auth/tos/acceptance", { token, body: { version } })
    const wrong = await accept("2020-01-01")
    expect([wrong.status, wrong.body.code]).toEqual([409, "tos_version_mismatch"])
    const key = await call(service.base, "POST", "/api/keys", { token: owner.session, body: { name: "k" } })
    expect((await accept("2030-01-01", key.body.key)).body.code).toBe("session_required")
    expect((await accept("2030-01-01")).body).toMatchObject({ accepted_version: "2030-01-01", gated: false })
    await accept("2030-01-01")
    const history = await service.query(
      (sql) => sql<{ version: string }>`
        select t.version from terms_acceptance t join org o on o.id = t.org_id where o.email = ${owner.email} order by accepted_at`,
    )
    expect(history.map(({ version }) => version)).toEqual(["2030-01-01", "2030-01-01"])
  })
})

const archive = async (path: string, token: string) => {
  const response = await fetch(`${service.base}${path}`, { headers: { authorization: `Bearer ${token}` } })
  expect(response.headers.get("content-type")).toBe("application/zip")
  const files = unzipSync(new Uint8Array(await response.arrayBuffer()))
  return Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, Buffer.from(bytes).toString()]))
}
const lines = (text: string | undefined) =>
  (text ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

describe("an export", () => {
  it("holds everything in the API's shapes, mail as mbox, and Vault values for a session only", async () => {
    const owner = await signUp(service.base)
    const ada = await makeIdentity(service.base, owner.session)
    const bob = await makeIdentity(service.base, owner.session)
    for (const { handle } of [ada, bob]) {
      await send(service.smtpPort, {
        from: "g@example.org",
        to: `${handle}@mail.localhost`,
        subject: `to ${handle}`,
        text: "From here\nx",
      })
    }
    await call(service.base, "PUT", "/api/vault/secrets/token", { token: owner.session, body: { value: "s3cret" } })
    const run = async (token: string, body?: object) => {
      const asked = await call(service.base, "POST", "/api/exports", { token, ...(body === undefined ? {} : { body }) })
      expect(asked.status).toBe(202)
      return eventually(
        () => call(service.base, "GET", `/api/exports/${asked.body.id}`, { token }),
        ({ body: { status } }) => status === "ready",
      )
    }
    const whole = await run(owner.session)
    expect(whole.body).toMatchObject({ identity: null, download_url: `/api/exports/${whole.body.id}/archive` })
    const files = await archive(whole.body.download_url, owner.session)
    expect(lines(files["identities.jsonl"]).map(({ handle }) => handle)).toEqual([ada.handle, bob.handle])
    expect(lines(files["messages.jsonl"]).map(({ subject }) => subject)).toEqual([
      `to ${ada.handle}`,
      `to ${bob.handle}`,
    ])
    expect(files[`${ada.handle}.mbox`]).toMatch(
      /^From g@example\.org \w{3} \w{3} \d\d [\d:]{8} \d{4}\n[^]*\n>From here\n/,
    )
    expect(lines(files["vault.jsonl"])).toMatchObject([{ identity: null, name: "token" }])
    expect(lines(files["vault_values.jsonl"])).toMatchObject([{ name: "token", value: "s3cret" }])
    expect(lines(files["events.jsonl"]).map(({ type }) => type)).toContain("email.received")

    const admin = (await call(service.base, "POST", "/api/keys", { token: owner.session, body: { name: "k" } })).body
      .key
    const withoutValues = await archive(whole.body.download_url, admin)
    expect(Object.keys(withoutValues)).not.toContain("vault_values.jsonl")
    expect(JSON.stringify(withoutValues)).not.toContain("s3cret")

    const own = await run(ada.secrets.identity_key)
    expect(own.body.identity).toBe(ada.handle)
    expect(Object.keys(await archive(own.body.download_url, ada.secrets.identity_key))).not.toContain(
      `${bob.handle}.mbox`,
    )
    const hidden = await call(service.base, "GET", `/api/exports/${whole.body.id}`, { token: ada.secrets.identity_key })
    expect(hidden.status).toBe(404)
    const foreign = await call(service.base, "POST", "/api/exports", {
      token: ada.secrets.identity_key,
      body: { identity: bob.handle },
    })
    expect(foreign.body.code).toBe("foreign_identity")

    await call(service.base, "DELETE", `/api/identities/${ada.handle}`, { token: owner.session })
    await eventually(
      () => call(service.base, "GET", "/api/exports", { token: owner.session }),
      ({ body }) => body.exports.length === 0,
    )
  })
})

describe("deleting an account", () => {
  it("needs the account holder and its address, refuses every credential at once, and leaves only Handles", async () => {
    const owner = await signUp(service.base)
    const ada = await makeIdentity(service.base, owner.session)
    await call(service.base, "PUT", "/api/vault/secrets/x", { token: owner.session, body: { value: "y" } })
    const admin = (await call(service.base, "POST", "/api/keys", { token: owner.session, body: { name: "k" } })).body
      .key
    const remove = (token: string, body?: object) =>
      call(service.base, "POST", "/api/account/deletion", { token, ...(body === undefined ? {} : { body }) })
    expect((await remove(owner.session)).body.code).toBe("confirmation_mismatch")
    expect((await remove(owner.session, { confirm: "someone@example.org" })).body.code).toBe("confirmation_mismatch")
    expect((await remove(admin, { confirm: owner.email })).body.code).toBe("session_required")
    // One that is still being made goes too.
    const late = newHandle("late")
    await call(service.base, "POST", "/api/identities", { token: owner.session, body: { handle: late } })
    const accepted = await remove(owner.session, { confirm: owner.email.toUpperCase() })
    expect(accepted.status).toBe(202)
    expect(accepted.body).toMatchObject({ status: "deleting", identities: 2 })
    for (const token of [owner.session, admin, ada.secrets.identity_key]) {
      const refused = await call(service.base, "GET", "/api/auth/whoami", { token })
      expect(refused.status).toBe(401)
    }
    expect(
      (await call(service.base, "POST", "/api/auth/magic-link", { body: { email: owner.email } })).body,
    ).toMatchObject({
      status: "sent",
      dev_magic_link: null,
    })
    await eventually(
      () => service.query((sql) => sql<{ n: number }>`select count(*)::int as n from org where id = ${owner.org.id}`),
      ([row]) => row!.n === 0,
      30,
    )
    const left = await service.query(
      (sql) => sql<{ n: number }>`
        select (select count(*) from event where org_id = ${owner.org.id}) + (select count(*) from vault_secret where org_id = ${owner.org.id})
             + (select count(*) from identity where org_id = ${owner.org.id}) as n`,
    )
    expect(Number(left[0]!.n)).toBe(0)
    const stranger = await signUp(service.base)
    for (const handle of [ada.handle, late]) {
      const taken = await call(service.base, "GET", `/api/handles/${handle}`, { token: stranger.session })
      expect(taken.body).toMatchObject({ available: false, code: "handle_taken" })
    }
    const again = await call(service.base, "POST", "/api/auth/magic-link", {
      body: { email: owner.email, tos_accepted: true },
    })
    expect(again.body.dev_magic_link).toBeTruthy()
  })
})
