/** The references of the tunnel rows: an origin server and other tunnel programs, if installed. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { freePort } from "../harness/Ports.ts"
import { programs } from "./Programs.ts"

export interface Reference {
  readonly port: number
  readonly stop: () => void
}

const listens = async (port: number) => {
  for (let i = 0; i < 400; i++) {
    const up = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => (socket.destroy(), resolve(true)))
      socket.on("error", () => resolve(false))
    })
    if (up) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error(`nothing listens on port ${port}`)
}

const directory = () => {
  const made = mkdtempSync(path.join(os.tmpdir(), "svc-bench-"))
  chmodSync(made, 0o755)
  return made
}

const ended =
  (home: string, ...children: ReadonlyArray<ChildProcess>) =>
  () => {
    for (const child of children) child.kill()
    rmSync(home, { recursive: true, force: true })
  }

const startNginx = async (program: string, port: number, http: string): Promise<Reference> => {
  const home = directory()
  mkdirSync(path.join(home, "bodies"))
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${path.join(home, "bodies", name)};`)
    .join("\n")
  writeFileSync(
    path.join(home, "nginx.conf"),
    `daemon off; worker_processes 1; pid ${home}/pid; error_log /dev/null crit;
     events { worker_connections 4096; }
     http { access_log off; keepalive_requests 1000000000; ${temporary}\n${http} }`,
  )
  const child = spawn(program, ["-c", path.join(home, "nginx.conf"), "-p", home], {
    stdio: ["ignore", "ignore", "inherit"],
  })
  await listens(port)
  return { port, stop: ended(home, child) }
}

/** Starts an origin that returns a small response, and `bytes` at `/large`: nginx if installed, as it is faster. */
export const startOrigin = async (bytes: number): Promise<Reference & { readonly name: string }> => {
  const program = programs("nginx")
  if (program !== undefined) {
    const port = await freePort()
    const files = directory()
    writeFileSync(path.join(files, "large"), Buffer.alloc(bytes))
    const nginx = await startNginx(
      program,
      port,
      `server { listen 127.0.0.1:${port}; location / { return 200 "ok"; } location /large { root ${files}; } }`,
    )
    return { name: "nginx", port, stop: () => (nginx.stop(), rmSync(files, { recursive: true, force: true })) }
  }
  const child = spawn(
    process.execPath,
    [
      "-e",
      `const large = Buffer.alloc(${bytes})
       require("node:http").createServer((q, r) => r.end(q.url === "/large" ? large : "ok"))
         .listen(0, "127.0.0.1", function () { console.log(this.address().port) })`,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  )
  const [port] = (await once(child.stdout, "data")) as [Buffer]
  return { name: "Node", port: Number(port.toString()), stop: () => child.kill() }
}

/** Starts a plain proxy without a tunnel. */
export const nginxProxy = async (program: string, origin: number): Promise<Reference> => {
  const port = await freePort()
  return startNginx(
    program,
    port,
    `upstream origin { server 127.0.0.1:${origin}; keepalive 256; keepalive_requests 1000000000; }
     server { listen 127.0.0.1:${port}; location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }`,
  )
}

/** Starts `ssh -R` to a private server on this machine. */
export const sshRemote = async (program: string, origin: number): Promise<Reference> => {
  const home = directory()
  const [server, port] = [await freePort(), await freePort()]
  for (const key of ["host", "client"]) {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", path.join(home, key)])
  }
  mkdirSync("/run/sshd", { recursive: true })
  const keys = path.join(home, "authorized")
  execFileSync("cp", [path.join(home, "client.pub"), keys])
  const config = path.join(home, "sshd_config")
  writeFileSync(
    config,
    `Port ${server}\nListenAddress 127.0.0.1\nHostKey ${path.join(home, "host")}\nAuthorizedKeysFile ${keys}\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n`,
  )
  const daemon = spawn(program, ["-D", "-f", config], { stdio: "ignore" })
  await listens(server)
  const client = spawn(
    "ssh",
    [
      "-N",
      "-i",
      path.join(home, "client"),
      "-p",
      String(server),
      "-o",
      "StrictHostKeyChecking=no",
      "-o",
      "UserKnownHostsFile=/dev/null",
      "-o",
      "ExitOnForwardFailure=yes",
      "-R",
      `127.0.0.1:${port}:127.0.0.1:${origin}`,
      `${os.userInfo().username}@127.0.0.1`,
    ],
    { stdio: "ignore" },
  )
  await listens(port)
  return { port, stop: ended(home, client, daemon) }
}

/** Starts two processes that only forward bytes, see `BareTunnel`. */
export const bareNode = async (origin: number): Promise<Reference> => {
  const home = directory()
  const begin = async (role: "agent" | "edge", to: number) => {
    const child = spawn(process.execPath, [path.join(import.meta.dirname, "BareTunnel.ts"), role, String(to)], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    const [port] = (await once(child.stdout, "data")) as [Buffer]
    return { child, port: Number(port.toString()) }
  }
  const agent = await begin("agent", origin)
  const edge = await begin("edge", agent.port)
  return { port: edge.port, stop: ended(home, edge.child, agent.child) }
}

export const chisel = async (program: string, origin: number): Promise<Reference> => {
  const home = directory()
  const [server, port] = [await freePort(), await freePort()]
  const children = [
    spawn(program, ["server", "--reverse", "--host", "127.0.0.1", "--port", String(server)], { stdio: "ignore" }),
    spawn(program, ["client", `127.0.0.1:${server}`, `R:127.0.0.1:${port}:127.0.0.1:${origin}`], { stdio: "ignore" }),
  ]
  await listens(port)
  return { port, stop: ended(home, ...children) }
}

const main = path.join(import.meta.dirname, "../../packages/cli/src/main.ts")

/** Starts `svc tunnel`, the agent that is measured, with the key in `env`. It is connected when it prints its address. */
export const svcTunnel = async (api: string, edge: string, port: number, env: Readonly<Record<string, string>>) => {
  const words = ["tunnel", String(port), "--api", api, "--quiet", "--edge", edge]
  const child = spawn(process.execPath, [main, ...words], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "inherit"],
  })
  await once(child.stdout, "data")
  child.stdout.resume()
  return child
}
