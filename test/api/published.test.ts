/**
 * The documents that programs and strangers read without a credential, whole, and the headers of all pages: other systems and
 * browsers depend on each member and header. `published.txt` and `headers.txt` have them; `vitest -u` rewrites both after an
 * intended change.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as Console from "@svc/api/console/Console"
import * as Documents from "@svc/api/documents/Documents"
import { Addresses } from "@svc/domain/Addresses"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { beforeAll, describe, expect, it } from "vitest"
import { makeIdentity, signUp } from "../harness/Client.ts"
import { sharedService, type TestService } from "../harness/Service.ts"

let service: TestService
let handle: string
beforeAll(async () => {
  service = await sharedService()
  handle = (await makeIdentity(service.base, (await signUp(service.base)).session)).handle
})

/** The headers that are part of a document; others are those of every response. */
const told = ["content-type", "cache-control", "access-control-allow-origin", "content-disposition", "etag"]

const documents = [
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-authorization-server",
  "/.well-known/security.txt",
  "/.well-known/webfinger?resource=acct:ada@mail.localhost",
  "/.well-known/autoconfig/mail/config-v1.1.xml",
  "/.well-known/mta-sts.txt",
  "/mail/apple.mobileconfig?address=ada@mail.localhost",
  "/@ada/did.json",
  "/@ada/jwks.json",
  "/@ada/agent-card.json",
]

