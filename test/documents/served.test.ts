/** The documentation as the service serves it, to people and to models, and the steps of its skill. */
import { execFile, execFileSync } from "node:child_process"
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { type Document, llmsOf, localized, readSections, targetOf } from "@svc/api/documents/Pages"
import { plainPage } from "@svc/api/documents/PlainPage"
import type { AddressBook } from "@svc/domain/Addresses"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, signUp } from "../harness/Client.ts"
import { startService, type OwnService } from "../harness/Service.ts"

/** Returns the anchor of a heading, as code hosts and the site make it. */
const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-")

const root = path.join(import.meta.dirname, "..", "..")
const names = globSync("**/*.md", { cwd: path.join(root, "docs") }).map((file) =>
  file.replaceAll("\\", "/").slice(0, -3),
)
const addressOf = (name: string) => `/docs/${name === "README" ? "" : name}`

let service: OwnService
beforeAll(async () => {
  // Builds the site if a page changed.
  execFileSync(process.execPath, [path.join(root, "packages", "site", "build.ts")])
  service = await startService()
})
afterAll(() => service.stop())

const get = async (url: string) => {
  const response = await fetch(url.startsWith("http") ? url : `${service.base}${url}`)
  return { status: response.status, type: response.headers.get("content-type"), text: await response.text() }
}

/** Returns the targets of the links of a page that lead to this service. */
const linksOf = (html: string) =>
  [...html.matchAll(/<a\b[^>]*? href="([^"]+)"/g)]
    .map(([, href]) => href!.replaceAll("&amp;", "&").replace(service.base, ""))
    .filter((href) => href.startsWith("/") || href.startsWith("#"))

