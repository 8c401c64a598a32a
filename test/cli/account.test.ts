/** Commands for the account holder: the audit log, its verification, and connected apps. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { browser, obtainTokens, mcp, registerClient } from "../oauth/Consent.ts"

const here = "http://localhost:4711/callback"
let service: TestService
let session: string
let key: string
let home: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  key = (await call(service.base, "POST", "/api/keys", { token: session, body: { name: "terminal" } })).body.key
  home = mkdtempSync(path.join(os.tmpdir(), "svc-home-"))
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
})

const svc = (...args: ReadonlyArray<string>) => runHere({ home, env: { SVC_KEY: key } }, ...args)

describe("svc audit", () => {
  it("shows records as a table and as JSON lines", async () => {
    const { handle } = await makeIdentity(service.base, session, newHandle("ada"))
    await call(service.base, "PATCH", `/api/identities/${handle}/card`, {
      token: session,
      body: { description: "new" },
    })
    const shown = await svc("audit", "--api", service.base, "--since", "1h")
    expect(shown).toMatchObject({ code: 0, errors: "" })
    expect(shown.out).toMatch(
      new RegExp(`^\\S+Z  The account holder changed the card of ${handle}  rest, 127\\.0\\.0\\.1$`, "m"),
    )
    const lines = await svc("audit", "--api", service.base, "--json")
    const records = lines.out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(records).toContainEqual(expect.objectContaining({ action: "cards.patch", identity: handle }))
    // No record is newer than now.
    const none = await svc("audit", "--api", service.base, "--since", "2099-01-01T00:00:00Z")
    expect(none).toMatchObject({ code: 0, out: "" })
    const wrong = await svc("audit", "--api", service.base, "--since", "yesterday")
    expect(wrong.code).toBe(2)
    expect(wrong.errors).toContain("--since")
  })
})

describe("svc grants", () => {
  it("lists connected apps and revokes one", async () => {
    const name = newHandle("app")
    const client = (await registerClient(service.base, [here], name)).body["client_id"]
    const { access } = await obtainTokens(service.base, browser(service.base, session), client, here)
    const listed = JSON.parse((await svc("grants", "list", "--api", service.base, "--json")).out)
    expect(listed.grants).toMatchObject([{ client_name: name, redirect_host: "localhost" }])
    const { out } = await svc("grants", "list", "--api", service.base)
    expect(out).toContain(name)
    expect(out).toContain("mail:read")
    const ended = await svc("grants", "revoke", listed.grants[0].id, "--api", service.base)
    expect(ended).toMatchObject({ code: 0, out: "Access revoked.\n" })
    expect((await mcp(service.base, access, "tools/list")).status).toBe(401)
    const unknown = await svc("grants", "revoke", "00000000-0000-7000-8000-000000000000", "--api", service.base)
    expect(unknown.code).not.toBe(0)
    expect(unknown.errors).toContain("The Grant does not exist.")
  })
})

// Runs last, because the records of the other tests are sealed in the meantime.
describe("svc audit verify", () => {
  it("distinguishes an unchanged export from an altered one offline", async () => {
    const text = await eventually(
      async () =>
        (await fetch(`${service.base}/api/audit/export`, { headers: { authorization: `Bearer ${key}` } })).text(),
      (found) => found.trim().split("\n").length > 3,
    )
    const file = path.join(home, "audit.jsonl")
    writeFileSync(file, text)
    const complete = await svc("audit", "verify", file)
    expect(complete).toMatchObject({ code: 0, errors: "" })
    const head = /The log ends at (\d+:[0-9a-f]{64});/.exec(complete.out)![1]!
    for (const kept of [head, head.toUpperCase()])
      expect((await svc("audit", "verify", file, "--head", kept)).code).toBe(0)
    const other = head.replace(/.$/, (last) => (last === "0" ? "1" : "0"))
    expect(await svc("audit", "verify", file, "--head", other)).toMatchObject({ code: 1 })
    expect(await svc("audit", "verify", file, "--head", "12")).toMatchObject({ code: 2 })
    writeFileSync(file, text.replace(/"outcome":"\w+"/, `"outcome":"failed"`))
    const altered = await svc("audit", "verify", file)
    expect(altered.code).toBe(1)
    expect(altered.out).toContain("does NOT match its seals")
    expect(await svc("audit", "verify", path.join(home, "nowhere.jsonl"))).toMatchObject({ code: 2 })
  })
})
