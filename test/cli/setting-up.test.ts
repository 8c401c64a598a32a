/** Commands that set up this machine: MCP clients, `.env`, the browser, and the arguments of `svc listen`. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import * as path from "node:path"
import * as Login from "@svc/cli/client/Login"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { api, asAdmin, commands, problem } from "../harness/Commands.ts"

const { home, run } = commands()
let folder: string
let former: string
beforeEach(() => {
  former = process.cwd()
  folder = mkdtempSync(path.join(home, "folder-"))
  process.chdir(folder)
})
afterEach(() => process.chdir(former))
const read = (...parts: ReadonlyArray<string>) => readFileSync(path.join(folder, ...parts), "utf8")
const write = (text: string, ...parts: ReadonlyArray<string>) => {
  mkdirSync(path.dirname(path.join(folder, ...parts)), { recursive: true })
  writeFileSync(path.join(folder, ...parts), text)
}

describe("svc mcp install", () => {
  const install = (...words: ReadonlyArray<string>) =>
    run(["mcp", "install", ...words], {}, { HOME: folder, XDG_CONFIG_HOME: "", CODEX_HOME: "" })
  const entry = { command: "npx", args: ["-y", "@agent-identity/cli", "mcp"] }

  it.each([
    ["claude-code", [], [".mcp.json"], "mcpServers", entry],
    ["claude-code", ["--user"], ["home", ".claude.json"], "mcpServers", entry],
    ["cursor", [], [".cursor", "mcp.json"], "mcpServers", entry],
    ["cursor", ["--user"], ["home", ".cursor", "mcp.json"], "mcpServers", entry],
    ["vscode", [], [".vscode", "mcp.json"], "servers", { type: "stdio", ...entry }],
    ["vscode", ["--user"], ["Code", "User", "mcp.json"], "servers", { type: "stdio", ...entry }],
  ] as const)(
    "adds the server to %s with %j, and keeps what the file contains",
    async (client, flags, file, member, expected) => {
      const env = { HOME: path.join(folder, "home"), XDG_CONFIG_HOME: folder }
      write(JSON.stringify({ theme: "dark", [member]: { other: { command: "x" } } }), ...file)
      const added = await run(["mcp", "install", client, ...flags], {}, env)
      expect(added).toMatchObject({ code: 0, errors: "" })
      expect(added.out).toContain(`has the server agent-identity (${path.join(folder, ...file)}).`)
      expect(JSON.parse(read(...file))).toEqual({
        theme: "dark",
        [member]: { other: { command: "x" }, "agent-identity": expected },
      })
      expect(readdirSync(path.dirname(path.join(folder, ...file)))).toEqual([file.at(-1)])
    },
  )

  it("passes the address and the toolsets on, and creates a missing or empty file", async () => {
    const more = ["--api", "http://svc.example", "--tools", "mail,vault", "--name", "mine"]
    const args = [...entry.args, "--api", "http://svc.example", "--tools", "mail,vault"]
    expect((await install("cursor", ...more)).code).toBe(0)
    expect(JSON.parse(read(".cursor", "mcp.json"))).toEqual({ mcpServers: { mine: { ...entry, args } } })
    expect(statSync(path.join(folder, ".cursor", "mcp.json")).mode & 0o777).toBe(0o644 & ~process.umask())
    write(" \n", ".mcp.json")
    expect((await install("claude-code")).code).toBe(0)
    expect(read(".mcp.json")).toBe(`${JSON.stringify({ mcpServers: { "agent-identity": entry } }, null, 2)}\n`)
    await run(["mcp", "install", "codex"], {}, { HOME: folder, CODEX_HOME: path.join(folder, "codex") })
    expect(read("codex", "config.toml")).toContain("[mcp_servers.agent-identity]\n")
  })

  it("keeps the permissions and the link of a file, which may contain credentials of the client", async () => {
    write("{}", "dotfiles", "claude.json")
    const target = path.join(folder, "dotfiles", "claude.json")
    symlinkSync(target, path.join(folder, ".claude.json"))
    for (const mode of [0o600, 0o640]) {
      chmodSync(target, mode)
      expect((await install("claude-code", "--user")).code).toBe(0)
      expect(statSync(target).mode & 0o777).toBe(mode)
    }
    expect(readlinkSync(path.join(folder, ".claude.json"))).toBe(target)
    expect(JSON.parse(read("dotfiles", "claude.json"))).toEqual({ mcpServers: { "agent-identity": entry } })
  })

  it("writes VS Code's settings below the usual folder of the user", async () => {
    expect((await install("vscode", "--user")).code).toBe(0)
    const expected =
      process.platform === "darwin"
        ? ["Library", "Application Support", "Code", "User", "mcp.json"]
        : [".config", "Code", "User", "mcp.json"]
    if (process.platform !== "win32") expect(existsSync(path.join(folder, ...expected))).toBe(true)
  })

  it.each([
    ["", "", ""],
    ['model = "x"', 'model = "x"\n\n', ""],
    ['model = "x"\n\n\n', 'model = "x"\n\n', ""],
    ["[mcp_servers.mail]\nold = 1\n", "", ""],
    ["[mcp_servers.mail]\n[other]\n", "", "\n[other]\n"],
    ["a = 1\n\n  [mcp_servers.mail]  \nold = 1\n\n[other]\na = 1\n", "a = 1\n\n", "\n[other]\na = 1\n"],
    ["[mcp_servers.mail2]\nb = 2\n", "[mcp_servers.mail2]\nb = 2\n\n", ""],
    ['[ mcp_servers."mail" ] # mine\nold = 1\n[mcp_servers.mail.env]\n', "", "\n[mcp_servers.mail.env]\n"],
  ])("replaces or appends the table of the server in TOML %j", async (before, kept, after) => {
    write(before, ".codex", "config.toml")
    expect((await install("codex", "--name", "mail")).code).toBe(0)
    const table = '[mcp_servers.mail]\ncommand = "npx"\nargs = ["-y","@agent-identity/cli","mcp"]\n'
    expect(read(".codex", "config.toml")).toBe(`${kept}${table}${after}`)
  })

  it.each(['{\n  // mine\n  "mcpServers": {}\n}\n', "[]", "null", '{"mcpServers":[]}', '{"mcpServers":"x"}'])(
    "leaves a file that it cannot change without loss, and prints the server: %j",
    async (text) => {
      write(text, ".mcp.json")
      const refused = await install("claude-code")
      expect(refused.code).toBe(2)
      expect(refused.errors).toContain("not plain JSON")
      expect(refused.errors).toContain('{"agent-identity":{"command":"npx"')
      expect(read(".mcp.json")).toBe(text)
      expect(readdirSync(folder)).toEqual([".mcp.json"])
    },
  )

  it("leaves a file that it cannot read", async () => {
    mkdirSync(path.join(folder, ".mcp.json"))
    const refused = await install("claude-code")
    expect(refused).toMatchObject({ code: 2, errors: expect.stringContaining("EISDIR") })
    expect(readdirSync(folder)).toEqual([".mcp.json"])
  })

  it.each(["", "a b", "a.b", "x".repeat(51)])("rejects the name %j", async (name) => {
    const refused = await install("cursor", "--name", name)
    expect([refused.code, refused.errors]).toEqual([2, expect.stringContaining("--name may contain")])
    expect(existsSync(path.join(folder, ".cursor"))).toBe(false)
  })
})

describe("svc init", () => {
  const at = "/api/identities/ada"
  const ready = { handle: "ada", status: "ready", email: "ada@mail.localhost" }
  const init = (more: object = {}, ...words: ReadonlyArray<string>) =>
    run(
      ["init", "--handle", "ada", "--yes", ...words],
      { [`GET ${at}`]: ready, [`POST ${at}/keys`]: { key: "svc_id_new" }, ...more },
      asAdmin,
    )

  it.each([
    [undefined, `SVC_API_URL=${api}\nSVC_KEY=svc_id_new\n`],
    ["A=1\n", `A=1\nSVC_API_URL=${api}\nSVC_KEY=svc_id_new\n`],
    ["A=1", `A=1\nSVC_API_URL=${api}\nSVC_KEY=svc_id_new\n`],
    ["SVC_API_URL=http://mine\n", "SVC_API_URL=http://mine\nSVC_KEY=svc_id_new\n"],
    ["  export SVC_API_URL=x\n", "  export SVC_API_URL=x\nSVC_KEY=svc_id_new\n"],
    ["NOT_SVC_KEY=1\n", `NOT_SVC_KEY=1\nSVC_API_URL=${api}\nSVC_KEY=svc_id_new\n`],
  ])("adds the variables that .env does not have: %j", async (before, after) => {
    if (before !== undefined) write(before, ".env")
    expect(await init()).toMatchObject({ code: 0, errors: "" })
    expect(read(".env")).toBe(after)
    if (before === undefined) expect(statSync(path.join(folder, ".env")).mode & 0o777).toBe(0o600)
  })

  it("creates the Identity, and waits until it is ready", async () => {
    const begun = { ...ready, status: "provisioning" }
    const { code, out, requests } = await run(
      ["init", "--handle", "@ada", "--yes"],
      {
        [`GET ${at}`]: [problem(404, "not_found"), begun, begun, ready],
        [`POST ${at}/keys`]: { key: "svc_id_new" },
        "POST /api/identities": begun,
      },
      asAdmin,
    )
    expect([code, requests]).toEqual([
      0,
      [
        `GET ${at}`,
        'POST /api/identities {"handle":"ada"}',
        ...Array.from({ length: 3 }, () => `GET ${at}`),
        `POST ${at}/keys {"name":"svc init ada"}`,
      ],
    ])
    expect(out).toContain("Created: ada@mail.localhost")
  })

  it.each(["SVC_KEY=x\n", "export SVC_KEY=x\n"])("creates no key if .env has one: %j", async (before) => {
    write(before, ".env")
    const { code, out, requests } = await init()
    expect([code, requests]).toEqual([0, [`GET ${at}`, `GET ${at}`]])
    expect(out).toContain(".env already has a SVC_KEY, which stays.")
    expect(read(".env")).toBe(before)
  })

  it.each([
    [undefined, true],
    [".env\n", false],
    ["node_modules\n  /.env  \n", false],
    ["*.env\n", false],
    [".env*\n", false],
    [".env.local\n", true],
  ])("asks to keep .env out of commits with .gitignore %j", async (ignored, asks) => {
    if (ignored !== undefined) write(ignored, ".gitignore")
    expect((await init()).out.includes("Add .env to .gitignore")).toBe(asks)
  })

  it("says why .env cannot be written, and what an Identity that did not become ready is", async () => {
    mkdirSync(path.join(folder, ".env"))
    const blocked = await init({}, "--env", "none/.env")
    expect([blocked.code, blocked.errors]).toEqual([
      2,
      expect.stringMatching(/none\/\.env cannot be written: .*ENOENT/),
    ])
    const failed = await init({ [`GET ${at}`]: { ...ready, status: "failed" } })
    expect([failed.code, failed.errors]).toEqual([2, expect.stringContaining("The Identity ada is failed.")])
    const refused = await init({ [`GET ${at}`]: problem(403, "forbidden") })
    expect([refused.code, refused.requests]).toEqual([1, [`GET ${at}`]])
    const unknown = await init({}, "--client", "emacs")
    expect([unknown.code, unknown.requests]).toEqual([2, []])
    expect(unknown.errors).toContain("There is no client emacs. The clients are claude-code")
  })
})

describe("svc open", () => {
  const open = (words: ReadonlyArray<string>, env: object = {}) => run(["open", ...words], {}, { ...asAdmin, ...env })

  it("prints the address of a page", async () => {
    expect(await open(["--print"])).toMatchObject({ code: 0, out: `${api}/console\n` })
    expect(await open(["--print", "keys"])).toMatchObject({ code: 0, out: `${api}/console/keys\n` })
    expect(await open(["--print", "@ada"])).toMatchObject({ code: 0, out: `${api}/console/identities/ada\n` })
    for (const page of ["nowhere", "@", "@a/b", `@${"a".repeat(65)}`])
      expect(await open(["--print", page])).toMatchObject({
        code: 2,
        errors: expect.stringContaining("The pages are console, keys, docs, api and @handle."),
      })
  })

  it.skipIf(process.platform !== "linux")("opens it in the browser, if there is one", async () => {
    const opened = path.join(folder, "opened")
    const program = path.join(folder, "xdg-open")
    writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$@" > '${opened}.new' && mv '${opened}.new' '${opened}'\n`)
    chmodSync(program, 0o755)
    const PATH = `${folder}${path.delimiter}${process.env["PATH"]}`
    expect((await open(["--print"], { PATH })).code).toBe(0)
    expect(await open(["docs"], { PATH })).toMatchObject({ code: 0, out: `${api}/docs\n` })
    await expect.poll(() => existsSync(opened)).toBe(true)
    expect(readFileSync(opened, "utf8")).toBe(`${api}/docs\n`)
    rmSync(program)
    expect(await open(["docs"], { PATH: folder })).toMatchObject({ code: 0, out: `${api}/docs\n`, errors: "" })
  })
})

describe("svc listen", () => {
  const listen = (...words: ReadonlyArray<string>) =>
    run(["listen", ...words], { "GET /api/identities/nobody": problem(404, "not_found") }, asAdmin)

  it.each([
    [["--events", "email.recieved"], 2, "There is no Event type email.recieved. The types are "],
    [["--events", "email.received, email.gone"], 2, "There is no Event type email.gone."],
    [["--forward-to", "http://["], 2, "http://[ is not an address: pass a port"],
    [["--secret", `whsec_${Buffer.alloc(23).toString("base64")}`], 2, "--secret must be whsec_ and at least 24 bytes"],
    [["--secret", `whsek_${"a".repeat(32)}`], 2, "--secret must be whsec_ and at least 24 bytes"],
    [["--handle", "nobody"], 1, "not_found"],
  ])("names what is wrong with %j before it listens", async (words, code, text) => {
    const ended = await listen(...words)
    expect([ended.code, ended.errors, ended.out]).toEqual([code, expect.stringContaining(text), ""])
  })
})

it("svc dns gives each group of records one heading", async () => {
  const { code, out } = await run(["dns", "--address", "203.0.113.7", "--address", "2001:db8::7"], {}, {})
  const headings = out.split("\n").filter((line) => line.startsWith(";"))
  expect([code, headings.length > 3, new Set(headings).size]).toEqual([0, true, headings.length])
})

describe("the stored login", () => {
  afterEach(() => vi.unstubAllEnvs())
  it.skipIf(process.platform === "win32")("is in the folder for settings, also if its variable is empty", () => {
    vi.stubEnv("HOME", folder)
    for (const [variable, at] of [
      ["/elsewhere", "/elsewhere"],
      ["", path.join(folder, ".config")],
      [undefined, path.join(folder, ".config")],
    ] as const) {
      vi.stubEnv("XDG_CONFIG_HOME", variable)
      expect(Login.file()).toBe(path.join(at, "svc", "login.json"))
    }
  })
})
