import { tools as bound } from "@svc/api/mcp/Tools"
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { fetchPublic } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { environment, program, startSvc } from "../harness/Svc.ts"

let service: TestService
let session: string
let home: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  home = mkdtempSync(path.join(os.tmpdir(), "svc-home-"))
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
})

/** Starts the command as a process. */
const svc = (...args: ReadonlyArray<string>) => startSvc({ home }, ...args)
/** Runs the command in this process. */
const run = (...args: ReadonlyArray<string>) => runHere({ home }, ...args)
const runWith = (env: Readonly<Record<string, string>>, ...args: ReadonlyArray<string>) =>
  runHere({ home, env }, ...args)

describe("svc", () => {
  it("reports a missing login, an unreachable service and an unknown command", async () => {
    const nonsense = svc("tunnel", "nonsense")
    const stranger = await run("whoami", "--api", service.base)
    const nowhere = await run("login", "--api", "http://127.0.0.1:9")
    expect([stranger.code, await nonsense.ended, nowhere.code]).toEqual([2, 2, 3])
    expect(stranger.errors).toContain("svc login")
  })

  it("rejects an invalid address or key with one sentence in every command", async () => {
    const commands = [["whoami"], ["identity", "list"], ["grants", "list"], ["audit"], ["tunnel", "3000"], ["mcp"]]
    const cases = [
      ...[...commands, ["login"], ["doctor"]].map((words) => ({
        words,
        env: { SVC_KEY: "x", SVC_API_URL: "localhost:8080" },
      })),
      ...[...commands, ["keys", "list"]].map((words) => ({
        words,
        env: { SVC_KEY: "svc_id_…", SVC_API_URL: service.base },
      })),
    ]
    for (const { words, env } of cases) {
      const { code, out, errors } = await runWith(env, ...words)
      expect([words, code, out, errors]).toEqual([
        words,
        2,
        "",
        expect.stringMatching(/^svc: (localhost:8080 is not an API address|The key contains a space).*\n$/),
      ])
    }
  })

  it("logs in by device, stores the key readable by its owner only, and uses it", async () => {
    const login = svc("login", "--api", `${service.base}/`, "--name", "my laptop")
    const code = await eventually(
      async () => /approve the code (\w{4}-\w{4})/.exec(login.out())?.[1],
      (found) => found !== undefined,
    )
    await call(service.base, "POST", `/api/auth/device/${code}/approve`, { token: session })
    expect(await login.ended).toBe(0)
    const file = path.join(home, "svc", "login.json")
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const who = await run("whoami", "--json")
    expect(who.code).toBe(0)
    expect(JSON.parse(who.out).caller).toMatchObject({ kind: "admin_key", key_name: "my laptop" })
    // The key goes to no other service than the one that issued it.
    const other = await run("whoami", "--api", service.base.replace("localhost", "127.0.0.1"))
    expect([other.code, other.out]).toEqual([2, ""])
    expect(other.errors).toContain("There is no credential for http://127.0.0.1")
  })

  it("serves MCP over standard input and output", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const client = new Client({ name: "test", version: "1" })
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [program, "mcp"], env: environment(home) }) as never,
    )
    const { tools } = await client.listTools()
    // The compact list has no `svc_identity_events`: `svc_event_list` replaces it.
    expect(tools).toHaveLength(bound.length - 1)
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => client.callTool({ name: "svc_identity_get", arguments: { handle } })),
    )
    for (const answer of answers) expect(answer.structuredContent).toMatchObject({ handle })
    const refused = await client.callTool({ name: "svc_identity_get", arguments: { handle: "nobody-here" } })
    expect(refused).toMatchObject({ isError: true, structuredContent: { code: "not_found" } })
    await client.close()
    const narrow = new Client({ name: "test", version: "1" })
    const args = [program, "mcp", "--tools", "tunnel"]
    await narrow.connect(new StdioClientTransport({ command: process.execPath, args, env: environment(home) }) as never)
    expect((await narrow.listTools()).tools.map(({ name }) => name)).toEqual(["svc_whoami", "svc_tunnel_get"])
    await narrow.close()
  })

  it("gives a local port a public address", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const origin = createServer((_, outgoing) => outgoing.end("from the laptop"))
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve))
    const { port } = origin.address() as AddressInfo
    const tunnel = svc("tunnel", String(port), "--handle", handle)
    await eventually(
      async () => tunnel.out(),
      (out) => out.includes(`http://${handle}.tunnel.localhost`),
    )
    expect((await fetchPublic(service.edgePort, handle, "/some/path")).body).toBe("from the laptop")
    await eventually(
      async () => tunnel.out(),
      (out) => out.includes("GET /some/path"),
    )
    tunnel.stop()
    await tunnel.ended
    origin.close()
  })

  it("has a command for each tool, with output for people and machines", async () => {
    const handle = newHandle("cli")
    const created = await run("identity", "create", handle, "--json")
    expect(created.code).toBe(0)
    expect(JSON.parse(created.out)).toMatchObject({ handle, status: expect.stringMatching(/^(provisioning|ready)$/) })
    await eventually(
      () => call(service.base, "GET", `/api/identities/${handle}`, { token: session }),
      ({ body }) => body.status === "ready",
    )
    const listed = await run("identity", "list")
    expect(listed.code).toBe(0)
    expect(listed.out).toMatch(new RegExp(`^HANDLE +STATUS .*\\n(.*\\n)*.*${handle}`))
    // A process that reads its input.
    const set = startSvc(
      { home, input: " s3cret \n\n" },
      "vault",
      "set",
      "db.pass",
      "--value-stdin",
      "--identity",
      `@${handle}`,
    )
    expect(await set.ended).toBe(0)
    const got = await run("vault", "get", "db.pass", "--identity", handle, "--json")
    expect(got.code).toBe(0)
    expect(JSON.parse(got.out)).toMatchObject({ value: " s3cret \n", version: 1 })
    const card = await run(
      "card",
      "update",
      handle,
      "--description",
      "By hand.",
      "--capabilities",
      '{"streaming":true}',
    )
    expect(card.code).toBe(0)
    expect(card.out).toContain("description: By hand.")
  })

  it("exits with 1 for a rejection and 2 for wrong usage", async () => {
    const refused = svc("identity", "get", "nobody-here")
    expect(await refused.ended).toBe(1)
    expect(refused.errors()).toContain("not_found")
    const argument = await run("vault", "set", "db.pass")
    expect([argument.code, argument.errors]).toEqual([2, expect.stringContaining("--value-stdin")])
    const usage = [run("identity", "get", ".."), run("identity", "get"), run("card", "update", "ada", "--skills", "[")]
    expect((await Promise.all(usage)).map(({ code }) => code)).toEqual([2, 2, 2])
  })

  it("creates a key, printing only the key to standard output, rotates it and revokes it", async () => {
    const { handle } = await makeIdentity(service.base, session)
    const by = { SVC_KEY: session, SVC_API_URL: service.base }
    const bounds = [
      "--scope",
      "card:read,mail:read",
      "--identity",
      handle,
      "--expires",
      "30d",
      "--network",
      "127.0.0.1",
    ]
    const made = await runWith(by, "keys", "create", "ci", ...bounds)
    expect(made.code, made.errors).toBe(0)
    expect(made.out).toMatch(/^svc_id_[0-9A-Za-z]{49}\n$/)
    const token = made.out.trim()
    const card = () => call(service.base, "GET", `/api/identities/${handle}/card`, { token })
    expect((await card()).status).toBe(200)
    const listed = await runWith(by, "keys", "list", "--json")
    expect(listed.code).toBe(0)
    const [key] = JSON.parse(listed.out).api_keys.filter((one: any) => one.name === "ci")
    expect(key).toMatchObject({ scope: "identity", scopes: ["mail:read", "card:read"], networks: ["127.0.0.1"] })
    const next = await runWith(by, "keys", "rotate", key.id, "--overlap", "0")
    expect(next.code, next.errors).toBe(0)
    expect((await card()).body.code).toBe("key_expired")
    expect((await runWith(by, "keys", "revoke", key.id)).code).toBe(0)
    const wrong = [
      await runWith(by, "keys", "create", "x", "--expires", "2y"),
      await runWith(by, "keys", "create", "x", "--scope", "mail:fly"),
    ]
    expect(wrong.map(({ code }) => code)).toEqual([2, 1])
    expect(wrong[1]!.errors).toContain("scope_unknown")
  })

  it("checks the deployment with `svc doctor` and says what to do", async () => {
    const well = await run("doctor", "--json")
    expect([0, 1]).toContain(well.code)
    const { findings } = JSON.parse(well.out)
    const by = Object.fromEntries(findings.map((one: any) => [one.name, one]))
    expect(by["service"]).toMatchObject({ status: "ok", detail: service.base })
    expect(by["login"].status).toBe("ok")
    expect(by["node"].status).toBe("ok")
    const ill = await runWith({ SVC_EDGE_TCP_PORTS: "many", SVC_KEY: "svc_admin_nothing" }, "doctor")
    expect(ill.code).toBe(1)
    expect(ill.out).toMatch(/FAIL {2}configuration: SVC_EDGE_TCP_PORTS/)
    expect(ill.out).toMatch(/FAIL {2}login: .*\n {6}Run `svc login` again/)
  })

  it("logs out and revokes the key", async () => {
    const { key } = JSON.parse(readFileSync(path.join(home, "svc", "login.json"), "utf8"))
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: key })).status).toBe(200)
    expect((await run("logout")).code).toBe(0)
    expect((await call(service.base, "GET", "/api/auth/whoami", { token: key })).status).toBe(401)
    expect((await run("whoami", "--api", service.base)).code).toBe(2)
  })
})
