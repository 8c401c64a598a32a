/** Signed web requests (Web Bot Auth), verified as sites verify them. */
import { createHash } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import * as path from "node:path"
import { createClient } from "@agent-identity/sdk"
import { component, verifySignature, webcrypto } from "http-message-sig"
import type { JWK } from "jose"
import { beforeAll, describe, expect, it } from "vitest"
import { call, makeIdentity, signUp } from "../harness/Client.ts"
import { fetchPublic, hostOf } from "../harness/Public.ts"
import { sharedService, type TestService } from "../harness/Service.ts"
import { runHere } from "../harness/Commands.ts"
import { directoryOf, directoryPath, startSite, verifiedOrigin } from "./Sites.ts"

let service: TestService
let session: string
let handle: string
let key: string
beforeAll(async () => {
  service = await sharedService()
  session = (await signUp(service.base)).session
  const made = await makeIdentity(service.base, session)
  handle = made.handle
  key = made.secrets.identity_key
})

const url = "https://shop.example/search?q=agents"
const sign = (token: string, body: Readonly<Record<string, unknown>> = {}, name = handle) =>
  call(service.base, "POST", `/api/identities/${name}/signatures`, { token, body: { method: "GET", url, ...body } })
const turn = (outgoing: string) =>
  call(service.base, "PATCH", `/api/identities/${handle}/mail`, { token: session, body: { outgoing } })
const originOf = (name: string) => `http://${hostOf(name)}:${service.edgePort}`
const keyOf = async (name = handle) => (await directoryOf(service.edgePort, name)).keys[0]!

const descriptorOf = (headers: Readonly<Record<string, string>>, method = "GET", targetUri = url) => ({
  kind: "request" as const,
  method,
  targetUri,
  fields: Object.entries(headers).map(([name, value]) => ({ name, value })),
})

/** Verifies every member of the signature by RFC 9421, at a time in seconds. */
const verifyAt = async (headers: Record<string, string>, jwk: JWK, now: number, method?: string, target?: string) => {
  const key = await crypto.subtle.importKey("jwk", jwk as never, "Ed25519", false, ["verify"])
  return verifySignature(descriptorOf(headers, method, target), {
    policy: {
      algorithms: ["ed25519"],
      requiredComponents: ["@authority", "@method", "@path", component("signature-agent", { key: "sig1" })],
      requiredParameters: ["created", "expires", "nonce", "keyid", "tag"],
      maxAge: 60,
      now,
    },
    resolveVerifier: () => webcrypto.verifier(key),
  })
}
const flipped = (signature: string) => {
  const bytes = Buffer.from(/^sig1=:(.+):$/.exec(signature)![1]!, "base64")
  bytes[10]! ^= 1
  return `sig1=:${bytes.toString("base64")}:`
}
const seconds = () => Math.floor(Date.now() / 1000)

