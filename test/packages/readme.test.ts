/** Links in a package's README have targets that its users can reach. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { packedReadme, type Repository } from "../../scripts/PackedReadme.ts"

const root = path.join(import.meta.dirname, "..", "..")
const document = "docs/install.md"
const install = readFileSync(path.join(root, document), "utf8")

const folder = mkdtempSync(path.join(os.tmpdir(), "svc-readme-"))
mkdirSync(path.join(folder, "deploy"))
writeFileSync(path.join(folder, "deploy", "svc.service"), "")
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const packed = (text: string, repository?: Repository) => packedReadme(text, { document, folder, repository })
const targets = (text: string) => [...text.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target]) => target!)

describe("the README of a package", () => {
  it("keeps links of docs/install.md to files in the package, and only the text of other links", () => {
    expect(targets(install).length).toBeGreaterThan(5)
    expect(new Set(targets(packed(install)))).toEqual(new Set(["#build-from-the-sources", "deploy/svc.service"]))
    expect(packed("in the [README](../README.md#settings)")).toBe("in the README")
  })

  it("links to the repository if its URL is known", () => {
    for (const repository of ["github:some/where", "some/where", { url: "git+https://github.com/some/where.git" }]) {
      expect(packed("[README](../README.md#settings), [operations](operations.md)", repository)).toBe(
        "[README](https://github.com/some/where/blob/HEAD/README.md#settings), [operations](https://github.com/some/where/blob/HEAD/docs/operations.md)",
      )
    }
    expect(packed("[README](../README.md)", { url: "git@example.org:some/where" })).toBe("README")
  })

  it("keeps URLs, links to its own headings, and code", () => {
    for (const text of ["[a](https://example.org/)", "[b](#by-systemd)", "```sh\necho '[c](d.md)'\n```"])
      expect(packed(text)).toBe(text)
  })
})
