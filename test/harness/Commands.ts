/** Runs commands of `svc` in this process, with a function that answers like the service. */
import { mkdtempSync, rmSync } from "node:fs"
import { stat } from "node:fs/promises"
import * as os from "node:os"
import * as path from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Account from "@svc/cli/account/Commands"
import * as Audit from "@svc/cli/audit/Command"
import * as Grants from "@svc/cli/grants/Command"
import * as Init from "@svc/cli/account/Init"
import * as Open from "@svc/cli/account/Open"
import * as Listen from "@svc/cli/events/Listen"
import * as Mcp from "@svc/cli/mcp/Command"
import * as SignIn from "@svc/cli/proof/SignIn"
import * as Token from "@svc/cli/proof/Token"
import * as Trigger from "@svc/cli/events/Trigger"
import * as Verify from "@svc/cli/proof/Verify"
import { commands as toolCommands } from "@svc/cli/tools/Commands"
import { newestVersion } from "@svc/domain/Versions"
import { Effect, Exit, Fiber } from "effect"
import { Command } from "effect/cli"
import { TestClock } from "effect/testing"
import { afterAll, beforeEach, expect, vi } from "vitest"

const svc = Command.make("svc").pipe(
  Command.withSubcommands([
    // Commands that are not tools, but have a tool as their subcommand.
    ...toolCommands.filter(({ name }) => !["token", "sign-in", "tunnel"].includes(name)),
    ...Account.commands,
    Audit.command,
    Grants.command,
    Init.command,
    Listen.command,
    Mcp.command,
    Open.command,
    SignIn.command,
    Token.command,
    Trigger.command,
    Verify.command,
  ]),
)

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
export type Json = any
/** Responses by request; a list gives one after the other, and the last one again. A number is a status. */
export type Responses = Readonly<Record<string, Json>>

export const api = "http://api.test"
export const problem = (status: number, code: string, more: object = {}) => ({
  status,
  body: { title: "No", detail: "Because", code, agent_hint: "fix_call", ...more },
})

interface Ran {
  readonly requests: ReadonlyArray<string>
  /** The times of the requests in seconds. */
  readonly times: ReadonlyArray<number>
  readonly out: string
  readonly errors: string
  readonly code: number
}

const isProblem = (value: Json): value is ReturnType<typeof problem> => value?.body?.code !== undefined

const runIn = async (
  home: string,

  words: ReadonlyArray<string>,
  responses: Responses,
  env: Readonly<Record<string, string>>,
) => {
  const requests: Array<string> = []
  const times: Array<number> = []
  let [out, errors] = ["", ""]
  const asked = new Map<string, number>()
  let now = 0
  const answer = async (given: Request | URL | string, init?: RequestInit) => {
    const request = new Request(given, init)
    expect(request.redirect).toBe("manual")
    expect(request.headers.get("svc-version")).toBe(newestVersion)
    const text = await request.text()
    expect(request.headers.get("content-type")).toBe(text === "" ? null : "application/json")
    const route = `${request.method} ${request.url.replace(/^http:\/\/[^/]+/, "")}`
    const key = request.headers.get("authorization")
    requests.push(
      [route, text, key === null ? "without key" : key === "Bearer key" ? "" : key].filter(Boolean).join(" "),
    )
    times.push(now)
    const [begin, found] = Object.entries(responses).find(([begin]) => route.startsWith(begin)) ?? []
    if (begin === undefined) throw new TypeError(`no response to ${route}`)
    const n = asked.get(begin) ?? 0
    asked.set(begin, n + 1)
    const one = Array.isArray(found) ? found[Math.min(n, found.length - 1)] : found
    if (one instanceof Error) throw one
    if (one === 204) return new Response(null, { status: 204 })
    return isProblem(one) ? Response.json(one.body, { status: one.status }) : Response.json(one)
  }
  vi.stubGlobal("fetch", answer)
  for (const [name, value] of Object.entries({ SVC_API_URL: "", SVC_KEY: "", XDG_CONFIG_HOME: home, ...env }))
    vi.stubEnv(name, value)
  const outputs = [
    vi.spyOn(process.stdout, "write").mockImplementation((text) => ((out += String(text)), true)),
    vi.spyOn(process.stderr, "write").mockImplementation((text) => ((errors += String(text)), true)),
  ]
  const { argv, exitCode } = process
  process.argv = ["node", "svc", ...words]
  process.exitCode = 0
  try {
    const command = Command.runWith(svc, { version: "0" })(words)
    const exit = await Effect.runPromise(
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Effect.exit(command), { startImmediately: true })
        // Requests and files are outside of the test's clock, so each second leaves them time.
        while (now < 600) {
          for (let n = 0; n < 20; n++) yield* Effect.promise(() => stat(home))
          if (fiber.pollUnsafe() !== undefined) break
          now++
          yield* TestClock.adjust("1 second")
        }
        return yield* Fiber.await(fiber)
      }).pipe(Effect.flatten, Effect.provide([NodeServices.layer, TestClock.layer()])) as Effect.Effect<
        Exit.Exit<void>
      >,
    )
    expect(Exit.isSuccess(exit), String(exit)).toBe(true)
    return { requests, times, out, errors, code: Number(process.exitCode) } satisfies Ran
  } finally {
    process.argv = argv
    process.exitCode = exitCode
    for (const output of outputs) output.mockRestore()
    vi.unstubAllGlobals()
    vi.unstubAllEnvs()
  }
}

export const asAdmin = { SVC_API_URL: api, SVC_KEY: "key" }

/** Makes a home directory for the commands of a test file. */
export const commands = () => {
  const home = mkdtempSync(path.join(os.tmpdir(), "svc-commands-"))
  const loginFile = path.join(home, "svc", "login.json")
  afterAll(() => rmSync(home, { recursive: true }))
  beforeEach(() => rmSync(path.dirname(loginFile), { recursive: true, force: true }))
  return {
    home,
    loginFile,
    /** Runs a command. Without credentials in `env`, it uses the stored login. */
    run: (words: ReadonlyArray<string>, responses: Responses, env: Readonly<Record<string, string>>) =>
      runIn(home, words, responses, env),
  }
}
