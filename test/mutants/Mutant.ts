/** Bugs that an engineer could make, each as one replacement in one source file. */
import { readFileSync } from "node:fs"
import * as path from "node:path"

export const root = path.join(import.meta.dirname, "..", "..")

export interface Mutant {
  /** Relative to `packages/`. */
  readonly file: string
  /** Text that occurs exactly once in the file. */
  readonly from: string
  readonly to: string
  /** What a user or operator would suffer. */
  readonly bug: string
  /** Tests that should notice: paths below `test/`, of folders with a slash at the end, of files without `.test.ts`. */
  readonly tests: ReadonlyArray<string>
}

/** Planted bugs by name. Names are unique over all lists. */
export type Mutants = Readonly<Record<string, Mutant>>

export const pathOf = ({ file }: Mutant): string => path.join("packages", file)
export const testsOf = ({ tests }: Mutant): ReadonlyArray<string> =>
  tests.map((name) => (name.endsWith("/") ? `test/${name}` : `test/${name}.test.ts`))

/** Returns the source with the bug planted. Throws if the text to replace does not occur exactly once. */
export const planted = (mutant: Mutant, folder: string = root): string => {
  const text = readFileSync(path.join(folder, pathOf(mutant)), "utf8")
  const found = text.split(mutant.from).length - 1
  if (found !== 1) throw new Error(`${pathOf(mutant)}: the text to replace occurs ${found} times, not once`)
  return text.replace(mutant.from, () => mutant.to)
}
