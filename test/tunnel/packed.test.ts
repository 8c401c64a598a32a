import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { ask } from "../harness/Public.ts"
import { startService, type TestService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const home = mkdtempSync(path.join(os.tmpdir(), "svc-packed-"))
let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await service.stop()
  rmSync(home, { recursive: true, force: true })
})

it("the library that npm packs gives a program a public address", { timeout: 60_000 }, async () => {
  // Packed from a copy, since packing changes the folder for a moment.
  for (const name of ["tsconfig.json", "scripts", "packages/tunnel-edge"]) {
    cpSync(path.join(root, name), path.join(home, "source", name), { recursive: true })
  }
  symlinkSync(path.join(root, "node_modules"), path.join(home, "source", "node_modules"))
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", home], {
    cwd: path.join(home, "source", "packages", "tunnel-edge"),
    encoding: "utf8",
  }).trim()
  const installed = path.join(home, "user", "node_modules", "@svc", "tunnel-edge")
  mkdirSync(installed, { recursive: true })
  execFileSync("tar", ["xzf", path.join(home, packed), "-C", installed, "--strip-components", "1"])
  symlinkSync(path.join(root, "node_modules", "ws"), path.join(home, "user", "node_modules", "ws"))

  const { session } = await signUp(service.base)
  const { handle, secrets } = await makeIdentity(service.base, session)
  const program = path.join(home, "user", "program.mjs")
  writeFileSync(
    program,
    `import { connectTunnel } from "@svc/tunnel-edge/agent/Agent"
     const tunnel = connectTunnel({
       key: process.env.SVC_KEY,
       edge: "http://connect.tunnel.localhost:${service.edgePort}",
       handler: (request, response) => response.end("packed " + request.url),
     })
     console.log((await tunnel.ready).url)`,
  )
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env["PATH"], SVC_KEY: secrets.identity_key },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const [url] = (await once(child.stdout, "data")) as [Buffer]
  expect(url.toString().trim()).toBe(`http://${handle}.tunnel.localhost:${service.edgePort}`)
  expect((await ask(service.edgePort, handle, "/well")).body).toBe("packed /well")
  child.kill()
})