describe("a signed request", () => {
  it("is verified by Cloudflare's library with the key of the origin that it names", async () => {
    const { status, body, headers } = await sign(key)
    expect(status, JSON.stringify(body)).toBe(201)
    expect(headers.get("cache-control")).toBe("no-store")
    expect(await verifiedOrigin({ method: "GET", url, headers: body.headers }, await keyOf())).toBe(originOf(handle))
  })

  it("has the parameters of Web Bot Auth, and is valid for a minute", async () => {
    const jwk = await keyOf()
    const { headers, expires_at } = (await sign(key)).body
    const { parameters } = await verifyAt(headers, jwk, seconds())
    expect(parameters).toMatchObject({ keyid: jwk.kid, tag: "web-bot-auth" })
    expect(Buffer.from(String(parameters.nonce), "base64")).toHaveLength(64)
    expect(parameters.expires! - parameters.created!).toBe(60)
    expect(new Date(expires_at).getTime()).toBe(parameters.expires! * 1000)
    const again = (await sign(key)).body.headers
    expect((await verifyAt(again, jwk, seconds())).parameters.nonce).not.toBe(parameters.nonce)
  })

  it("is refused with one bit changed, for another site, method, path or query, from another key, and a minute later", async () => {
    const jwk = await keyOf()
    const { headers } = (await sign(key)).body
    const seen = { method: "GET", url, headers }
    const altered = { ...headers, signature: flipped(headers.signature) }
    await expect(verifiedOrigin({ ...seen, headers: altered }, jwk)).rejects.toThrow()
    await expect(verifyAt(altered, jwk, seconds())).rejects.toThrow()
    for (const other of ["https://bank.example/search?q=agents", "https://shop.example/x?q=agents"]) {
      await expect(verifiedOrigin({ ...seen, url: other }, jwk), other).rejects.toThrow()
    }
    await expect(verifiedOrigin({ ...seen, url: "https://shop.example/search?q=x" }, jwk)).rejects.toThrow()
    await expect(verifiedOrigin({ ...seen, method: "POST" }, jwk)).rejects.toThrow()
    const agent = { ...headers, "signature-agent": 'sig1="https://mallory.example"' }
    await expect(verifiedOrigin({ ...seen, headers: agent }, jwk)).rejects.toThrow()
    const other = await makeIdentity(service.base, session)
    await expect(verifiedOrigin(seen, await keyOf(other.handle))).rejects.toThrow()
    await expect(verifyAt(headers, jwk, seconds() + 61)).rejects.toThrow("expired")
  })

  it("covers the digest of the body and the fields that the agent names", async () => {
    const content_digest = `sha-256=:${createHash("sha256").update("{}").digest("base64")}:`
    const given = { "Content-Type": "application/json" }
    const { headers } = (await sign(key, { method: "POST", headers: given, content_digest })).body
    expect(headers["content-digest"]).toBe(content_digest)
    const sent = { ...headers, "content-type": "application/json" }
    const jwk = await keyOf()
    const { components } = await verifyAt(sent, jwk, seconds(), "POST")
    expect(components.map(({ name }) => name)).toEqual([
      "@authority",
      "@method",
      "@path",
      "@query",
      "signature-agent",
      "content-type",
      "content-digest",
    ])
    await expect(verifyAt({ ...sent, "content-type": "text/html" }, jwk, seconds(), "POST")).rejects.toThrow()
  })

  it("is on the audit log with what was signed", async () => {
    await sign(key)
    const { body } = await call(service.base, "GET", "/api/audit?action=proof.createSignature", { token: session })
    expect(body.records[0]).toMatchObject({
      outcome: "allowed",
      class: "secret",
      scope: "proof:token",
      identity: handle,
      target: { type: "signature", name: "GET https://shop.example/search" },
    })
  })

  it("is refused for what is not a web address, and for fields that cannot be covered", async () => {
    for (const wrong of ["/search", "ftp://shop.example/", "https://ada:secret@shop.example/", "https://"]) {
      expect((await sign(key, { url: wrong })).body.code, wrong).toBe("url_invalid")
    }
    for (const wrong of [
      { headers: { Signature: "sig1=:aa:" } },
      { headers: { "content-digest": "x" } },
      { headers: { "x y": "1" } },
      { headers: { a: "1", A: "2" } },
      { headers: { a: "é" } },
      { headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`x-${n}`, "1"])) },
      { content_digest: "md5=:AAAA:" },
      { headers: { a: "1".repeat(4097) } },
      { content_digest: "1".repeat(501) },
      { method: "GET /" },
      { method: "" },
      { method: "A".repeat(33) },
      { url: `https://shop.example/${"a".repeat(8172)}` },
    ]) {
      expect((await sign(key, wrong)).body.code, JSON.stringify(wrong)).toBe("invalid_request")
    }
    const most = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`x-${n}`, "1".repeat(n === 0 ? 4096 : 1)]))
    const url = `https://shop.example/${"a".repeat(8171)}`
    expect((await sign(key, { headers: most, method: "A".repeat(32), url })).status).toBe(201)
  })

  it("needs the scope proof:token, and is never made for an Identity of another Org", async () => {
    const made = await call(service.base, "POST", `/api/identities/${handle}/keys`, {
      token: session,
      body: { name: "narrow", scopes: ["proof:admin"] },
    })
    expect((await sign(made.body.key)).body).toMatchObject({ code: "scope_missing", scopes: ["proof:token"] })
    const stranger = await signUp(service.base)
    expect((await sign(stranger.session)).status).toBe(404)
  })
})

