/** The service as separate processes over one embedded database in a temporary directory, as an operator runs it. */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as EmbeddedPostgres from "@svc/cluster/store/EmbeddedPostgres"
import { Effect, Exit, Scope } from "effect"
import { patience } from "./Eventually.ts"
import { copy, preparedName, refuseDeadlocks } from "./TestServers.ts"
import { unlimited } from "./Unlimited.ts"
import { freePort, portRange } from "./Ports.ts"

const here = path.join(import.meta.dirname, "..", "..")

export interface DeploymentOptions {
  /** Keeps the directory, including the output of the processes. */
  readonly keep?: boolean
  /** Settings of its PostgreSQL, which is then started first and shared by the processes. */
  readonly postgres?: Readonly<Record<string, string>>
  /** An existing data directory, which is kept; defaults to a temporary one. */
  readonly directory?: string
  /** The checkout that runs; defaults to this one. */
  readonly checkout?: string
}

export interface Process {
  readonly roles: ReadonlyArray<string>
  readonly base: string
  readonly smtpPort: number
  readonly imapPort: number
  readonly submissionPort: number
  readonly edgePort: number
  readonly child: ChildProcess
  readonly output: () => string
  /** Resolves with the exit code or signal. */
  readonly exited: Promise<number | string>
  readonly signal: (signal: NodeJS.Signals) => void
}

export interface Deployment {
  readonly directory: string
  readonly start: (roles?: ReadonlyArray<string>, env?: Readonly<Record<string, string>>) => Promise<Process>
  /** Pid of the PostgreSQL server. */
  readonly postgres: () => number
  readonly stop: () => Promise<void>
}

export const until = async (
  what: string,
  holds: () => Promise<boolean> | boolean,
  seconds = patience / 1000,
): Promise<void> => {
  const began = Date.now()
  while (!(await holds())) {
    const elapsed = Date.now() - began
    if (elapsed > seconds * 1000) throw new Error(`${what}: not within ${seconds} s`)
    // Polls at growing intervals, so that waiting tests leave the machine to the work.
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(elapsed / 20, 10), 200)))
  }
}

export const isHealthy = async (base: string) => {
  try {
    return (await fetch(`${base}/api/healthz`, { signal: AbortSignal.timeout(2000) })).ok
  } catch {
    return false
  }
}

export const deploy = async (options: DeploymentOptions = {}): Promise<Deployment> => {
  const command = path.join(options.checkout ?? here, "packages", "cli", "src")
  // Earlier commits, which benchmarks compare with, have the other file.
  const main = ["main.mjs", "main.ts"].map((name) => path.join(command, name)).find(existsSync)!
  const directory = options.directory ?? mkdtempSync(path.join(os.tmpdir(), "svc-rig-"))
  // Accessible to the database's user, so that the data is stored here even under root.
  chmodSync(directory, 0o755)
  // In a test run, a new deployment starts with a prepared database, which saves two seconds.
  const prepared = process.env[preparedName]
  if (prepared !== undefined && options.directory === undefined) copy(prepared, directory)
  const processes: Array<Process> = []
  const tunnelPorts = portRange()
  const server = Scope.makeUnsafe()
  if (options.postgres !== undefined) {
    await Effect.runPromise(Scope.provide(EmbeddedPostgres.open({ directory, settings: options.postgres }), server))
  }

  const start: Deployment["start"] = async (roles = [], env = {}) => {
    const [http, smtp, imap, edge] = [await freePort(), await freePort(), await freePort(), await freePort()]
    const submission = await freePort()
    const child = spawn(process.execPath, [main, "serve", ...roles.flatMap((role) => ["--role", role])], {
      env: {
        PATH: process.env["PATH"],
        SVC_DATA_DIR: directory,
        SVC_HTTP_PORT: String(http),
        SVC_SMTP_PORT: String(smtp),
        SVC_IMAP_PORT: String(imap),
        SVC_IMAPS_PORT: "0",
        SVC_SUBMISSION_PORT: String(submission),
        SVC_SUBMISSIONS_PORT: "0",
        SVC_EDGE_PORT: String(edge),
        SVC_EDGE_TCP_PORTS: tunnelPorts,
        SVC_IDENTITY_QUOTA: "1000000",
        ...unlimited,
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
    const started: Process = {
      roles,
      base: `http://localhost:${http}`,
      smtpPort: smtp,
      imapPort: imap,
      submissionPort: submission,
      edgePort: edge,
      child,
      output: () => output,
      exited: new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal ?? "gone"))),
      signal: (signal) => void child.kill(signal),
    }
    processes.push(started)
    await until(
      `start of ${roles.join("+") || "all roles"}`,
      () => {
        if (child.exitCode !== null) throw new Error(`the process ended: ${output}`)
        // Earlier commits print the second form.
        return roles.length === 0 || roles.includes("api")
          ? isHealthy(started.base)
          : /service is (running|up)/.test(output)
      },
      // A busy machine takes long; the end of a process is reported immediately.
      300,
    )
    return started
  }

  return {
    directory,
    start,
    postgres: () => Number(readFileSync(path.join(directory, "pg18", "data", "postmaster.pid"), "utf8").split("\n")[0]),
    stop: async () => {
      for (const { child } of processes) child.kill("SIGCONT")
      for (const { child } of processes) child.kill("SIGTERM")
      await Promise.all(
        processes.map(({ exited, child }) =>
          Promise.race([
            exited,
            new Promise((resolve) => setTimeout(resolve, 12_000)).then(() => child.kill("SIGKILL")),
          ]),
        ),
      )
      await Effect.runPromise(Scope.close(server, Exit.void))
      const ended = until("the database's end", () => !alive(directory), 15)
      await (options.directory === undefined ? ended.catch(() => {}) : ended)
      try {
        // Deadlocks of an earlier commit are not reported.
        if (options.checkout === undefined) refuseDeadlocks(directory)
      } finally {
        if (options.keep === true) {
          writeFileSync(path.join(directory, "output.log"), processes.map(({ output }) => output()).join("\n---\n"))
        } else if (options.directory === undefined) rmSync(directory, { recursive: true, force: true })
      }
    },
  }
}

const alive = (directory: string) => {
  try {
    process.kill(Number(readFileSync(path.join(directory, "pg18", "data", "postmaster.pid"), "utf8").split("\n")[0]), 0)
    return true
  } catch {
    return false
  }
}