describe("Documentation", () => {
  it("is a page for people and a page as Markdown, under the name of each file", async () => {
    for (const name of names) {
      const page = await get(addressOf(name))
      expect([page.status, page.type], name).toEqual([200, "text/html; charset=utf-8"])
      expect(page.text, name).toMatch(/<h1[ >]/)
      expect(page.text, name).toContain(`href="/docs/${name}.md"`)
      const markdown = await get(`/docs/${name}.md`)
      expect([markdown.status, markdown.type], name).toEqual([200, "text/markdown; charset=utf-8"])
      const [title] = readFileSync(path.join(root, "docs", `${name}.md`), "utf8").split("\n")
      expect(markdown.text.split("\n")[0], name).toBe(title)
    }
  })

  it("links only to pages and anchors that exist", async () => {
    const pages = new Map<string, string>()
    for (const name of names) pages.set(addressOf(name), (await get(addressOf(name))).text)
    const others = new Set<string>()
    for (const [url, html] of pages) {
      for (const href of linksOf(html)) {
        const [page = "", anchor] = href.split("#")
        const target = pages.get(page === "" ? url : page)
        if (target === undefined) others.add(page)
        else if (anchor !== undefined && anchor !== "") {
          expect(target, `${url} → ${href}`).toContain(`id="${decodeURIComponent(anchor)}"`)
        }
      }
    }
    for (const url of others) expect([(await get(url)).status, url]).toEqual([200, url])
  })

  it("is at most three clicks away from the start page", async () => {
    const start = linksOf((await get("/docs/")).text)
    const near = (await Promise.all(start.filter((href) => href.startsWith("/docs/")).map(get))).flatMap(({ text }) =>
      linksOf(text),
    )
    const reached = new Set([...start, ...near].map((href) => href.split("#")[0]))
    expect(names.map(addressOf).filter((url) => !reached.has(url) && url !== "/docs/")).toEqual([])
  })

  it("has a place for each page in its navigation", () => {
    const sections = JSON.parse(readFileSync(path.join(root, "docs", "sections.json"), "utf8")) as ReadonlyArray<{
      readonly pages: ReadonlyArray<string>
    }>
    const placed = sections.flatMap(({ pages }) => pages)
    expect(new Set(placed).size).toBe(placed.length)
    expect(names.filter((name) => name !== "README" && !placed.includes(name))).toEqual([])
  })

  it("has an index and its whole text for models, whose links lead to pages of this deployment", async () => {
    const index = await get("/llms.txt")
    expect(index.type).toBe("text/plain; charset=utf-8")
    for (const name of names) expect(index.text).toContain(`(${service.base}/docs/${name}.md)`)
    expect(index.text).toContain(`(${service.base}/skill.md)`)
    const complete = await get("/llms-full.txt")
    const pages = new Map<string, string>()
    for (const name of names) pages.set(`${service.base}/docs/${name}.md`, (await get(`/docs/${name}.md`)).text)
    for (const [url, text] of pages) {
      expect(complete.text.includes(text.trim()), url).toBe(true)
      const withoutCode = text.replaceAll(/^```[\s\S]*?^```$/gm, "")
      for (const [, href] of withoutCode.matchAll(/\]\(([^()\s]+)\)/g)) {
        expect(href, url).toMatch(/^(?:https?:|mailto:|\/)/)
        const [page, anchor] = href!.split("#")
        if (!page!.startsWith(`${service.base}/docs/`) || !page!.endsWith(".md")) continue
        expect(pages.has(page!), `${url} → ${href}`).toBe(true)
        if (anchor === undefined) continue
        const headings = [...pages.get(page!)!.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchorOf(heading!))
        expect(headings, `${url} → ${href}`).toContain(anchor)
      }
    }
  })

  it("names the addresses of this deployment in pages that readers follow", async () => {
    for (const url of ["/docs/quick-start", "/docs/quick-start.md"]) {
      const { text } = await get(url)
      expect(text).toContain(`${service.base}/auth/sign-in`)
      expect(text).not.toContain("localhost:8080")
    }
  })

  it("says where to look for a page that does not exist", async () => {
    for (const url of ["/docs/nothing", "/docs/nothing.md", "/docs/..%2Fpackage.json", "/docs/SKILL.md"]) {
      const page = await get(url)
      expect([page.status, JSON.parse(page.text).code], url).toEqual([404, "not_found"])
    }
  })

  it("forbids inline code except the scripts of the build, and caches assets by their names", async () => {
    const page = await fetch(`${service.base}/docs/quick-start`)
    const policy = page.headers.get("content-security-policy")!
    expect(policy).toMatch(/script-src 'self'(?: 'sha256-[\w+/=]+')+;/)
    const [, script] = /<script type="module" src="([^"]+)"/.exec(await page.text())!
    const asset = await fetch(`${service.base}${script}`)
    expect(asset.headers.get("cache-control")).toContain("immutable")
    const etag = page.headers.get("etag")!
    const again = await fetch(`${service.base}/docs/quick-start`, { headers: { "if-none-match": etag } })
    expect(again.status).toBe(304)
    expect(policy).toMatch(/^default-src 'none'; .*; form-action 'none'; base-uri 'none'; frame-ancestors 'none'$/)
    expect(page.headers.get("cache-control")).toBe("public, max-age=0, must-revalidate")
    expect(page.headers.get("referrer-policy")).toBe("same-origin")
  })

  it("is read by programs of every origin, and its address needs no slash at the end", async () => {
    const markdown = await fetch(`${service.base}/docs/quick-start.md?x=1`)
    expect(markdown.headers.get("access-control-allow-origin")).toBe("*")
    const headers = { "if-none-match": markdown.headers.get("etag")! }
    expect((await fetch(`${service.base}/docs/quick-start.md`, { headers })).status).toBe(304)
    const folder = await fetch(`${service.base}/docs?x=1`, { redirect: "manual" })
    expect([folder.status, folder.headers.get("location")]).toEqual([308, "/docs/"])
  })
})

