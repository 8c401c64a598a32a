/** Generated API clients compile under `tsc --strict` and work against the service. */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { createClient } from "@hey-api/openapi-ts"
import { document } from "@svc/api/openapi/Document"
import openapiTS, { astToString } from "openapi-typescript"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { type OwnService, startService } from "../harness/Service.ts"

const run = promisify(execFile)
const root = path.join(import.meta.dirname, "..", "..")
/** The folder is outside `node_modules`, whose files the compiler does not check. */
const directory = mkdtempSync(path.join(os.tmpdir(), "svc-clients-"))
const generated = path.join(directory, "generated")
/** The workspace's compiler is several times faster than the one that the generators bundle. */
const tsc = path.join(root, "node_modules", "typescript", "bin", "tsc")

let service: OwnService
let session: string
let handle: string
beforeAll(async () => {
  mkdirSync(path.join(generated, "fetch"), { recursive: true })
  cpSync(path.join(import.meta.dirname, "clients"), directory, { recursive: true })
  symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
  writeFileSync(path.join(directory, "package.json"), JSON.stringify({ type: "module" }))
  const spec = JSON.parse(JSON.stringify(document))
  writeFileSync(path.join(generated, "fetch", "schema.d.ts"), astToString(await openapiTS(spec)))
  await createClient({
    input: spec,
    output: { path: path.join(generated, "sdk"), importFileExtension: ".js" },
    logs: { level: "silent" },
  })
  writeFileSync(
    path.join(directory, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        target: "es2024",
        module: "esnext",
        moduleResolution: "bundler",
        lib: ["es2024", "dom", "dom.iterable"],
        types: ["node"],
        typeRoots: [path.join(root, "node_modules", "@types")],
        strict: true,
        outDir: "out",
        rootDir: ".",
      },
      files: ["fetch.ts", "sdk.ts"],
    }),
  )
  // The generators block the process for seconds, in which a running service would lose its shards.
  service = await startService()
  session = (await signUp(service.base)).session
  handle = (await makeIdentity(service.base, session)).handle
})
afterAll(async () => {
  await service.stop()
  rmSync(directory, { recursive: true, force: true })
})

describe("Generated client", () => {
  it("of each generator compiles under --strict", async () => {
    const { stdout } = await run(process.execPath, [tsc, "-p", directory]).catch((error: { stdout: string }) => error)
    expect(stdout).toBe("")
  })

  it.each(["fetch", "sdk"])("%s works against the service", async (program) => {
    const compiled = path.join(directory, "out", `${program}.js`)
    const { stdout } = await run(process.execPath, [compiled, service.base, session, handle])
    expect(stdout).toBe("walked\n")
  })
})