describe("A published document", () => {
  it("has exactly these members and headers", async () => {
    const read = async (path: string) => {
      const response = await fetch(service.base + path.replace("ada", handle))
      const headers = told.flatMap((name) => {
        const value = response.headers.get(name)
        return value === null ? [] : [`${name}: ${name === "etag" ? "…" : value}`]
      })
      const text = await response.text()
      const shown = text.startsWith("{") ? JSON.stringify(JSON.parse(text), null, 1) : text
      return [`GET ${path}`, `${response.status}`, ...headers, "", shown].join("\n")
    }
    const all = await Promise.all(documents.map(read))
    const stable = all
      .join("\n\n---\n\n")
      .replaceAll(handle, "ada")
      .replaceAll(service.base, "<base>")
      .replaceAll(encodeURIComponent(new URL(service.base).host), "<host>")
      .replaceAll(String(service.submissionPort), "<submission>")
      .replaceAll(String(service.imapPort), "<imap>")
      .replaceAll(String(service.edgePort), "<edge>")
      .replace(/("(?:x|kid|publicKeyMultibase|signature|protected)": ")[^"]+/g, "$1…")
      .replace(/#[\w-]{43}(?="|-multikey)/g, "#…")
      .replace(/(PayloadUUID<\/key><string>)[^<]+/g, "$1…")
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    await expect(stable).toMatchFileSnapshot("published.txt")
  })

  it.each([
    ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/api/mcp"],
    ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
    ["/.well-known/autoconfig/mail/config-v1.1.xml", "/mail/config-v1.1.xml"],
  ])("is the same at two addresses: %s and %s", async (...paths) => {
    const [one, other] = await Promise.all(paths.map(async (path) => (await fetch(service.base + path)).text()))
    expect(other).toBe(one)
  })
})

/** The status and the headers of a response, except those of the connection. */
const headed = (what: string, { headers, status }: Response) => {
  const stable = [...headers].flatMap(([name, value]) => {
    if (["connection", "content-length", "date", "keep-alive", "transfer-encoding"].includes(name)) return []
    const isOfRequest = ["request-id", "etag", "ratelimit"].includes(name) || name.startsWith("ratelimit-")
    const shown = value
      .replaceAll(service.base, "<base>")
      .replaceAll(handle, "ada")
      .replace(/sha256-[^']+/g, "sha256-…")
    return [`  ${name}: ${isOfRequest ? "…" : shown}`]
  })
  return [`${what} ${status}`, ...stable, ""].join("\n")
}

const form = { method: "POST", body: new URLSearchParams({ email: "" }) }
const answered: ReadonlyArray<readonly [path: string, init?: RequestInit]> = [
  ["/"],
  ["/?lang=de"],
  ["/", { headers: { cookie: "svc_signed_in=1" } }],
  ["/icon.svg"],
  ["/favicon.ico"],
  ["/apple-touch-icon.png"],
  ["/terms"],
  ["/auth/sign-in"],
  ["/auth/sign-in", form],
  ["/auth/sign-in", { ...form, headers: { origin: "https://evil.example" } }],
  ["/auth/device"],
  ["/auth/device", form],
  ["/auth/magic-link?token=unknown"],
  ["/auth/magic-link", form],
  ["/auth/authorize"],
  ["/auth/connectors/callback"],
  ["/auth/connectors/callback", form],
  ["/connectors/callback?code=c&state=s"],
  ["/console/leave?to=https%3A%2F%2Fshop.example"],
  ["/console/leave?to=unknown"],
  ["/console/mail/ada/1/body"],
  ["/console/mail/ada/1/images/1"],
  ["/@ada"],
  ["/@Ada"],
  ["/@nobody"],
  ["/@ada/agent-card.json", { method: "HEAD" }],
  ["/@nobody/agent-card.json"],
  ["/@nobody/did.json"],
  ["/problems/not_found"],
  ["/problems/unknown"],
  ["/unknown", { headers: { accept: "text/html" } }],
  ["/unknown"],
  ["/llms.txt"],
  ["/llms-full.txt"],
  ["/skill.md"],
  ["/docs"],
  ["/docs/unknown.md"],
  ["/api/openapi.json"],
  ["/api/docs"],
  ["/api/docs/assets/unknown.js"],
  ["/api/healthz"],
  ["/api/versions"],
  ["/api/account"],
  ["/api/account", { headers: { authorization: "Bearer unknown" } }],
  ["/api/account", { headers: { "svc-version": "2020-01-01" } }],
  ["/api/account", { method: "PUT" }],
  ["/api/account", { method: "OPTIONS" }],
  ["/api/account", { method: "POST", body: "{}", headers: { "content-encoding": "gzip" } }],
  ["/api/unknown"],
  ["/api/mcp"],
  ["/api/mcp", { method: "POST", body: "{}" }],
  ["/api/mcp", { method: "OPTIONS", headers: { origin: "https://app.example" } }],
  ["/api/oauth/register", { method: "POST", body: "{}", headers: { "content-type": "application/json" } }],
  ["/api/oauth/token", form],
  ["/api/oauth/revoke", form],
  ["/api/oauth/userinfo"],
  ["/.well-known/jwks.json"],
  ["/.well-known/webfinger"],
  ["/.well-known/webfinger?resource=acct:nobody@mail.localhost"],
  ["/mail/apple.mobileconfig"],
]

describe("A response without a credential", () => {
  it("has exactly these headers", async () => {
    const all = await Promise.all(
      answered.map(async ([path, init = {}]) => {
        const url = `${service.base}${path.replace("ada", handle).replace("Ada", handle.toUpperCase())}`
        const sent = Object.entries((init.headers ?? {}) as Record<string, string>).map((one) => one.join("="))
        const response = await fetch(url, { redirect: "manual", ...init })
        await response.arrayBuffer()
        return headed([init.method ?? "GET", path, ...sent, "→"].join(" "), response)
      }),
    )
    await expect(all.join("\n")).toMatchFileSnapshot("headers.txt")
  })
})

describe("A file of a build", () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), "svc-build-"))
    mkdirSync(path.join(folder, "assets"))
    writeFileSync(path.join(folder, "index.html"), "<!doctype html><script>let a</script><script src=a></script>")
    for (const name of ["a.js", "a.js.br", "a.css", "a.svg", "a.woff2", "a.map"])
      writeFileSync(path.join(folder, "assets", name), name)
    return () => rmSync(folder, { recursive: true })
  })

  it.each(["console", "docs"])("of %s has exactly these headers", async (of) => {
    const routes = of === "console" ? Console.layer(folder) : Documents.layer(folder)
    const { dispose, handler } = HttpRouter.toWebHandler(
      routes.pipe(Layer.provide(Layer.succeed(Addresses, { baseUrl: "https://id.example" } as never))),
      { disableLogger: true },
    )
    const names = ["", "assets/a.js", "assets/a.css", "assets/a.svg", "assets/a.woff2", "assets/a.map", "unknown"]
    const all = await Promise.all(
      names.map(async (name) => {
        const response = await handler(
          new Request(`https://id.example/${of}/${name}`, { headers: { "accept-encoding": "br" } }),
        )
        return headed(`GET ${name}`, response)
      }),
    )
    await dispose()
    await expect(all.join("\n")).toMatchFileSnapshot(`headers-${of}.txt`)
  })
})
