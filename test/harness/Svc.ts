/** Runs `svc` as a process with its own home directory and a clean environment. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as path from "node:path"

export const program = path.join(import.meta.dirname, "..", "..", "packages", "cli", "src", "main.mjs")

export interface SvcEnvironment {
  readonly home: string
  readonly env?: Readonly<Record<string, string>>
  /** The folder in which it runs; this one by default. */
  readonly cwd?: string
  /** Text on standard input; null leaves it open for the test to write. */
  readonly input?: string | null
}

export const environment = (home: string) => ({ PATH: process.env["PATH"] ?? "", HOME: home, XDG_CONFIG_HOME: home })

export const startSvc = ({ home, env, cwd, input = "" }: SvcEnvironment, ...args: ReadonlyArray<string>) => {
  const child = spawn(process.execPath, [program, ...args], {
    cwd,
    env: { ...environment(home), ...env },
    stdio: "pipe",
  })
  if (input !== null) child.stdin.end(input)
  let [out, errors] = ["", ""]
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()))
  const ended = once(child, "close").then(([code]) => code as number | null)
  return {
    input: child.stdin,
    out: () => out,
    errors: () => errors,
    ended,
    stop: (signal?: NodeJS.Signals) => child.kill(signal),
  }
}

/** Runs the command and returns its exit code and output. */
export const runSvc = async (around: SvcEnvironment, ...args: ReadonlyArray<string>) => {
  const ran = startSvc(around, ...args)
  return { code: await ran.ended, out: ran.out(), errors: ran.errors() }
}
