/** Exim (Debian's), if installed: accepts a message from a program and sends it immediately. */
import { execFileSync, spawn } from "node:child_process"
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"

const program = "/usr/sbin/exim4"
const user = "Debian-exim"

/** A configuration that delivers everything to the server at our port over TLS. */
const configuration = (directory: string, port: number) => `
exim_user = ${user}
exim_group = ${user}
spool_directory = ${directory}/spool
log_file_path = ${directory}/spool/%slog
log_selector = +pipelining
primary_hostname = mx.example.org
smtputf8_advertise_hosts = *
acl_smtp_rcpt = accept
keep_environment =
begin routers
all:
  driver = manualroute
  route_list = * 127.0.0.1
  transport = out
  self = send
begin transports
out:
  driver = smtp
  port = ${port}
  allow_localhost
  hosts_require_tls = *
  tls_verify_hosts =
  tls_try_verify_hosts =
`

export const startExim = (port: number) => {
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-exim-"))
  const spool = path.join(directory, "spool")
  chmodSync(directory, 0o755)
  mkdirSync(spool)
  const idOf = (flag: "-u" | "-g") => Number(execFileSync("id", [flag, user], { encoding: "utf8" }))
  chownSync(spool, idOf("-u"), idOf("-g"))
  const file = path.join(directory, "exim.conf")
  writeFileSync(file, configuration(directory, port))
  return {
    /** Submits a message with SMTPUTF8 and 8BITMIME; resolves when Exim is done with it. */
    send: (from: string, to: string, text: string) =>
      new Promise<void>((resolve, reject) => {
        const child = spawn(program, ["-C", file, "-bs", "-odf"], { stdio: ["pipe", "ignore", "ignore"] })
        child.once("error", reject)
        child.once("exit", () => resolve())
        const stuffed = text.replace(/^\./gm, "..")
        child.stdin.end(
          `EHLO localhost\r\nMAIL FROM:<${from}> SMTPUTF8 BODY=8BITMIME\r\nRCPT TO:<${to}>\r\nDATA\r\n${stuffed}.\r\nQUIT\r\n`,
        )
      }),
    log: () => readFileSync(path.join(spool, "mainlog"), "utf8"),
    stop: () => rmSync(directory, { recursive: true, force: true }),
  }
}
