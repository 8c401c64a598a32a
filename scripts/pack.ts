/**
 * Makes the npm packages as tarballs in a folder (`dist`, or the first argument):
 *
 * - `@agent-identity/cli`: the command `svc`, whole, without dependencies: client, tunnel and service.
 * - `@agent-identity/server`: the command `svc-server`: `svc` with what the service runs on, the embedded PostgreSQL and a
 *   Node for machines with an older one.
 * - `@agent-identity/tunnel`: the agent's end of a tunnel as a library.
 * - `@agent-identity/sdk`: the client of the API for programs.
 *
 * With Python's `build` and `hatchling` (Debian: python3-build, python3-hatchling), it also makes the Python package
 * `agent-identity` as a wheel and an archive.
 */
import { execFileSync, spawnSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
  readdirSync,
  existsSync,
} from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { entries } from "../packages/cli/src/Bundle.mjs"
import { bundle, root } from "./Bundling.ts"
import { packedReadme, type Repository } from "./PackedReadme.ts"
import { dist } from "../packages/console/sources.mjs"
import { dist as site } from "../packages/site/sources.mjs"

/** Returns the folder of the package that a module belongs to; undefined for our own modules. */
const packageOf = (module: string): string | undefined =>
  /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(module)?.[0]

interface DependencyManifest {
  readonly name: string
  readonly version: string
  readonly license?: string | { readonly type: string }
}

const textIn = (folder: string): string => {
  const name = readdirSync(folder).find((file) => /^(licen[cs]e|copying)(\.|-|$)/i.test(file))
  return name === undefined ? "" : readFileSync(path.join(folder, name), "utf8").trim()
}

