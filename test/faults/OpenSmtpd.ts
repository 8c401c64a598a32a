/** OpenSMTPD (Debian's), if installed and not already running, since its spool and socket have fixed paths. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { until } from "../harness/Deployment.ts"
import { freePort } from "../harness/Ports.ts"

const program = "/usr/sbin/smtpd"

const greets = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("data", () => {
      socket.end("QUIT\r\n")
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

/** Starts it with a configuration that delivers everything to the server at our port over TLS. */
export const startOpenSmtpd = async (to: number) => {
  const port = await freePort()
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-opensmtpd-"))
  const file = path.join(directory, "smtpd.conf")
  writeFileSync(
    file,
    `listen on 127.0.0.1 port ${port} hostname mx.example.org
action "out" relay host smtp+tls://127.0.0.1:${to} tls no-verify helo mx.example.org
match from any for any action "out"
`,
  )
  const child = spawn(program, ["-d", "-f", file], { stdio: ["ignore", "ignore", "pipe"] })
  let output = ""
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()))
  const exited = new Promise((resolve) => child.once("exit", resolve))
  const stop = async () => {
    child.kill()
    await exited
    rmSync(directory, { recursive: true, force: true })
    rmSync("/var/run/smtpd.sock", { force: true })
  }
  try {
    await until("OpenSMTPD", () => greets(port))
  } catch (error) {
    await stop()
    throw new Error(output, { cause: error })
  }
  return { port, log: () => output, stop }
}
