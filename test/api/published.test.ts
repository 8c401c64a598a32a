/**
 * The documents that programs and strangers read without a credential, whole: other systems depend on each member and header.
 * `published.txt` has them; `vitest -u` rewrites it after an intended change.
 */
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
