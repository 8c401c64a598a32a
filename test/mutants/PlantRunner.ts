/** Runs the tests of a planted bug until one of them has noticed it. */
import { existsSync } from "node:fs"
import * as path from "node:path"
import { type RunnerTestCase, TestRunner } from "vitest"

const noticed = path.join(process.env["SVC_PLANTS"]!, `noticed-${process.env["SVC_PLANT"]}`)

export default class PlantRunner extends TestRunner {
  async runTask(test: RunnerTestCase): Promise<void> {
    if (!existsSync(noticed)) await TestRunner.getTestFn(test)()
  }
}
