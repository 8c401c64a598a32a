/** The documentation as the service serves it, to people and to models, and the steps of its skill. */
import { execFile } from "node:child_process"
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { call, signUp } from "../harness/Client.ts"
import { startService, type TestService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const names = readdirSync(path.join(root, "docs"))
  .filter((file) => file.endsWith(".md"))
  .map((file) => file.slice(0, -3))

let service: TestService
beforeAll(async () => void (service = await startService()))
afterAll(() => service.stop())

const get = async (url: string) => {
  const response = await fetch(`${service.base}${url}`)
  return { status: response.status, type: response.headers.get("content-type"), text: await response.text() }
}

describe("Documentation", () => {
  it("is a page for people and the file as Markdown, under the name of each file", async () => {
    for (const name of names) {
      const page = await get(name === "README" ? "/docs" : `/docs/${name}`)
      expect([page.status, page.type], name).toEqual([200, "text/html; charset=utf-8"])
      expect(page.text, name).toMatch(/<h1 id="[^"]+">/)
      const markdown = await get(`/docs/${name}.md`)
      expect([markdown.status, markdown.type], name).toEqual([200, "text/markdown; charset=utf-8"])
      expect(markdown.text, name).toBe(readFileSync(path.join(root, "docs", `${name}.md`), "utf8"))
    }
  })

  it("links only to pages and anchors that exist", async () => {
    const pages = new Map<string, string>()
    for (const name of names) {
      const url = name === "README" ? "/docs" : `/docs/${name}`
      pages.set(url, (await get(url)).text)
    }
    for (const [url, text] of pages) {
      for (const [, href] of text.matchAll(/<a href="([^"]+)"/g)) {
        if (/^(?:https?:|mailto:)/.test(href!)) continue
        const [page = "", anchor] = href!.split("#")
        if (page !== "" && !page.startsWith("/docs")) continue
        if (page.endsWith(".md")) continue
        const target = pages.get(page === "" ? url : page)
        expect(target, `${url} → ${href}`).toBeDefined()
        if (anchor !== undefined) expect(target, `${url} → ${href}`).toContain(`id="${anchor}"`)
      }
    }
  })

  it("has an index and its whole text for models", async () => {
    const index = await get("/llms.txt")
    expect(index.type).toBe("text/plain; charset=utf-8")
    for (const name of names) expect(index.text).toContain(`(${service.base}/docs/${name}.md)`)
    expect(index.text).toContain(`(${service.base}/skill.md)`)
    const complete = await get("/llms-full.txt")
    for (const name of names) {
      const file = readFileSync(path.join(root, "docs", `${name}.md`), "utf8")
      expect(complete.text.includes(file.trim()), name).toBe(true)
    }
  })

  it("says where to look for a page that does not exist", async () => {
    for (const url of ["/docs/nothing", "/docs/nothing.md", "/docs/..%2Fpackage.json", "/docs/SKILL.md"]) {
      const page = await get(url)
      expect([page.status, JSON.parse(page.text).code], url).toEqual([404, "not_found"])
    }
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
