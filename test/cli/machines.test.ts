/** Output for programs (`--json`, `--jq`), completions of shells, and what only a terminal gets: dialogues and progress. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { runHere } from "../harness/Commands.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { environment, program } from "../harness/Svc.ts"

let service: TestService
let session: string
let home: string
let handle: string
beforeAll(async () => {
  home = mkdtempSync(path.join(os.tmpdir(), "svc-machines-"))
  service = await sharedService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})
afterAll(async () => {
  rmSync(home, { recursive: true, force: true })
})

const around = () => ({ home, env: { SVC_API_URL: service.base, SVC_KEY: session } })
const svc = (...words: ReadonlyArray<string>) => runHere(around(), ...words)

/** Commands whose output is not a response: a service, a relay, a file, or what another program wrote. */
const others = ["credentials", "fetch", "mcp", "serve", "systemd-unit", "token", "tunnel"]

describe("Completions", () => {
  const script = (shell: string) => svc("--completions", shell)

  it("of every shell offer --json and --jq for each command that prints a response", async () => {
    const { code, out } = await script("fish")
    expect(code).toBe(0)
    const flags = new Map<string, Set<string>>()
    for (const [, where, flag] of out.matchAll(/^complete -c svc -n '([^']*)' .*?-l '?([\w-]+)'?/gm)) {
      const words = [...where!.matchAll(/__fish_seen_subcommand_from ([\w-]+)/g)].map(([, word]) => word!)
      const name = words.join(" ")
      flags.set(name, (flags.get(name) ?? new Set()).add(flag!))
    }
    expect(flags.size).toBeGreaterThan(60)
    const lacking = [...flags].filter(([name, own]) => {
      const [first = ""] = name.split(" ")
      return name !== "" && !(own.has("json") && own.has("jq")) && !others.includes(first)
    })
    expect(lacking.map(([name]) => name)).toEqual([])
    for (const shell of ["zsh", "powershell"]) expect((await script(shell)).out, shell).toMatch(/\bjq\b/)
  })

  it.skipIf(process.platform === "win32")("of bash complete commands, subcommands, flags and choices", async () => {
    const file = path.join(home, "completions.bash")
    writeFileSync(file, (await script("bash")).out)
    /** Returns what bash offers for a line, with the function that the script registers. */
    const offered = (...words: ReadonlyArray<string>) => {
      const { stdout, stderr } = spawnSync(
        "bash",
        [
          "--norc",
          "-c",
          `source "$1"; shift
           COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}
           complete_with=$(complete -p svc | sed 's/.*-F \\([^ ]*\\).*/\\1/')
           "$complete_with" svc "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD - 1]}"
           printf '%s\\n' "\${COMPREPLY[@]}"`,
          "bash",
          file,
          ...words,
        ],
        { encoding: "utf8" },
      )
      expect(stderr).toBe("")
      return stdout.split("\n").map((word) => word.trim())
    }
    expect(offered("svc", "va")).toContain("vault")
    expect(offered("svc", "vault", "")).toEqual(expect.arrayContaining(["set", "get", "list"]))
    expect(offered("svc", "email", "list", "--j")).toEqual(expect.arrayContaining(["--json", "--jq"]))
    expect(offered("svc", "trigger", "email.r")).toContain("email.received")
  })
})

describe("--jq", () => {
  it("prints what the expression selects, text without quotes", async () => {
    expect(await svc("identity", "list", "--jq", ".identities[].handle")).toMatchObject({ code: 0, out: `${handle}\n` })
    const { out } = await svc("identity", "get", handle, "--jq", '{handle, ready: (.status == "ready")}')
    expect(JSON.parse(out)).toEqual({ handle, ready: true })
    expect((await svc("whoami", "--jq", ".caller.kind")).out).toBe("session\n")
  })

  it("with an expression that is not valid changes nothing, and says why", async () => {
    const made = await svc("keys", "create", "never", "--jq", ".key | (")
    expect([made.code, made.out]).toEqual([2, ""])
    expect(JSON.parse(made.errors)).toMatchObject({ code: "usage", detail: expect.stringContaining("jq") })
    const { body } = await call(service.base, "GET", "/api/keys", { token: session })
    expect(body.api_keys.map(({ name }: { name: string }) => name)).not.toContain("never")
    const unfit = await svc("identity", "get", handle, "--jq", ".handle - 1")
    expect([unfit.code, JSON.parse(unfit.errors).detail]).toEqual([2, expect.stringContaining("does not fit")])
  })
})

