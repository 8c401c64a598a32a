/**
 * The quick start, the guides and the concepts against the service: every page runs as a reader would run it, once for each
 * language of its code. Blocks marked `manual` are for the reader only (installing, signing in), and blocks marked `again`
 * cause what a waiting program waits for, so they are repeated until it is there.
 */
import { spawn } from "node:child_process"
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { check } from "@svc/domain/handles/Handle"
import { call, makeIdentity, newHandle, signUp } from "../harness/Client.ts"
import { freePort } from "../harness/Ports.ts"
import { has } from "../harness/Programs.ts"
import { eventually, sharedService, type TestService } from "../harness/Service.ts"

const root = path.join(import.meta.dirname, "..", "..")
const docs = path.join(root, "docs")

/** The output of a page's programs. */
const expected: Readonly<Record<string, ReadonlyArray<string>>> = {
  "quick-start": ["wrote: Are you there?"],
  "guides/answer-mail": ["awaiting_approval", "subject: Re: Order 7", "after approval: queued", "stopped"],
  "guides/coding-agents": ["Claude Code", "mcp.json", "name: agent-identity"],
  "guides/from-agentmail": ["queued"],
  "guides/own-server": [],
  "guides/public-address": ["public address: http", '{"username":"guest"'],
  "guides/sign-up": ["sender: ", "hello@shop.example", "code: 482913", "shop.password"],
  "guides/two-agents": ["answer: It is 42."],
  "guides/webhooks-locally": ["received card.updated", "active"],
  "concepts/card": ["Ada"],
  "concepts/control": [],
  "concepts/events": ["identity.ready"],
  "concepts/identity": [],
  "concepts/keys": ['"kind": "identity_key"'],
  "concepts/mailbox": [],
  "concepts/proof": [],
  "concepts/tunnel": [],
  "concepts/vault": ["github.token", "a secret"],
}

/** The refusal with which a page's waiting program may end after the last step: it cannot send once everything is stopped. */
const lastRefusal: Readonly<Record<string, RegExp>> = { "guides/answer-mail": /mail_paused/ }

/** Pages whose programs act for the whole account. */
const forAccount = new Set(["guides/two-agents", "guides/from-agentmail"])

const languages = ["curl", "TypeScript", "Python"] as const
type Language = (typeof languages)[number]

interface Block {
  readonly kind: string
  readonly mark: string | undefined
  readonly label: string | undefined
  readonly code: string
}

const blocksOf = (page: string): ReadonlyArray<Block> =>
  [
    ...readFileSync(path.join(docs, `${page}.md`), "utf8").matchAll(
      /^```(\w+)(?: (manual|again))?(?: \[(.+)\])?\n([\s\S]*?)^```$/gm,
    ),
  ].map(([, kind, mark, label, code]) => ({ kind: kind!, mark, label, code: code! }))

const isRun = ({ kind, mark }: Block) => mark !== "manual" && ["sh", "ts", "py"].includes(kind)
const languageOf = ({ label }: Block) => languages.find((one) => one === label)

/** A program that waits or serves does not end by itself. */
const waits = (code: string) =>
  /while true|while \(true\)|while True|serve_forever|createServer|svc listen|waitForMessage|wait_for_message|\/wait\?|\.ended/.test(
    code,
  )

const pages = Object.keys(expected)
const runs = pages.flatMap((page) => {
  const blocks = blocksOf(page).filter(isRun)
  const used = languages.filter((language) => blocks.some((block) => languageOf(block) === language))
  return used.length > 0
    ? used.map((language) => ({ page, language }))
    : blocks.length > 0
      ? [{ page, language: "curl" as const }]
      : []
})

let service: TestService
let folder: string
beforeAll(async () => {
  service = await sharedService()
  // Programs find the SDK from here.
  mkdirSync(path.join(root, "node_modules", ".cache"), { recursive: true })
  folder = mkdtempSync(path.join(root, "node_modules", ".cache", "guides-"))
  writeFileSync(
    path.join(folder, "svc"),
    `#!/bin/sh\nexec "${process.execPath}" "${root}/packages/cli/src/main.mjs" "$@"\n`,
  )
  chmodSync(path.join(folder, "svc"), 0o755)
  // The package of tunnels is built from these sources.
  const tunnel = pathToFileURL(path.join(root, "packages", "tunnel-edge", "src", "agent", "Agent.ts")).href
  writeFileSync(
    path.join(folder, "packages.mjs"),
    `import { registerHooks } from "node:module"
registerHooks({
  resolve: (name, context, next) =>
    name === "@agent-identity/tunnel" ? { url: ${JSON.stringify(tunnel)}, shortCircuit: true } : next(name, context),
})
`,
  )
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
})

