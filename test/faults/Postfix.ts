/** A private Postfix instance (Debian's), if installed and allowed to start, as the relay. */
import { execFileSync } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { freePort } from "../harness/Ports.ts"

const idOf = (flag: "-u" | "-g") => Number(execFileSync("id", [flag, "postfix"], { encoding: "utf8" }))

/** Services of the standard configuration without chroot; SMTP listens on our port. */
const services = (port: number) =>
  readFileSync("/etc/postfix/master.cf", "utf8")
    .replace(/^smtp +inet .*$/m, `127.0.0.1:${port} inet n - n - - smtpd`)
    .replace(/^(\w[\w-]* +(?:unix|inet|unix-dgram) +[-yn] +[-yn] +)[-y] /gm, "$1n ")

/**
 * Starts it with a mailbox for grace@example.org, no other mailbox of that domain, and a route for mail.localhost,
 * including bounces, to `bouncesTo`. `more` adds settings.
 */
export const startPostfix = async (bouncesTo: () => number, more: Readonly<Record<string, string>> = {}) => {
  const port = await freePort()
  const directory = mkdtempSync(path.join(os.tmpdir(), "svc-postfix-"))
  const [uid, gid] = [idOf("-u"), idOf("-g")]
  chmodSync(directory, 0o755)
  for (const name of ["queue", "data", "mail"]) mkdirSync(path.join(directory, name))
  for (const name of ["data", "mail"]) chownSync(path.join(directory, name), uid, gid)
  const main = {
    compatibility_level: "3.6",
    queue_directory: `${directory}/queue`,
    data_directory: `${directory}/data`,
    daemon_directory: "/usr/lib/postfix/sbin",
    mail_owner: "postfix",
    setgid_group: "postdrop",
    maillog_file: `${directory}/log`,
    maillog_file_prefixes: os.tmpdir(),
    myhostname: "mx.example.org",
    mydestination: "",
    inet_interfaces: "127.0.0.1",
    inet_protocols: "ipv4",
    mynetworks: "127.0.0.0/8",
    smtpd_recipient_restrictions: "permit_mynetworks, reject",
    // Unknown recipients are accepted first and then bounced, which is the bounce that the row needs.
    smtpd_reject_unlisted_recipient: "no",
    virtual_mailbox_domains: "example.org",
    virtual_mailbox_base: `${directory}/mail`,
    virtual_mailbox_maps: "inline:{ grace@example.org=grace }",
    virtual_minimum_uid: "10",
    virtual_uid_maps: `static:${uid}`,
    virtual_gid_maps: `static:${gid}`,
    transport_maps: `inline:{ mail.localhost=smtp:[127.0.0.1]:${bouncesTo()} }`,
    ...more,
  }
  writeFileSync(
    path.join(directory, "main.cf"),
    Object.entries(main)
      .map(([name, value]) => `${name} = ${value}\n`)
      .join(""),
  )
  writeFileSync(path.join(directory, "master.cf"), services(port))
  const control = (command: string) =>
    execFileSync("/usr/sbin/postfix", ["-c", directory, command], { stdio: "ignore" })
  control("start")
  return {
    port,
    /** Pid of its master process. */
    pid: Number(readFileSync(path.join(directory, "queue", "pid", "master.pid"), "latin1")),
    /** Returns the content of grace's mailbox. */
    delivered: () => {
      const file = path.join(directory, "mail", "grace")
      return existsSync(file) ? readFileSync(file, "latin1") : ""
    },
    stop: () => {
      control("stop")
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