describe("nothing is signed", () => {
  it("in any process after a stop has returned, while callers keep asking", async () => {
    let stopped = false
    const late: Array<number> = []
    const asking = Array.from({ length: 4 }, async () => {
      for (let n = 0; n < 15; n++) {
        const begun = stopped
        const { status } = await sign(key)
        if (begun && status === 201) late.push(n)
      }
    })
    await turn("stopped")
    stopped = true
    await Promise.all(asking)
    expect(late).toEqual([])
    expect((await sign(session)).body.code).toBe("mail_paused")
    // The directory still names the key, without a signature.
    const { headers, keys } = await directoryOf(service.edgePort, handle)
    expect([keys.length, headers["signature"]]).toEqual([1, undefined])
    await turn("active")
    expect((await sign(key)).status).toBe(201)
  })

  it("with a rotated key or for a deleted Identity, whose documents are gone", async () => {
    const { handle: name, secrets } = await makeIdentity(service.base, session)
    const former = await keyOf(name)
    const path = `/api/identities/${name}`
    // The process has the former key in memory.
    expect((await sign(secrets.identity_key, {}, name)).status).toBe(201)
    await call(service.base, "POST", `${path}/signing-key/rotate`, { token: session })
    const { headers } = (await sign(secrets.identity_key, {}, name)).body
    const current = await keyOf(name)
    expect(current.kid).not.toBe(former.kid)
    await verifiedOrigin({ method: "GET", url, headers }, current)
    await expect(verifiedOrigin({ method: "GET", url, headers }, former)).rejects.toThrow()
    await call(service.base, "DELETE", path, { token: session })
    expect([401, 404, 409]).toContain((await sign(session, {}, name)).status)
    for (const document of [directoryPath, "/.well-known/did.json"]) {
      expect((await fetchPublic(service.edgePort, name, document)).status).toBe(404)
    }
  })
})

describe("a signing fetch", () => {
  it("of the SDK signs each hop of a redirect, and the body", async () => {
    const site = await startSite()
    try {
      const ada = createClient({ key, baseUrl: service.base }).identity(handle)
      const response = await ada.fetch(`${site.base}/moved`, { method: "POST", body: "{}" })
      expect(await response.text()).toBe("welcome")
      const [first, second] = site.seen
      expect([first!.method, second!.method]).toEqual(["POST", "GET"])
      expect(second!.url).toBe(`${site.base}/found?n=1`)
      const jwk = await keyOf()
      for (const seen of site.seen) expect(await verifiedOrigin(seen, jwk)).toBe(originOf(handle))
      expect(first!.headers["content-digest"]).toBe(
        `sha-256=:${createHash("sha256").update(first!.body).digest("base64")}:`,
      )
      expect(second!.headers).not.toHaveProperty("content-digest")
      await expect(ada.fetch(`${site.base}/moved`, { redirect: "error" })).rejects.toThrow("redirects")
      expect((await ada.fetch(`${site.base}/moved`, { redirect: "manual" })).status).toBe(303)
    } finally {
      await site.stop()
    }
  })

  it("of the command line prints what the site returns", async () => {
    const home = mkdtempSync(path.join(tmpdir(), "svc-fetch-"))
    const site = await startSite()
    try {
      const around = { home, env: { SVC_KEY: key, SVC_API_URL: service.base } }
      const got = await runHere(around, "fetch", `${site.base}/`, "-H", "accept: text/plain")
      expect(got).toEqual({ code: 0, out: "welcome", errors: "" })
      expect(site.seen[0]!.headers["accept"]).toBe("text/plain")
      expect(await verifiedOrigin(site.seen[0]!, await keyOf())).toBe(originOf(handle))
      const missing = await runHere(around, "fetch", `${site.base}/missing`, "-d", "x", "-i")
      expect([missing.code, site.seen[1]!.method]).toEqual([1, "POST"])
      expect(missing.out).toMatch(/^HTTP 404\n[^]*nothing here$/)
      expect(missing.errors).toContain("returned 404")
      expect((await runHere(around, "fetch", "shop")).code).toBe(2)
      await runHere(around, "fetch", `${site.base}/`, "-X", "PUT", "-d", "x", "-H", "a: 1", "-H", "b:2:3")
      expect(site.seen[2]).toMatchObject({ method: "PUT", body: "x", headers: { a: "1", b: "2:3" } })
      expect(await runHere(around, "fetch", "http://127.0.0.1:1/")).toMatchObject({ code: 3, out: "" })
      const foreign = await runHere(around, "fetch", `${site.base}/`, "--handle", "nobody-here")
      expect(foreign).toMatchObject({ code: 1, out: "", errors: expect.stringContaining("(foreign_identity, ") })
      // A site cannot control the terminal; a file gets its bytes.
      const { isTTY } = process.stdout
      for (const [isTerminal, text] of [
        [true, "\ufffd[31mred"],
        [false, "\u001b[31mred"],
      ] as const) {
        Object.assign(process.stdout, { isTTY: isTerminal })
        expect((await runHere(around, "fetch", `${site.base}/red`)).out).toBe(text)
      }
      Object.assign(process.stdout, { isTTY })
    } finally {
      await site.stop()
      rmSync(home, { recursive: true })
    }
  })
})
