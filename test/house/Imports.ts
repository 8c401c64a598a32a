/** The graph of imports between folders: each folder directly below a package's `src`, or a file directly in `src`. */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"

export const root = path.join(import.meta.dirname, "..", "..")

export const sources = (): ReadonlyArray<string> =>
  globSync(["packages/*/src/**/*.{ts,tsx}", "test/**/*.ts", "scripts/**/*.{ts,mjs}"], { cwd: root }).filter(
    // Generated code is not for readers.
    (file) => !file.includes("node_modules") && path.basename(file) !== "generated.ts",
  )

/** Returns the folder of a file: `packages/cluster/src/mail/Mailbox.ts` is in `cluster/mail`. */
const folderOf = (file: string): string | undefined => {
  const [, pack, rest] = /^packages\/([^/]+)\/src\/(.+)$/.exec(file) ?? []
  return pack === undefined ? undefined : `${pack}/${rest!.split("/")[0]!}`
}

/** Returns the file that an import refers to, as a path below the root; undefined for external packages. */
const target = (file: string, specifier: string): string | undefined => {
  if (specifier.startsWith(".")) return path.join(path.dirname(file), specifier)
  const [, pack, rest] = /^@svc\/([^/]+)\/(.+)$/.exec(specifier) ?? []
  return pack === undefined ? undefined : `packages/${pack}/src/${rest}.ts`
}

export const imports = (file: string, text = readFileSync(path.join(root, file), "utf8")): ReadonlyArray<string> =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*["']([^"']+)["']/g)].flatMap(
    ([, specifier]) => target(file, specifier!) ?? [],
  )

/** Returns each folder with the folders that it imports. */
export const folders = (files: ReadonlyArray<string>): ReadonlyMap<string, ReadonlySet<string>> => {
  const graph = new Map<string, Set<string>>()
  for (const file of files) {
    const from = folderOf(file)
    if (from === undefined) continue
    const leads = graph.get(from) ?? new Set()
    graph.set(from, leads)
    for (const to of imports(file)) {
      const folder = folderOf(to)
      if (folder !== undefined && folder !== from) leads.add(folder)
    }
  }
  return graph
}

/** Returns a circular path of imports between folders; undefined if there is none. */
export const circle = (graph: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyArray<string> | undefined => {
  const done = new Set<string>()
  const visit = (at: string, way: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
    if (way.includes(at)) return [...way.slice(way.indexOf(at)), at]
    if (done.has(at)) return undefined
    for (const next of graph.get(at) ?? []) {
      const found = visit(next, [...way, at])
      if (found !== undefined) return found
    }
    done.add(at)
    return undefined
  }
  for (const folder of graph.keys()) {
    const found = visit(folder, [])
    if (found !== undefined) return found
  }
  return undefined
}
