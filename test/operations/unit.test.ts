/** The systemd unit that an installation prints for itself. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { UnitFailed, unitOf } from "@svc/cli/unit/Command"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"

const unit = readFileSync(path.join(import.meta.dirname, "..", "..", "deploy", "svc.service"), "utf8")

/** A package as npm installs it, with a link to its program in a folder for programs. */
let prefix: string
let link: string
let program: string
beforeAll(() => {
  prefix = realpathSync(mkdtempSync(path.join(os.tmpdir(), "svc-unit-")))
  const folder = path.join(prefix, "lib", "node_modules", "@agent-identity", "server")
  mkdirSync(path.join(folder, "deploy"), { recursive: true })
  mkdirSync(path.join(prefix, "bin"))
  program = path.join(folder, "main.mjs")
  writeFileSync(program, "")
  writeFileSync(path.join(folder, "deploy", "svc.service"), unit)
  link = path.join(prefix, "bin", "svc-server")
  symlinkSync(program, link)
})
afterAll(() => rmSync(prefix, { recursive: true }))

const made = (started: string, hidden: ReadonlyArray<string> = []) =>
  Effect.runPromise(Effect.result(unitOf(started, "/usr/bin/node", hidden)))

it("starts the program that created it, and otherwise equals the unit of the package", async () => {
  const start = /^ExecStart=.*$/m
  const printed = await made(link)
  expect(printed).toMatchObject({ _tag: "Success", success: unit.replace(start, `ExecStart=${link} serve`) })
  // A file that is not executable itself needs Node to run.
  expect(await made(program)).toMatchObject({
    success: unit.replace(start, `ExecStart=/usr/bin/node ${program} serve`),
  })
})

it("is refused if the service cannot read its program, and without systemd", async () => {
  expect(await made(link, [`${prefix}/lib/`])).toMatchObject({ failure: expect.any(UnitFailed) })
  expect(await made(path.join(prefix, "bin"))).toMatchObject({
    failure: { message: expect.stringContaining("svc-server") },
  })
})
