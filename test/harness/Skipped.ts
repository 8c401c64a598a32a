/** Prints at the end of a run which files had skipped tests, and the command that installs what they need. */
import * as path from "node:path"
import type { Reporter, TestModule } from "vitest/node"
import { has, type ProgramName, programs } from "./Programs.ts"

export default class Skipped implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>) {
    const skipped = modules.flatMap((module) => {
      const count = [...module.children.allTests("skipped")].length
      return count === 0 ? [] : [`  ${path.relative(process.cwd(), module.moduleId)}: ${count}`]
    })
    if (skipped.length === 0) return
    console.log(`\nSkipped tests by file:\n${skipped.sort().join("\n")}`)
    const names = Object.keys(programs) as Array<ProgramName>
    const missing = names.filter((name) => !has(name))
    if (missing.length === 0) return
    const packages = [...new Set(missing.map((name) => programs[name].packages))].join(" ")
    console.log(`Not installed: ${missing.join(", ")}. On Debian, most tests that need them run after:`)
    console.log(`  apt install ${packages}`)
    console.log("Postfix, Exim and OpenSMTPD exclude each other; their tests also need root.")
  }
}
