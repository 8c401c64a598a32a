/**
 * Runs Dovecot with Maildirs, if installed, as the reference for IMAP and, behind Postfix, for incoming mail. No
 * encryption; every name is a user.
 */
import { spawn } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { until } from "../harness/Deployment.ts"
import { freePort } from "../harness/Ports.ts"
import { programs } from "./Programs.ts"

export interface Dovecot {
  readonly port: number
  /** Pid of its master process. */
  readonly pid: number
  readonly username: string
  readonly password: string
  /** The folder with a Maildir for each user. */
  readonly home: string
  readonly stop: () => void
}

const answers = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.once("data", () => {
      socket.destroy()
      resolve(true)
    })
    socket.once("error", () => resolve(false))
  })

const listeners = (protocol: "imap" | "lmtp", port: number) =>
  protocol === "imap"
    ? `service imap-login {
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}`
    : `service lmtp {
  inet_listener lmtp {
    address = 127.0.0.1
    port = ${port}
  }
}
protocol lmtp {
  postmaster_address = postmaster@example.org
}`

/** The master process changes users, so it needs root. */
export const dovecot = async (protocol: "imap" | "lmtp" = "imap"): Promise<Dovecot | undefined> => {
  const program = programs("dovecot")
  const isThere = protocol === "imap" || existsSync("/usr/lib/dovecot/lmtp")
  if (program === undefined || !isThere || process.getuid?.() !== 0) return undefined
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-dovecot-"))
  chmodSync(directory, 0o755)
  const home = path.join(directory, "home")
  mkdirSync(home)
  chmodSync(home, 0o777)
  const port = await freePort()
  const file = path.join(directory, "dovecot.conf")
  writeFileSync(
    file,
    `base_dir = ${directory}/run
state_dir = ${directory}/state
log_path = ${directory}/log
protocols = ${protocol}
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:${home}/%n
mail_uid = 65534
mail_gid = 65534
first_valid_uid = 1
first_valid_gid = 1
mail_max_userip_connections = 5000
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=65534 gid=65534 home=${home}/%n
}
${listeners(protocol, port)}
`,
  )
  const child = spawn(program, ["-F", "-c", file], { stdio: "ignore" })
  const stop = () => {
    child.kill()
    setTimeout(() => rmSync(directory, { recursive: true, force: true }), 500)
  }
  try {
    await until("Dovecot", () => answers(port))
  } catch (error) {
    stop()
    throw error
  }
  return { port, pid: child.pid!, username: "bench", password: "secret", home, stop }
}
