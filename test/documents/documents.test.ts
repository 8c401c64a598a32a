/** Statements of the documents: links have a target, names exist in the code, and commands run. */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import * as Events from "./events.ts"
import * as Problems from "./problems.ts"

const root = path.join(import.meta.dirname, "..", "..")
const read = (name: string) => readFileSync(path.join(root, name), "utf8")

const packages = new Set(readdirSync(path.join(root, "packages")))
const files = globSync(["packages/**/*.{ts,tsx,mjs}", "test/**/*.ts", "scripts/*"], {
  cwd: root,
  exclude: (name) => name.endsWith("node_modules"),
}).map((file) => file.replaceAll("\\", "/"))

const markdown = (folder: string) => readdirSync(path.join(root, folder)).filter((name) => name.endsWith(".md"))
const documents = [
  ...markdown("."),
  ...["docs", "docs/notes", "docs/concepts", "docs/guides"].flatMap((folder) =>
    markdown(folder).map((name) => `${folder}/${name}`),
  ),
]

const withoutBlocks = (text: string) => text.replaceAll(/^```[\s\S]*?^```$/gm, "")

/** Returns the anchors of headings, formed like Markdown renderers form them. */
const anchors = (text: string): ReadonlySet<string> =>
  new Set(
    [...withoutBlocks(text).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replaceAll(" ", "-"),
    ),
  )

const links = (text: string) => [...withoutBlocks(text).matchAll(/\]\(([^()\s]+)\)/g)].map(([, target]) => target!)

interface Block {
  readonly text: string
  readonly heading: string
}

const blocks = (text: string): ReadonlyArray<Block> =>
  [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => ({
    text: match[1]!,
    heading:
      /^#+ (.*)$/m.exec(
        text
          .slice(0, match.index)
          .split(/^(?=#+ )/m)
          .at(-1)!,
      )?.[1] ?? "",
  }))

describe.each(documents)("%s", (name) => {
  const text = read(name)

  it("links to existing files and headings", () => {
    const broken = links(text).filter((target) => {
      if (/^[a-z]+:/.test(target)) return false
      const [file, anchor] = target.split("#") as [string, string?]
      const place = file === "" ? path.join(root, name) : path.join(root, path.dirname(name), file)
      if (!existsSync(place)) return true
      return anchor !== undefined && !anchors(readFileSync(place, "utf8")).has(anchor)
    })
    expect(broken).toEqual([])
  })

  it("names existing files", () => {
    const named = [...withoutBlocks(text).matchAll(/`((?:packages|test|docs|deploy|scripts)\/[\w./-]+\.\w+)`/g)]
    // The example in the architecture describes a capability that does not exist.
    const files = named.map(([, file]) => file!).filter((file) => !file.includes("/notes/"))
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual([])
  })

  it("names source files by the end of their paths", () => {
    const named = [...withoutBlocks(text).matchAll(/`([\w./-]+\.(?:tsx?|mjs))`/g)].map(([, file]) => file!)
    const unknown = named.filter((file) => {
      if (/^notes?|\bnotes\/|^Notes?[A-Z.]|<|\*/.test(file)) return false
      const [first, ...rest] = file.split("/") as [string, ...ReadonlyArray<string>]
      const source = packages.has(first) && rest.length > 0 ? [first, "src", ...rest].join("/") : file
      return !files.some((path) => `/${path}`.endsWith(`/${source}`) || path.endsWith(`/${file}`))
    })
    expect(unknown).toEqual([])
  })

  it.skipIf(process.platform === "win32")("has shell blocks with valid syntax", () => {
    for (const block of blocks(text)) {
      // A placeholder in angle brackets is not a redirection.
      const filled = block.text.replaceAll(/<[a-z ]+>/g, "it")
      const { status, stderr } = spawnSync("bash", ["-n"], { input: filled, encoding: "utf8" })
      expect({ heading: block.heading, status, stderr }).toEqual({ heading: block.heading, status: 0, stderr: "" })
    }
  })
})

describe("the documents", () => {
  it("can be reached from the README", () => {
    const seen = new Set(["README.md"])
    for (const name of seen) {
      const text = read(name)
      const named = [
        ...links(text),
        ...[...text.matchAll(/`(docs\/[\w/-]+\.md|[A-Z_]+\.md)`/g)].map(([, file]) => `/${file}`),
      ]
      for (const target of named) {
        const file = target.startsWith("/") ? target.slice(1) : path.join(path.dirname(name), target.split("#")[0]!)
        if (documents.includes(file)) seen.add(file)
      }
    }
    expect(documents.filter((name) => !seen.has(name))).toEqual([])
  })

  it("list every problem; node test/documents/problems.ts updates the list", () => {
    expect(read("docs/problems.md")).toBe(Problems.page())
  })

  it("list every Event; node test/documents/events.ts updates the list", () => {
    expect(read("docs/events.md")).toBe(Events.page())
  })

  it("name existing commands", async () => {
    const help = spawnSync(process.execPath, [path.join(root, "packages", "cli", "src", "main.mjs"), "--help"], {
      encoding: "utf8",
    })
    const commands = new Set([...help.stdout.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map(([, name]) => name!))
    expect(commands.size).toBeGreaterThan(15)
    const commandsIn = documents.flatMap((name) =>
      [...read(name).matchAll(/(?:^|`|(?<!exec)\s)(?:npx )?svc(?:-server| --)? ([a-z][a-z-]+)/gm)].map(
        ([, command]) => `${name}: ${command}`,
      ),
    )
    expect(commandsIn.length).toBeGreaterThan(30)
    expect([...new Set(commandsIn)].filter((one) => !commands.has(one.split(": ")[1]!))).toEqual([])
  })
})
