import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { symlinkSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { type Installed, install, oldNode } from "../harness/Packages.ts"
import { ask } from "../harness/Public.ts"
import { startService, type TestService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
let packages: Installed
let service: TestService
beforeAll(async () => {
  packages = install()
  service = await startService()
}, 180_000)
afterAll(async () => {
  await service.stop()
  packages.remove()
})

it("the package @svc/tunnel gives a program a public address", { timeout: 60_000 }, async () => {
  const { session } = await signUp(service.base)
  const { handle, secrets } = await makeIdentity(service.base, session)
  const program = path.join(packages.folder, "program.mjs")
  writeFileSync(
    program,
    `import { connectTunnel } from "@svc/tunnel"
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
    expect((await ask(service.edgePort, handle, "/well")).body).toBe("packed /well")
  } finally {
    child.kill()
  }
})

it("its declarations are whole: a strict program compiles against them, and a wrong one does not", () => {
  symlinkSync(path.join(root, "node_modules", "@types"), path.join(packages.folder, "node_modules", "@types"))
  const compile = (options: string) => {
    const program = path.join(packages.folder, "program.ts")
    writeFileSync(
      program,
      `import { connectTunnel, type Tunnel } from "@svc/tunnel"
       export const tunnel: Tunnel = connectTunnel({ key: "k", edge: "http://localhost", ${options} })`,
    )
    const flags = ["--strict", "--noEmit", "--module", "nodenext", "--types", "node", "--skipLibCheck", "false"]
    return execFileSync(
      process.execPath,
      [path.join(root, "node_modules", "typescript", "bin", "tsc"), ...flags, program],
      { cwd: packages.folder, stdio: "pipe" },
    )
  }
  expect(() => compile("port: 3000")).not.toThrow()
  expect(() => compile('port: "3000"')).toThrow()
})
