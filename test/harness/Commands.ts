/**
 * Runs commands of `svc` in this process, at a hundredth of the cost of a process, against a service or a function that
 * answers in its place. Tests of signals, of how a process ends and of what it loads start one (`Svc.ts`).
 */
import { createHook } from "node:async_hooks"
import { mkdtempSync, rmSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { Readable } from "node:stream"
import { setImmediate } from "node:timers/promises"
import { format } from "node:util"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { program } from "@svc/cli/CommandLine"
import { newestVersion } from "@svc/domain/Versions"
import { ConfigProvider, Console, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, beforeEach, expect, vi } from "vitest"
import { environment, type SvcEnvironment } from "./Svc.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- JSON
export type Json = any
/** Responses by request, or a function of it; a list gives one after the other, and the last one again. A number is a status. */
export type Responses = Readonly<Record<string, Json>> | ((route: string) => Json)

export const api = "http://api.test"
/** A site that is not the service. */
export const foreign = "http://foreign.test"
export const problem = (status: number, code: string, more: object = {}) => ({
  status,
  body: { title: "No", detail: "Because", code, agent_hint: "fix_call", ...more },
})

interface Output {
  readonly out: string
  readonly errors: string
  readonly code: number
}
interface Ran extends Output {
  readonly requests: ReadonlyArray<string>
  /** The times of the requests in seconds. */
  readonly times: ReadonlyArray<number>
}

/** A replacement for `write` of a stream, whose last argument is the callback. */
const writer =
  (print: (text: string) => void): typeof process.stdout.write =>
  (chunk: string | Uint8Array, ...more: ReadonlyArray<unknown>) => {
    print(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString())
    const written = more.at(-1)
    if (typeof written === "function") written()
    return true
  }

type Program = Awaited<ReturnType<typeof program>>

/** Runs the command with its own words, environment and input, and returns its output and exit code. */
const inProcess = async (
  words: ReadonlyArray<string>,
  { home, env = {}, input = "" }: Omit<SvcEnvironment, "cwd">,
  run: (program: Effect.Effect<void, Effect.Error<Program>>) => Promise<Exit.Exit<void, unknown>>,
): Promise<Output> => {
  let [out, errors] = ["", ""]
  for (const name of Object.keys(process.env)) if (name.startsWith("SVC_")) vi.stubEnv(name, undefined)
  for (const [name, value] of Object.entries({ ...environment(home), ...env })) vi.stubEnv(name, value)
  const print = (text: string) => void (out += text)
  const report = (text: string) => void (errors += text)
  const replaced = [
    vi.spyOn(process.stdout, "write").mockImplementation(writer(print)),
    vi.spyOn(process.stderr, "write").mockImplementation(writer(report)),
    vi
      .spyOn(process, "stdin", "get")
      .mockReturnValue(Readable.from([Buffer.from(input ?? "")]) as typeof process.stdin),
  ]
  const { argv, exitCode } = process
  process.argv = ["node", "svc", ...words]
  process.exitCode = 0
  try {
    const settings = ConfigProvider.layer(ConfigProvider.fromEnv())
    // Not the console of the process, to which a service writes its log at the same time.
    const terminal = Layer.succeed(Console.Console, {
      ...console,
      log: (...values) => print(`${format(...values)}\n`),
      error: (...values) => report(`${format(...values)}\n`),
    })
    const exit = await run((await program(words)).pipe(Effect.provide([NodeServices.layer, settings, terminal])))
    expect(Exit.isSuccess(exit), String(exit)).toBe(true)
    return { out, errors, code: Number(process.exitCode) }
  } finally {
    process.argv = argv
    process.exitCode = exitCode
    for (const one of replaced) one.mockRestore()
    vi.unstubAllEnvs()
  }
}

let last: Promise<unknown> = Promise.resolve()

/** Runs the command in this process. Commands run one after another, because each replaces the environment and the outputs. */
export const runHere = (around: Omit<SvcEnvironment, "cwd">, ...words: ReadonlyArray<string>): Promise<Output> => {
  const ran = last.then(() => inProcess(words, around, (program) => Effect.runPromise(Effect.exit(program))))
  last = ran.catch(() => {})
  return ran
}

const isProblem = (value: Json): value is ReturnType<typeof problem> => value?.body?.code !== undefined

/** The operations on files that have not ended. They are outside of the test's clock. */
const onFiles = new Set<number>()
const filesHook = createHook({
  init: (id, type) => void (type.startsWith("FSREQ") && onFiles.add(id)),
  destroy: (id) => void onFiles.delete(id),
})

const runIn = async (
  home: string,
  words: ReadonlyArray<string>,
  responses: Responses,
  env: Readonly<Record<string, string>>,
) => {
  const requests: Array<string> = []
  const times: Array<number> = []
  const asked = new Map<string, number>()
  let now = 0
  let answering = 0
  const answer = async (given: Request | URL | string, init?: RequestInit) => {
    const request = new Request(given, init)
    const isForeign = request.url.startsWith(`${foreign}/`)
    expect(request.redirect).toBe(isForeign ? "follow" : "manual")
    expect(request.headers.get("svc-version")).toBe(isForeign ? null : newestVersion)
    const text = await request.text()
    expect(request.headers.get("content-type")).toBe(text === "" ? null : "application/json")
    const route = `${request.method} ${request.url.replace(/^http:\/\/[^/]+/, "")}`
    const key = request.headers.get("authorization")
    requests.push(
      [route, text, key === null ? "without key" : key === "Bearer key" ? "" : key].filter(Boolean).join(" "),
    )
    times.push(now)
    const [begin, found] =
      typeof responses === "function"
        ? [route, responses(route)]
        : (Object.entries(responses).find(([begin]) => route.startsWith(begin)) ?? [])
    if (begin === undefined) throw new TypeError(`no response to ${route}`)
    const n = asked.get(begin) ?? 0
    asked.set(begin, n + 1)
    const one = Array.isArray(found) ? found[Math.min(n, found.length - 1)] : found
    if (one instanceof Error) throw one
    if (one === 204) return new Response(null, { status: 204 })
    return isProblem(one) ? Response.json(one.body, { status: one.status }) : Response.json(one)
  }
  /** Waits until the command waits for the test's clock, or has ended: not for a module, a file or a response. */
  const settled = async () => {
    for (let turns = 0; turns < 20; turns++) {
      await setImmediate()
      if (answering > 0 || onFiles.size > 0) turns = 0
      if (turns === 10) await vi.dynamicImportSettled()
    }
  }
  vi.stubGlobal("fetch", (given: Request | URL | string, init?: RequestInit) => {
    answering++
    return answer(given, init).finally(() => answering--)
  })
  filesHook.enable()
  try {
    const ran = await inProcess(words, { home, env }, (program) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Effect.exit(program), { startImmediately: true })
        while (now < 600) {
          yield* Effect.promise(settled)
          if (fiber.pollUnsafe() !== undefined) break
          now++
          yield* TestClock.adjust("1 second")
        }
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(TestClock.layer()), Effect.runPromise),
    )
    return { requests, times, ...ran } satisfies Ran
  } finally {
    filesHook.disable()
    vi.unstubAllGlobals()
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