describe("--json", () => {
  it("of commands that act says what they did", async () => {
    const made = JSON.parse((await svc("keys", "create", "short", "--json")).out)
    expect(made).toMatchObject({ key: expect.stringMatching(/^svc_admin_/), api_key: { name: "short" } })
    expect(JSON.parse((await svc("keys", "revoke", made.api_key.id, "--json")).out)).toEqual({
      revoked: made.api_key.id,
    })
    expect(JSON.parse((await svc("open", "docs", "--print", "--json")).out)).toEqual({ url: `${service.base}/docs` })
    const logout = await runHere({ home }, "logout", "--json")
    expect(JSON.parse(logout.out)).toEqual({ was_logged_in: false })
  })
})

/** Runs `svc` in a pseudo-terminal of python3, types lines when their prompt appears, and returns what the screen received. */
const typed = async (
  cwd: string,
  answers: ReadonlyArray<readonly [prompt: string, keys: string]>,
  words: ReadonlyArray<string>,
) => {
  const script = `
import json, os, pty, select, sys, time
answers, command = json.loads(sys.argv[1]), sys.argv[2:]
pid, screen = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen, at, deadline = b"", 0, time.time() + 60
while time.time() < deadline:
    if select.select([screen], [], [], 0.2)[0]:
        try:
            chunk = os.read(screen, 65536)
        except OSError:
            break
        if not chunk:
            break
        seen += chunk
    if answers and answers[0][0].encode() in seen[at:]:
        at = len(seen)
        os.write(screen, answers.pop(0)[1].encode())
sys.stdout.buffer.write(seen)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
`
  const child = spawn("python3", ["-c", script, JSON.stringify(answers), process.execPath, program, ...words], {
    cwd,
    env: { ...environment(home), TERM: "xterm", SVC_API_URL: service.base, SVC_KEY: session },
  })
  let screen = ""
  child.stdout.on("data", (chunk: Buffer) => (screen += chunk.toString()))
  const [code] = await once(child, "close")
  return { code: code as number, screen }
}

describe.skipIf(spawnSync("python3", ["-c", "import pty"]).status !== 0)("On a terminal", () => {
  it("svc init asks for the name of the agent and its client, and sets them up", async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), "svc-init-"))
    const agent = newHandle("typed")
    const { code, screen } = await typed(
      folder,
      [
        ["Name of the agent", `${agent}\r`],
        // The second client of the list.
        ["Which client", "\u001b[B\r"],
      ],
      ["init"],
    )
    expect([code, screen]).toEqual([0, expect.stringContaining("Done.")])
    expect(screen).toContain(`Created: ${agent}@`)
    expect(readFileSync(path.join(folder, ".env"), "utf8")).toMatch(/^SVC_KEY=svc_id_/m)
    expect(JSON.parse(readFileSync(path.join(folder, ".cursor", "mcp.json"), "utf8"))).toHaveProperty("mcpServers")
    rmSync(folder, { recursive: true })
  })

  it("a call that waits shows its progress on standard error, and removes it", async () => {
    const words = ["email", "wait", handle, "--seconds", "3"]
    const { screen } = await typed(home, [], words)
    expect(screen).toContain("svc email wait ... 1 s")
    // The last progress line is erased before the result.
    expect(screen.lastIndexOf("\u001b[K")).toBeGreaterThan(screen.lastIndexOf(" ... "))
    expect((await svc(...words)).errors).toBe("")
  })
})
