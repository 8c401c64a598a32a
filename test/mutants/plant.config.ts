/**
 * Configuration of Vitest that runs tests with planted bugs: one project for each bug, which replaces the text of one module
 * when it is loaded. `SVC_PLANTS` is the folder of a batch: `bugs.json` has its bugs, and the files `began-<id>`,
 * `ended-<id>` and `noticed-<id>` are the results. See {@link file://./InMemory.ts}.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { defineConfig } from "vitest/config"
import type { Reporter, TestModule, Vite } from "vitest/node"
import base from "../../vitest.config.ts"
import { idOf, type InMemory, maxTestMillis } from "./InMemory.ts"
import { type Mutant, pathOf, planted, root } from "./Mutant.ts"

const folder = process.env["SVC_PLANTS"]!
const bugs: ReadonlyArray<InMemory> = JSON.parse(readFileSync(path.join(folder, "bugs.json"), "utf8"))
const expected = new Map(bugs.map((bug) => [idOf(bug), bug.files.length]))
const mark = (what: string, content = "") => {
  const file = path.join(folder, what)
  if (!existsSync(file)) writeFileSync(file, content)
}

const plant = (mutant: Mutant): Vite.Plugin => {
  const isPlanted = (id: string) => id.split("?")[0] === path.join(root, pathOf(mutant))
  return {
    name: "plant",
    enforce: "pre",
    transform: (_, id) => (isPlanted(id) ? { code: planted(mutant), map: null } : undefined),
    configureVitest: ({ defineCacheKeyGenerator }) =>
      defineCacheKeyGenerator(({ id }) => (isPlanted(id) ? false : undefined)),
    // The other modules are transformed once for all bugs.
    api: { vitest: { ignoreFsModuleCache: true } },
  }
}

const ended = new Map<string, number>()
const reporter: Reporter = {
  onTestModuleStart: ({ project }) => mark(`began-${project.name}`),
  onTestCaseResult: (test) => {
    if (test.result().state === "failed")
      mark(`noticed-${test.project.name}`, `${test.module.relativeModuleId}: ${test.fullName}`)
  },
  onTestModuleEnd: (module: TestModule) => {
    const { name } = module.project
    // A hook that failed, or a module that could not be loaded.
    if (module.state() === "failed") mark(`noticed-${name}`, module.relativeModuleId)
    ended.set(name, (ended.get(name) ?? 0) + 1)
    if (ended.get(name) === expected.get(name)) mark(`ended-${name}`)
  },
}

const { globalSetup, reporters: _, include: __, maxWorkers: ___, ...test } = base.test!
export default defineConfig({
  root,
  test: {
    ...(globalSetup === undefined ? {} : { globalSetup }),
    reporters: [reporter],
    maxWorkers: 2,
    // A bug may throw outside of a test.
    dangerouslyIgnoreUnhandledErrors: true,
    projects: bugs.map((bug) => ({
      root,
      plugins: bug.mutant === undefined ? [] : [plant(bug.mutant)],
      test: {
        ...test,
        name: idOf(bug),
        include: [...bug.files],
        runner: "./test/mutants/PlantRunner.ts",
        env: { SVC_PLANT: idOf(bug) },
        testTimeout: maxTestMillis,
        hookTimeout: maxTestMillis,
      },
    })),
  },
})