/** Returns the page's blocks as one script, in the reader's order. */
const scriptOf = (page: string, language: Language, home: string, adapt: (code: string) => string) => {
  const chosen = blocksOf(page).filter((block) => isRun(block) && [undefined, language].includes(languageOf(block)))
  return chosen
    .map(({ kind, mark, code }, at) => {
      const text = adapt(code)
      if (mark === "again") return `while true; do\n${text}\nsleep 2\ndone &`
      if (kind === "sh") return waits(code) ? `(\n${text}\n) &` : text
      const file = path.join(home, `program${at}.${kind === "ts" ? "mjs" : "py"}`)
      // The programs have no types, so they run as JavaScript too.
      writeFileSync(file, text)
      const program =
        kind === "ts"
          ? `"${process.execPath}" --import "${path.join(folder, "packages.mjs")}" "${file}"`
          : `/usr/bin/python3 -W error "${file}"`
      return waits(code) ? `${program} &` : program
    })
    .join("\n")
}

const isMissing = (language: Language) =>
  process.platform === "win32" || !has("curl", "jq", ...(language === "Python" ? (["pythonHttpx"] as const) : []))

describe("Guides", () => {
  it("are listed in the test", () => {
    const all = globSync(["quick-start.md", "guides/*.md", "concepts/*.md"], { cwd: docs })
    expect(all.map((file) => file.replaceAll("\\", "/").slice(0, -3)).toSorted()).toEqual(pages.toSorted())
  })

  it("name no reserved Handle, so that a reader can create each", () => {
    const names = globSync("**/*.md", { cwd: docs }).flatMap((file) => [
      ...readFileSync(path.join(docs, file), "utf8").matchAll(
        /([\w-]+)(?:\+\w+)?@mail\.localhost|--handle ([\w-]+)|HANDLE=([\w-]+)|HANDLE \?\? "([\w-]+)"|"?handle"?: ?"([\w-]+)"/g,
      ),
    ])
    const handles = new Set(names.map(([, ...found]) => found.find((one) => one !== undefined)!))
    expect(handles).toContain("ada-helper")
    expect([...handles].filter((one) => check(one, { brand: "" })._tag !== "Ok")).toEqual([])
  })

  for (const { page, language } of runs) {
    it.skipIf(isMissing(language))(`${page} works with ${language}`, async () => {
      const owner = await signUp(service.base)
      const body = { name: "guide" }
      const admin = (await call(service.base, "POST", "/api/keys", { token: owner.session, body })).body.key
      const handle = newHandle("guide")
      await makeIdentity(service.base, owner.session, handle)
      const made = await call(service.base, "POST", `/api/identities/${handle}/keys`, {
        token: owner.session,
        body,
      })
      const [one, two, port] = [newHandle("one"), newHandle("two"), await freePort()]
      const adapt = (code: string) =>
        code
          .replaceAll("ada-helper", handle)
          .replaceAll("agent-one", one)
          .replaceAll("agent-two", two)
          .replaceAll("you@example.org", owner.email)
          .replaceAll("127.0.0.1:2525", `127.0.0.1:${service.smtpPort}`)
          .replaceAll("3000", String(port))
      const home = mkdtempSync(path.join(folder, "home-"))
      const env = {
        PATH: `${folder}:${process.env["PATH"]}`,
        HOME: home,
        PYTHONPATH: path.join(root, "packages", "sdk-python", "src"),
        PYTHONDONTWRITEBYTECODE: "1",
        SVC_API_URL: service.base,
        SVC_KEY: forAccount.has(page) ? admin : made.body.key,
        ADMIN_KEY: admin,
        HANDLE: handle,
      }
      const script = `set -eo pipefail\n${scriptOf(page, language, home, adapt)}\nwait`
      const shell = spawn("bash", ["-c", script], {
        env,
        cwd: home,
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      })
      let [output, wrong] = ["", ""]
      shell.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()))
      shell.stderr.on("data", (chunk: Buffer) => (wrong += chunk.toString()))
      try {
        const ended = new Promise<number | null>((resolve) => shell.on("exit", resolve))
        let code: number | null | undefined
        void ended.then((one) => (code = one))
        const missing = () => expected[page]!.filter((text) => !output.includes(text))
        await eventually(async () => code !== undefined || missing().length === 0, Boolean, 100).catch(() => undefined)
        const isWrong = /Error|Traceback/.test(wrong) && lastRefusal[page]?.test(wrong) !== true
        const failed = missing().length > 0 || isWrong || (code ?? 0) !== 0
        if (failed) throw new Error(`Missing: ${missing().join(", ")}\n${output}\n${wrong}`)
        if (page === "quick-start") {
          await eventually(
            () => call(service.base, "GET", `/api/identities/${handle}/messages?direction=outbound`, { token: admin }),
            ({ body }) => body.messages[0]?.to[0].address === owner.email,
          )
        }
      } finally {
        try {
          process.kill(-shell.pid!, "SIGKILL")
        } catch {
          // The process has already ended.
        }
      }
    })
  }
})
