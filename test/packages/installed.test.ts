/**
 * The packages as npm would publish them, installed into an empty folder and used by an ordinary user: the client on the oldest installed
 * Node, the service on the Node of its package, and the tunnel library in programs. It is one file, since building and installing them
 * takes most of the time.
 */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { apiVersion } from "@svc/domain/Version"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { isHealthy, until } from "../harness/Deployment.ts"
import { type Installed, install, oldNode } from "../harness/Packages.ts"
import { send } from "../harness/Mail.ts"
import { freePort, portRange } from "../harness/Ports.ts"
import { fetchPublic } from "../harness/Public.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"
import { unlimited } from "../harness/Unlimited.ts"

let packages: Installed
beforeAll(() => {
  packages = install()
})
afterAll(() => packages.remove())

const root = path.join(import.meta.dirname, "..", "..")
const within = (name: string) => path.join(packages.folder, "node_modules", name)

describe.skipIf(process.platform === "win32")("the package svc", () => {
  it("contains everything that it needs, including licenses, and no path of a machine", () => {
    const { dependencies, engines, bin } = JSON.parse(readFileSync(within("@agent-identity/cli/package.json"), "utf8"))
    expect({ dependencies, engines, bin }).toEqual({
      dependencies: undefined,
      engines: { node: ">=20" },
      bin: { svc: "dist/main.mjs" },
    })
    for (const name of ["LICENSE", "README.md", "dist/console/index.html"])
      expect(existsSync(within(`@agent-identity/cli/${name}`))).toBe(true)
    expect(readFileSync(within("@agent-identity/cli/THIRD-PARTY-LICENSES.txt"), "utf8")).toMatch(
      /^effect \S+ \(MIT\)$/m,
    )
    for (const name of readdirSync(within("@agent-identity/cli/dist")).filter((one) => one.endsWith(".mjs"))) {
      const text = readFileSync(within(`@agent-identity/cli/dist/${name}`), "utf8")
      // Every module that a worker thread or a lazy command loads is in the package.
      for (const [, wanted] of text.matchAll(/(?:from|import\()\s*["'](\.\/[\w.-]+)["']/g)) {
        expect(existsSync(within(`@agent-identity/cli/dist/${wanted}`)), `${name} → ${wanted}`).toBe(true)
      }
      // The package does not contain the path of the machine that built it.
      expect(text.replaceAll(/^\/\/#region.*$/gm, "").includes(`${root}${path.sep}`), name).toBe(false)
    }
  })

  it.skipIf(oldNode === undefined)(
    "runs its commands on Node 20, and names the requirements of the service",
    async () => {
      const node = oldNode
      expect(await packages.run("svc", ["--version"], { node })).toMatchObject({ code: 0, out: `svc v${apiVersion}\n` })
      const help = await packages.run("svc", ["--help"], { node })
      expect(help).toMatchObject({ code: 0, err: "" })
      for (const name of ["serve", "tunnel", "login", "identity", "vault", "doctor"])
        expect(help.out).toContain(`  ${name} `)
      const lost = await packages.run("svc", ["whoami"], { node })
      expect(lost).toMatchObject({ code: 2, out: "" })
      expect(lost.err).toContain("run `svc login` or set SVC_KEY")
    },
  )
})

describe.skipIf(process.platform === "win32")("the service of the package @agent-identity/server", () => {
  it("runs as an ordinary user and serves the packed client", async () => {
    const [http, smtp, edge] = [await freePort(), await freePort(), await freePort()]
    const base = `http://localhost:${http}`
    const settings = {
      SVC_HTTP_PORT: String(http),
      SVC_SMTP_PORT: String(smtp),
      SVC_EDGE_PORT: String(edge),
      SVC_IMAP_PORT: "0",
      SVC_IMAPS_PORT: "0",
      SVC_SUBMISSION_PORT: "0",
      SVC_SUBMISSIONS_PORT: "0",
      SVC_OPS_PORT: "0",
      SVC_EDGE_TCP_PORTS: portRange(),
      ...unlimited,
    }
    const migrate = (...words: ReadonlyArray<string>) =>
      packages.run("svc-server", ["migrate", ...words], { env: settings, node: oldNode })
    expect(await migrate("--check")).toMatchObject({
      code: 1,
      out: expect.stringContaining("  0001_baseline\n"),
      err: "",
    })
    expect(await migrate()).toMatchObject({ code: 0, out: expect.stringContaining("  0001_baseline\n"), err: "" })
    expect(await migrate("--check")).toEqual({ code: 0, out: "The database is up to date.\n", err: "" })

    const server = packages.start("svc-server", [], { node: oldNode, env: settings })
    let output = ""
    for (const stream of [server.stdout, server.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
    const exited = once(server, "exit")
    try {
      await until(
        "the service",
        () => {
          if (server.exitCode !== null) throw new Error(output)
          return isHealthy(base)
        },
        120,
      )
      const { session } = await signUp(base)
      const env = { SVC_KEY: session, SVC_API_URL: base }
      const svc = async (...words: ReadonlyArray<string>) => {
        const run = () => packages.run("svc", [...words, "--json"], { env, node: oldNode })
        // A busy machine can answer that it is unavailable for a moment.
        const { code, out, err } = await eventually(run, (result) => !result.err.includes('"code": "unavailable"'))
        expect({ words, code, err }).toEqual({ words, code: 0, err: "" })
        return JSON.parse(out)
      }
      await svc("identity", "create", "ada")
      await eventually(
        () => call(base, "GET", "/api/identities/ada", { token: session }),
        ({ body }) => body.status === "ready",
      )
      await makeIdentity(base, session, "grace")
      expect((await svc("identity", "list")).identities).toHaveLength(2)

      // The message is long enough to be composed in a worker thread, and other worker threads judge the received message. They load
      // modules of the bundle by name.
      const token = session
      const address = "grace@mail.localhost"
      await call(base, "POST", "/api/identities/ada/allowed-recipients", { token, body: { address } })
      const body = { to: [address], subject: "From within", text: "Shall we? ".repeat(2_000) }
      expect((await call(base, "POST", "/api/identities/ada/messages/send", { token, body })).status).toBe(202)
      await send(smtp, { from: "ben@example.org", to: address, subject: "From outside", text: "We shall." })
      const arrived = await eventually(
        () => call(base, "GET", "/api/identities/grace/messages", { token }),
        (answer) => answer.body.messages.length === 2,
      )
      const subjects = arrived.body.messages.map(({ subject }: { subject: string }) => subject)
      expect(subjects.toSorted()).toEqual(["From outside", "From within"])
      const page = await fetch(`${base}/console/`)
      expect(page.status).toBe(200)
      expect(await page.text()).toContain("/console/assets/")
      expect((await fetch(`${base}/api/docs`)).status).toBe(200)
    } finally {
      server.kill("SIGTERM")
    }
    // The process got SIGINT and exited regularly.
    expect((await exited)[0], output).toBe(130)
    expect(output).not.toMatch(/a thread could not be started/)
  })
})

describe("the libraries @agent-identity/tunnel and @agent-identity/sdk", () => {
  let service: TestService
  beforeAll(async () => {
    service = await sharedService()
  })

  it("gives a program a public address", async () => {
    const { session } = await signUp(service.base)
    const { handle, secrets } = await makeIdentity(service.base, session)
    const program = path.join(packages.folder, "program.mjs")
    writeFileSync(
      program,
      `import { connectTunnel } from "@agent-identity/tunnel"
       const tunnel = connectTunnel({
         key: process.env.SVC_KEY,
         edge: "http://connect.tunnel.localhost:${service.edgePort}",
         handler: (request, response) => response.end("packed " + request.url),
       })
       console.log((await tunnel.ready).url)`,
    )
    const child = spawn(oldNode ?? process.execPath, [program], {
      env: { PATH: process.env["PATH"], SVC_KEY: secrets.identity_key },
      stdio: ["ignore", "pipe", "inherit"],
    })
    try {
      const [url] = (await once(child.stdout, "data")) as [Buffer]
      expect(url.toString().trim()).toBe(`http://${handle}.tunnel.localhost:${service.edgePort}`)
      expect((await fetchPublic(service.edgePort, handle, "/well")).body).toBe("packed /well")
    } finally {
      child.kill()
    }
  })

  it("of the SDK opens a tunnel without the checkout, on the oldest supported Node", async () => {
    const { session } = await signUp(service.base)
    const program = path.join(packages.folder, "sdk.mjs")
    writeFileSync(
      program,
      `import { createClient } from "@agent-identity/sdk"
       const packed = await createClient().createIdentity("packed-sdk")
       console.log((await packed.tunnel((request) => new Response("packed " + new URL(request.url).pathname))).url)`,
    )
    const child = spawn(oldNode ?? process.execPath, [program], {
      env: { PATH: process.env["PATH"], SVC_KEY: session, SVC_API_URL: service.base },
      stdio: ["ignore", "pipe", "inherit"],
    })
    try {
      const [url] = (await once(child.stdout, "data")) as [Buffer]
      expect(url.toString().trim()).toBe(`http://packed-sdk.tunnel.localhost:${service.edgePort}`)
      expect((await fetchPublic(service.edgePort, "packed-sdk", "/well")).body).toBe("packed /well")
    } finally {
      child.kill()
    }
  })

  it("has complete declarations: a strict program compiles, and a wrong one does not", () => {
    symlinkSync(path.join(root, "node_modules", "@types"), path.join(packages.folder, "node_modules", "@types"))
    const write = (name: string, options: string) =>
      writeFileSync(
        path.join(packages.folder, name),
        `import { connectTunnel, type Tunnel } from "@agent-identity/tunnel"
         import { createClient, type Message, type OpenTunnel } from "@agent-identity/sdk"
         export const tunnel: Tunnel = connectTunnel({ key: "k", edge: "http://localhost", ${options} })
         export const message: Promise<Message | undefined> = createClient().identity("ada").waitForMessage()
         export const open: Promise<OpenTunnel> = createClient().identity("ada").tunnel(3000, { connectTunnel })`,
      )
    write("program.ts", "port: 3000")
    write("wrong.ts", 'port: "3000"')
    const flags = ["--strict", "--noEmit", "--module", "nodenext", "--types", "node", "--skipLibCheck", "false"]
    const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc")
    const words = [compiler, ...flags, "--pretty", "false", "program.ts", "wrong.ts"]
    const { stdout } = spawnSync(process.execPath, words, { cwd: packages.folder, encoding: "utf8" })
    const errors = stdout.split("\n").filter((line) => line.includes(": error "))
    expect(errors).toEqual([expect.stringMatching(/^wrong\.ts\(3,\d+\): error TS2322: /)])
  })
})
