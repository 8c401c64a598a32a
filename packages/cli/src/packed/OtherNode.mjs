// Runs this command again on another Node. Plain JavaScript without dependencies, since Node 20 must be able to read it.
import { spawn } from "node:child_process"

/** Reports why the command cannot run, and ends it with exit code 1. */
export const fail = (text) => {
  process.stderr.write(`svc: ${text}\n`)
  process.exitCode = 1
}

/** Runs the same command on the Node at `binary`, passes signals on, and exits with its exit code. */
export const runOn = (binary) => {
  const words = process.argv.slice(1)
  if (typeof process.execve === "function" && process.platform !== "win32") {
    process.execve(binary, [binary, ...words], process.env)
  }
  // A command that npm started exits with npm. This makes the new process exit with us, even after a SIGKILL.
  const env = { ...process.env, npm_lifecycle_event: process.env["npm_lifecycle_event"] ?? "svc" }
  const child = spawn(binary, words, { stdio: "inherit", env })
  const pass = (signal) => child.kill(signal)
  process.on("SIGTERM", pass).on("SIGHUP", pass)
  // A terminal sends Ctrl-C to both processes.
  process.on("SIGINT", (signal) => process.stdin.isTTY || pass(signal))
  child.on("error", (error) => fail(`${binary} cannot be run: ${error.message}`))
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
