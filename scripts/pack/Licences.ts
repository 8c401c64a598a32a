/** The licences of what is in a bundle, as their authors ask: the text goes where the code goes. */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"

/** The folder of the package that a module is of; undefined for our own. */
const packageOf = (module: string): string | undefined =>
  /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module)?.[0]

interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string | { readonly type: string }
}

const textIn = (folder: string): string => {
  const name = readdirSync(folder).find((file) => /^(licen[cs]e|copying)(\.|-|$)/i.test(file))
  return name === undefined ? "" : readFileSync(path.join(folder, name), "utf8").trim()
}

/** One paragraph per package, by name. Throws where a package says nothing of its licence. */
export const licences = (modules: ReadonlyArray<string>): string => {
  const folders = [...new Set(modules.flatMap((module) => packageOf(module) ?? []))]
  const entries = folders
    .filter((folder) => existsSync(path.join(folder, "package.json")))
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as Manifest
      const kind = typeof license === "object" ? license.type : license
      const text = textIn(folder)
      if (kind === undefined && text === "") throw new Error(`${name} has no licence`)
      return {
        name,
        entry: [`${name} ${version} (${kind ?? "see below"})`, text].filter((one) => one !== "").join("\n\n"),
      }
    })
  return `${entries
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map(({ entry }) => entry)
    .join(`\n\n${"-".repeat(80)}\n\n`)}\n`
}
