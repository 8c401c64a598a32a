/** The Python SDK against the service: its own tests in `python/`, its types, its guide and its packages. */
import { execFile as execFileCallback } from "node:child_process"
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { signUp } from "../harness/Client.ts"
import { has } from "../harness/Programs.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { operations } from "./Operations.ts"

const execFile = promisify(execFileCallback)
const root = path.join(import.meta.dirname, "..", "..")
const sources = path.join(root, "packages", "sdk-python")
const tests = path.join(import.meta.dirname, "python")

let service: TestService
let session: string
let folder: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  folder = mkdtempSync(path.join(os.tmpdir(), "svc-sdk-python-"))
  writeFileSync(path.join(folder, "operations.json"), JSON.stringify(operations))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const env = () => ({
  PATH: process.env["PATH"],
  PYTHONPATH: path.join(sources, "src"),
  PYTHONDONTWRITEBYTECODE: "1",
  MYPYPATH: path.join(sources, "src"),
  SVC_KEY: session,
  SVC_API_URL: service.base,
  SVC_OPERATIONS: path.join(folder, "operations.json"),
  SVC_COMMAND: `${process.execPath} ${path.join(root, "packages", "cli", "src", "main.mjs")}`,
})

/** Runs Python. A failure has what the program printed. */
const python = async (words: ReadonlyArray<string>, cwd: string): Promise<string> => {
  const { stdout, stderr } = await execFile("/usr/bin/python3", words, { cwd, env: env() }).catch(
    (error: Error & { stdout: string; stderr: string }) => {
      throw new Error(`${words.join(" ")}\n${error.stdout}${error.stderr}`)
    },
  )
  return stdout + stderr
}

const guide = () => {
  const text = readFileSync(path.join(root, "docs", "sdk-python.md"), "utf8")
  return [...text.matchAll(/```python\n([^`]*(?:`[^`]+`[^`]*)*)```/g)].map(([, program]) => program!)
}

const modules = ["test_sdk", "test_async", "test_agent", "test_options"]

/** Runs each program in its own namespace. All use one interpreter, because starting one takes longer than the programs. */
const runEach = `
import json, pathlib
for number, program in enumerate(json.loads(pathlib.Path("guide.json").read_text())):
    exec(compile(program, f"program {number} of the guide", "exec"), {"__name__": "__main__"})
`

describe.skipIf(!has("pythonHttpx"))("Python SDK", () => {
  it("passes its own tests", async () => {
    expect(await python(["-m", "unittest", ...modules], tests)).toMatch(/^OK$/m)
  })

  it("has a guide with programs that run", async () => {
    const programs = guide()
    expect(programs.length).toBeGreaterThanOrEqual(7)
    writeFileSync(path.join(folder, "guide.json"), JSON.stringify(programs))
    await python(["-W", "error", "-c", runEach], folder)
  })
})

describe.skipIf(!has("pythonHttpx", "mypy"))("Python SDK", () => {
  it("is free of errors under mypy --strict, and so are its tests and its guide", async () => {
    const files = [
      path.join(sources, "src", "agent_identity"),
      ...["harness", ...modules].map((name) => path.join(tests, `${name}.py`)),
      ...guide().map((program, index) => {
        const file = path.join(folder, `guide${index}.py`)
        writeFileSync(file, program)
        return file
      }),
    ]
    const options = [
      "--strict",
      "--python-version",
      "3.10",
      "--cache-dir",
      path.join(root, "node_modules", ".cache", "mypy"),
    ]
    expect(await python(["-m", "mypy", ...options, ...files], tests)).toContain("Success")
  })
})

describe.skipIf(!has("pythonBuild"))("Python SDK", () => {
  it("is built as a wheel and an archive with its types and license", async () => {
    const copy = path.join(folder, "sdk-python")
    cpSync(sources, copy, { recursive: true })
    await python(
      ["-m", "build", "--no-isolation", "--skip-dependency-check", "--outdir", path.join(folder, "dist"), copy],
      folder,
    )
    const { version, license } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))
    const names = [`agent_identity-${version}-py3-none-any.whl`, `agent_identity-${version}.tar.gz`]
    expect(readdirSync(path.join(folder, "dist")).toSorted()).toEqual(names)
    const wheel = path.join(folder, "dist", names[0]!)
    const contents = await python(["-m", "zipfile", "-l", wheel], folder)
    for (const file of ["agent_identity/py.typed", "agent_identity/types.py", "LICENSE"])
      expect(contents).toContain(file)
    await python(["-m", "zipfile", "-e", wheel, path.join(folder, "wheel")], folder)
    const metadata = readFileSync(path.join(folder, "wheel", `agent_identity-${version}.dist-info`, "METADATA"), "utf8")
    expect(metadata).toMatch(new RegExp(`^License(-Expression)?: ${license}$`, "m"))
    expect(metadata).toMatch(/^Requires-Python: >=3\.10$/m)
  })
})

it("has the license of the repository", () => {
  const text = (folder: string) => readFileSync(path.join(folder, "LICENSE"), "utf8")
  expect(text(sources)).toBe(text(root))
})
