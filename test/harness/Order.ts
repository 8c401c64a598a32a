/** Which file runs when: as Vitest has it, but for those that would come last and keep one worker busy while others idle. */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** It waits for packages of its own, which the first run fetches meanwhile. */
const inTheMiddle = "connectors/bluesky.test.ts"

export default class Order extends BaseSequencer {
  override async sort(files: Array<TestSpecification>) {
    const sorted = await super.sort(files)
    const late = sorted.filter(({ moduleId }) => moduleId.endsWith(inTheMiddle))
    const others = sorted.filter((file) => !late.includes(file))
    return others.toSpliced(others.length / 2, 0, ...late)
  }
}
