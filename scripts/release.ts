/**
 * `npm run release`: makes everything that a release publishes from the tag of this commit, into `dist` or the first argument, and checks
 * it without the network: npm packages, Python package, documentation site, image, and a list of checksums. `--rehearsal` works without
 * the tag and on a changed checkout. Nothing is published; CONTRIBUTING.md has the steps.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { generate } from "./sdk.ts"

const root = path.resolve(import.meta.dirname, "..")

export interface Checkout {
  readonly version: string
  /** Tags of this commit. */
  readonly tags: ReadonlyArray<string>
  /** Changed files, as `git status --porcelain` prints them. */
  readonly changed: string
  readonly changelog: string
  /** Generated files of the SDKs that differ from what the contract gives. */
  readonly stale: ReadonlyArray<string>
}

/** Returns the reasons why this checkout cannot be released. */
export const blockersOf = ({ version, tags, changed, changelog, stale }: Checkout): ReadonlyArray<string> => [
  ...(tags.includes(`v${version}`) ? [] : [`This commit has no tag v${version}: git tag -s v${version}`]),
  ...(changed === "" ? [] : [`The checkout has changes that are not committed:\n${changed}`]),
  ...(changelog.includes(`\n## ${version} `) ? [] : [`CHANGELOG.md has no section "## ${version} - <date>".`]),
  ...(stale.length === 0 ? [] : [`Generated files are not current (node scripts/sdk.ts): ${stale.join(", ")}`]),
]

const read = (file: string) => (existsSync(file) ? readFileSync(file, "utf8") : "")
const git = (...words: ReadonlyArray<string>) =>
  spawnSync("git", words, { cwd: root, encoding: "utf8" }).stdout?.trim() ?? ""

const checkout = (): Checkout => ({
  version: (JSON.parse(read(path.join(root, "package.json"))) as { readonly version: string }).version,
  tags: git("tag", "--points-at", "HEAD").split("\n"),
  changed: git("status", "--porcelain"),
  changelog: read(path.join(root, "CHANGELOG.md")),
  stale: [...generate()].filter(([file, text]) => read(file) !== text).map(([file]) => path.relative(root, file)),
})

/** Runs a step and ends the release if it fails. */
const step = (title: string, program: string, words: ReadonlyArray<string>) => {
  console.log(`\n${title}`)
  const { status } = spawnSync(program, words, { cwd: root, stdio: "inherit" })
  if (status === 0) return
  console.error(`\n${title}: failed. Nothing was published.`)
  process.exit(1)
}
const node = (title: string, ...words: ReadonlyArray<string>) => step(title, process.execPath, words)

/** Returns the container engine that works here. */
const engine = () => ["docker", "podman"].find((one) => spawnSync(one, ["info"], { stdio: "ignore" }).status === 0)

/** Returns what this machine could not make. */
const make = (target: string, version: string): ReadonlyArray<string> => {
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  node("npm and Python packages", "scripts/pack.ts", target)
  const site = path.join("packages", "site", "build.ts")
  if (existsSync(path.join(root, site))) {
    const folder = path.join(target, "docs")
    node("Documentation site", site, folder)
    step("Archive of the site", "tar", ["-czf", path.join(target, `docs-${version}.tar.gz`), "-C", target, "docs"])
    rmSync(folder, { recursive: true })
  }
  const container = engine()
  if (container !== undefined) {
    const [name, file] = [`agent-identity:${version}`, path.join(target, `image-${version}.tar`)]
    step("Image", container, ["build", "--file", "deploy/Dockerfile", "--tag", name, "."])
    step("Archive of the image", container, ["save", "--output", file, name])
  }
  return [
    ...(existsSync(path.join(root, site)) ? [] : ["the documentation site: packages/site is missing"]),
    ...(readdirSync(target).some((name) => name.endsWith(".whl")) ? [] : ["the Python package: see above"]),
    ...(container === undefined
      ? ["the image: neither docker nor podman runs here. Its Dockerfile was checked by test/packages/deploy.test.ts"]
      : []),
  ]
}

/** Writes the SHA-256 of each file, in the form that `sha256sum --check` reads. */
const sum = (target: string) => {
  const files = readdirSync(target).filter((name) => statSync(path.join(target, name)).isFile())
  const lines = files.map((name) => {
    const hash = createHash("sha256").update(readFileSync(path.join(target, name)))
    return `${hash.digest("hex")}  ${name}\n`
  })
  writeFileSync(path.join(target, "SHA256SUMS"), lines.join(""))
}

if (import.meta.main) {
  const words = process.argv.slice(2)
  const isRehearsal = words.includes("--rehearsal")
  const target = path.resolve(words.find((word) => !word.startsWith("--")) ?? path.join(root, "dist"))
  const state = checkout()
  const blockers = blockersOf(state)
  for (const blocker of blockers) console.error(blocker)
  if (blockers.length > 0 && !isRehearsal) process.exit(1)
  node("Types, linter and format", "scripts/check.ts")
  const missing = make(target, state.version)
  const vitest = path.join("node_modules", "vitest", "vitest.mjs")
  node("Checks of the packages", vitest, "run", "test/packages", "test/sdk", "test/compatibility", "test/documents")
  sum(target)
  console.log(`\n${state.version} is in ${target}.`)
  for (const what of missing) console.log(`Not made here: ${what}.`)
  if (missing.length > 0 && !isRehearsal) process.exitCode = 1
}
