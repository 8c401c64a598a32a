/**
 * Unbound as a validating name server, if it and ldns-utils are installed. It serves zones signed by the tests and validates
 * them like any others.
 */
import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as ValidatingResolver from "@svc/mail-gateway/mail/sending/dane/ValidatingResolver"
import { Effect } from "effect"
import { freePort } from "../../harness/Ports.ts"
import { eventually } from "../../harness/Service.ts"

const program = "/usr/sbin/unbound"
const tools = ["/usr/bin/ldns-keygen", "/usr/bin/ldns-signzone"] as const

export interface Zone {
  readonly name: string
  /** Lines of a zone file, with names relative to the zone. */
  readonly records: ReadonlyArray<string>
  /** Modifies the zone after it was signed, as an attacker would. */
  readonly altered?: (signed: string) => string
  /** The zone is unsigned and has no DS record. */
  readonly isUnsigned?: boolean
}

/** Signs a zone. Returns its file and, if it is signed, that of its key. */
const written = (directory: string, { name, records, altered = (same) => same, isUnsigned = false }: Zone) => {
  const file = path.join(directory, name)
  const text = `$ORIGIN ${name}.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n${records.join("\n")}\n`
  writeFileSync(file, text)
  if (isUnsigned) return { name, file, key: undefined }
  const inside = { cwd: directory, encoding: "utf8" } as const
  const key = execFileSync(tools[0], ["-a", "ECDSAP256SHA256", "-k", name], inside).trim()
  execFileSync(tools[1], [name, key], inside)
  writeFileSync(file, altered(readFileSync(`${file}.signed`, "utf8")))
  return { name, file, key: path.join(directory, `${key}.key`) }
}

/** Returns the port once the server answers. */
export const unbound = (zones: ReadonlyArray<Zone>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const directory = mkdtempSync(path.join(os.tmpdir(), "svc-unbound-"))
      const port = await freePort()
      const files = zones.map((zone) => written(directory, zone))
      writeFileSync(
        path.join(directory, "unbound.conf"),
        `server:
  directory: "${directory}"
  pidfile: "${directory}/pid"
  chroot: ""
  username: ""
  use-syslog: no
  logfile: "${directory}/log"
  interface: 127.0.0.1
  port: ${port}
  num-threads: 1
  do-not-query-localhost: no
  module-config: "validator iterator"
${files.map(({ name, key }) => (key === undefined ? `  domain-insecure: "${name}"` : `  trust-anchor-file: "${key}"`)).join("\n")}
remote-control:
  control-enable: no
${files.map(({ name, file }) => `auth-zone:\n  name: "${name}"\n  zonefile: "${file}"\n  for-downstream: no\n  for-upstream: yes\n`).join("")}`,
      )
      const child = spawn(program, ["-d", "-c", path.join(directory, "unbound.conf")], { stdio: "ignore" })
      const exited = new Promise((resolve) => child.once("exit", resolve))
      const query = Effect.flatMap(ValidatingResolver.make({ host: "127.0.0.1", port }), (ask) =>
        ask(`ns.${zones[0]!.name}`, "A"),
      )
      await eventually(
        () => Effect.runPromise(Effect.result(query)),
        ({ _tag }) => _tag === "Success",
        60,
      )
      const stop = async () => {
        child.kill()
        await exited
        rmSync(directory, { recursive: true, force: true })
      }
      return { port, stop }
    }),
    ({ stop }) => Effect.promise(stop),
  )