describe("Documentation without a build", () => {
  it("is a plain page with the same links", async () => {
    const sections = await readSections({ baseUrl: "https://a.example", mailDomain: "a.example" } as AddressBook)
    const guide = sections.flatMap(({ documents }) => documents).find(({ name }) => name === "guides/sign-up")!
    const { body } = plainPage(sections, guide)
    const html = body._tag === "Uint8Array" ? Buffer.from(body.body).toString() : ""
    expect(html).toContain('<a href="/docs/quick-start">quick start</a>')
    expect(html).toContain('<a href="/docs/guides/sign-up" aria-current="page">')
    expect(html).toContain("ada-helper+shop@a.example")
    expect(html).not.toContain(":::")
  })

  const bare = (name: string, source: string, about = ""): Document => ({
    name,
    title: `<${name}>`,
    about,
    source,
    markdown: source,
  })

  it("renders headings, links, pictures, tables and code without foreign HTML", () => {
    const source = `## A \`code\` & more!\n\n[near](b.md#x) [lost](../c.md) [far](https://x.example/?a=1&b=2) [here](#y) ![a <b>](p.png)
\n| h |\n|---|\n| c |\n\n\`\`\`sh [Shell <1>]\na < b\n\`\`\`\n`
    const sections = [{ title: "S", documents: [bare("guides/a", source, "x".repeat(200)), bare("guides/b", "")] }]
    const { body } = plainPage(sections, sections[0]!.documents[0]!)
    const html = body._tag === "Uint8Array" ? Buffer.from(body.body).toString() : ""
    for (const part of [
      `<meta name="description" content="${"x".repeat(160)}">`,
      '<h2 id="a-code--more">A <code>code</code> &amp; more!</h2>',
      '<a href="/docs/guides/b#x">near</a> lost <a href="https://x.example/?a=1&amp;b=2">far</a> <a href="/docs/guides/a#y">here</a> a &lt;b&gt;',
      '<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead><tr><th>h</th></tr></thead><tbody><tr><td>c</td></tr></tbody></table></div>',
      '<p class="small">Shell &lt;1&gt;</p><pre><code>a &lt; b</code></pre>',
      '<p>S</p><ul><li><a href="/docs/guides/a" aria-current="page">&lt;guides/a&gt;</a></li><li><a href="/docs/guides/b">&lt;guides/b&gt;</a></li></ul>',
      '<link rel="alternate" type="text/markdown" href="/docs/guides/a.md">',
    ])
      expect(html).toContain(part)
  })

  it("links only to its own pages, and shows the addresses of the deployment only in pages with steps to follow", () => {
    const names = new Set(["README", "guides/a", "concepts/b"])
    expect(
      ["a.md", "../README.md#x", "../concepts/b.md", "#y", "../package.json", "c.md"].map((href) =>
        targetOf("guides/a", href, names),
      ),
    ).toEqual([
      { page: "guides/a", anchor: "" },
      { page: "README", anchor: "#x" },
      { page: "concepts/b", anchor: "" },
      { page: "guides/a", anchor: "#y" },
      undefined,
      undefined,
    ])
    const book = { baseUrl: "https://a.example", mailDomain: "m.example" } as AddressBook
    const text = "https://service.invalid http://localhost:8080 mail.localhost"
    for (const name of ["quick-start", "concepts/b", "guides/a"])
      expect(localized(name, text, book)).toBe("https://a.example https://a.example m.example")
    for (const name of ["configuration", "guidesbook", "notes/guides/a"])
      expect(localized(name, text, book)).toBe("https://a.example http://localhost:8080 mail.localhost")
    const documents = [bare("a", "", "For v1.2 users. More."), bare("b", "")]
    expect(
      llmsOf([{ title: "S", documents }], "https://a.example")
        .split("\n")
        .slice(-6),
    ).toEqual([
      "",
      "## S",
      "",
      "- [<a>](https://a.example/docs/a.md): For v1.2 users.",
      "- [<b>](https://a.example/docs/b.md)",
      "",
    ])
  })
})

describe("Skill", () => {
  const skill = () => readFileSync(path.join(root, "packages", "skill", "SKILL.md"), "utf8")

  it("is served with the address of the deployment, in the format of skills", async () => {
    const { text, type } = await get("/skill.md")
    expect(type).toBe("text/markdown; charset=utf-8")
    expect(text).toBe(skill().replaceAll("{base_url}", service.base))
    expect(text).toMatch(/^---\nname: agent-identity\ndescription: .{100,1024}\n---\n/)
  })

  it("works step by step", { timeout: 300_000 }, async () => {
    const { session } = await signUp(service.base)
    const { key } = (await call(service.base, "POST", "/api/keys", { token: session, body: { name: "agent" } })).body
    const folder = mkdtempSync(path.join(os.tmpdir(), "svc-skill-"))
    const program = path.join(folder, "svc")
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${root}/packages/cli/src/main.mjs" "$@"\n`)
    chmodSync(program, 0o755)
    const env = {
      PATH: `${folder}:${process.env["PATH"]}`,
      HOME: folder,
      SVC_KEY: key,
      SVC_API_URL: service.base,
      HANDLE: "skilled-agent",
      ADDRESS: "somebody@example.org",
      VALUE: "a secret",
    }
    const run = (script: string) =>
      new Promise<{ code: number; out: string; err: string }>((resolve) =>
        execFile("bash", ["-euo", "pipefail", "-c", script], { env }, (error, out, err) =>
          resolve({ code: error === null ? 0 : Number(error.code), out, err }),
        ),
      )
    try {
      const steps = [...skill().matchAll(/```sh\n([^`]*)```/g)].map(([, script]) => script!)
      expect(steps.length).toBeGreaterThanOrEqual(6)
      for (const step of steps) {
        const { code, out, err } = await run(step)
        expect(code, `${step}\n${out}${err}`).toBe(0)
        expect(out).not.toContain(env.VALUE)
      }
      const secret = await run('svc vault get github.token --identity "$HANDLE" --json')
      expect(JSON.parse(secret.out).value).toBe(env.VALUE)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