/** Returns the licence texts of the bundled packages, sorted by name, as their authors require. Throws if a package has no licence. */
const licences = (modules: ReadonlyArray<string>): string => {
  const folders = [...new Set(modules.flatMap((module) => packageOf(module) ?? []))]
  const entries = folders
    .filter((folder) => existsSync(path.join(folder, "package.json")))
    .map((folder) => {
      const { name, version, license } = JSON.parse(
        readFileSync(path.join(folder, "package.json"), "utf8"),
      ) as DependencyManifest
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

/** Names of the files below {@link dist} that belong to the latest build of the console; older assets are left out. */
const consoleFiles = (): ReadonlyArray<string> => {
  const made = new Set(JSON.parse(readFileSync(path.join(dist, "own.json"), "utf8")) as ReadonlyArray<string>)
  return readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "own.json" && entry.name !== ".stamp")
    .map((entry) => path.relative(dist, path.join(entry.parentPath, entry.name)))
    .filter((name) => !name.startsWith("assets") || made.has(path.basename(name)))
}

/** Packages whose code the documentation site contains. */
const siteModules = () =>
  ["vitepress", "vue", "@vue/shared", "@vueuse/core", "minisearch", "mark.js", "focus-trap", "tabbable"].map((name) =>
    path.join(root, "node_modules", name, "package.json"),
  )

/** The oldest supported Node. */
const oldestNode = "20"

const target = path.resolve(process.argv[2] ?? path.join(root, "dist"))
const staging = mkdtempSync(path.join(os.tmpdir(), "svc-pack-"))

interface Manifest {
  readonly version: string
  readonly license: string
  readonly description: string
  readonly engines: { readonly node: string }
  readonly repository?: Repository
  readonly optionalDependencies: Readonly<Record<string, string>>
}

const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as Manifest
const { version, license, engines } = manifest

/** Names are kept, so that stack traces in logs are readable. */
const minify = { mangle: false, compress: true, codegen: true }

const packed = path.join(root, "packages", "cli", "src", "packed")

/** Creates the folder of a package with the files that all packages have. */
const begin = (name: string, own: object): string => {
  const folder = path.join(staging, name.replaceAll(/[@/]/g, "-"))
  mkdirSync(folder, { recursive: true })
  cpSync(path.join(root, "LICENSE"), path.join(folder, "LICENSE"))
  writeFileSync(
    path.join(folder, "package.json"),
    `${JSON.stringify({ name, version, license, type: "module", engines, ...own }, null, 2)}\n`,
  )
  return folder
}

/** Writes a page of the documentation as the README of the package. */
const addReadme = (folder: string, document = "docs/install.md") => {
  const text = readFileSync(path.join(root, document), "utf8")
  const { repository } = manifest
  writeFileSync(path.join(folder, "README.md"), packedReadme(text, { document, folder, repository }))
}

const executable = (from: string, to: string) => {
  cpSync(from, to)
  chmodSync(to, 0o755)
}

const makeCommand = async () => {
  const folder = begin("@agent-identity/cli", {
    description: manifest.description,
    bin: { svc: "dist/main.mjs" },
    exports: { "./main": "./dist/main.mjs", "./package.json": "./package.json" },
  })
  const modules = await bundle({ entries, folder: path.join(folder, "dist"), target: `node${oldestNode}`, minify })
  executable(path.join(packed, "main.mjs"), path.join(folder, "dist", "main.mjs"))
  cpSync(path.join(packed, "OtherNode.mjs"), path.join(folder, "dist", "OtherNode.mjs"))
  // Built if its sources changed; the service serves the files next to it.
  execFileSync(process.execPath, [path.join(root, "packages", "console", "build.ts")], { stdio: "inherit" })
  for (const name of consoleFiles()) cpSync(path.join(dist, name), path.join(folder, "dist", "console", name))
  // The service serves its documentation, as a site and as Markdown, and the skill from here.
  execFileSync(process.execPath, [path.join(root, "packages", "site", "build.ts")], { stdio: "inherit" })
  cpSync(site, path.join(folder, "dist", "site"), { recursive: true })
  for (const name of globSync(["**/*.md", "sections.json"], { cwd: path.join(root, "docs") })) {
    cpSync(path.join(root, "docs", name), path.join(folder, "dist", "docs", name))
  }
  cpSync(path.join(root, "packages", "skill", "SKILL.md"), path.join(folder, "dist", "docs", "SKILL.md"))
  writeFileSync(path.join(folder, "THIRD-PARTY-LICENSES.txt"), licences([...modules, ...siteModules()]))
  addReadme(folder)
  return folder
}

const makeServer = () => {
  const folder = begin("@agent-identity/server", {
    description: `${manifest.description} Includes the database and Node.`,
    bin: { "svc-server": "main.mjs" },
    dependencies: { "@agent-identity/cli": version },
    optionalDependencies: manifest.optionalDependencies,
  })
  executable(path.join(packed, "server.mjs"), path.join(folder, "main.mjs"))
  cpSync(path.join(root, "deploy"), path.join(folder, "deploy"), { recursive: true })
  addReadme(folder)
  return folder
}

/** Makes a library: one bundle, and the declarations of its sources. `main` is the module under `src`, without `.ts`. */
const makeLibrary = async (name: string, description: string, source: string, main: string) => {
  const entry = path.basename(main)
  const folder = begin(name, {
    description,
    sideEffects: false,
    exports: { ".": { types: `./types/${main}.d.ts`, default: `./dist/${entry}.mjs` } },
  })
  const modules = await bundle({
    entries: { [entry]: path.join(source, "src", `${main}.ts`) },
    folder: path.join(folder, "dist"),
    target: `node${oldestNode}`,
    minify,
  })
  const types = path.join(folder, "types")
  const options = ["-p", path.join(source, "tsconfig.pack.json"), "--emitDeclarationOnly", "--outDir", types]
  execFileSync(process.execPath, [path.join(root, "node_modules", "typescript", "bin", "tsc"), ...options], {
    stdio: "inherit",
  })
  // Declarations import each other's source files, which are JavaScript in the package.
  for (const file of globSync("**/*.d.ts", { cwd: types }).map((one) => path.join(types, one))) {
    writeFileSync(file, readFileSync(file, "utf8").replaceAll(/(from "\.[^"]*)\.ts"/g, '$1.js"'))
  }
  writeFileSync(path.join(folder, "THIRD-PARTY-LICENSES.txt"), licences(modules))
  return folder
}

const makeTunnel = () =>
  makeLibrary(
    "@agent-identity/tunnel",
    "A public address for a program behind a firewall: the agent's end of a tunnel.",
    path.join(root, "packages", "tunnel-edge"),
    "agent/Agent",
  )

const makeSdk = async () => {
  const source = path.join(root, "packages", "sdk")
  const folder = await makeLibrary(
    "@agent-identity/sdk",
    "The client of the Agent Identity Service: a name, a mailbox, a tunnel and a vault for software agents.",
    source,
    "index",
  )
  addReadme(folder, "docs/sdk.md")
  return folder
}

/** Makes the packages for PyPI. `build` works on a copy, because it writes into the folder. */
const makePython = () => {
  const python = (...words: ReadonlyArray<string>) => spawnSync("python3", words, { encoding: "utf8" })
  if (python("-c", "import build, hatchling").status !== 0) {
    console.error("The Python package was not made: python3 has no modules build and hatchling")
    return
  }
  const folder = path.join(staging, "sdk-python")
  cpSync(path.join(root, "packages", "sdk-python"), folder, { recursive: true })
  // Debian's hatchling names a dependency that building does not need.
  const options = ["--no-isolation", "--skip-dependency-check", "--outdir", target]
  const { status, stderr } = python("-m", "build", ...options, folder)
  if (status !== 0) throw new Error(`The Python package could not be made: ${stderr}`)
  for (const name of readdirSync(target).filter((one) => one.startsWith("agent_identity-"))) {
    console.log(path.join(target, name))
  }
}

try {
  mkdirSync(target, { recursive: true })
  makePython()
  const folders = [await makeCommand(), makeServer(), await makeTunnel(), await makeSdk()]
  const npm = process.env["npm_execpath"]
  const [program, words] = npm === undefined ? ["npm", []] : [process.execPath, [npm]]
  const names = execFileSync(
    program,
    [...words, "pack", "--silent", "--ignore-scripts", "--pack-destination", target, ...folders],
    {
      encoding: "utf8",
      shell: process.platform === "win32" && npm === undefined,
    },
  )
  for (const name of names.trim().split(/\r?\n/)) console.log(path.join(target, name))
} finally {
  rmSync(staging, { recursive: true, force: true })
}
