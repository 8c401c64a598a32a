/** Remote images of messages: which addresses the service requests for a reader, and what the reader gets. */
import * as MailImages from "@svc/api/console/MailImages"
import { CredentialLookup } from "@svc/cluster/account/CredentialLookup"
import { GuardedClient } from "@svc/cluster/net/GuardedClient"
import { Sealing } from "@svc/cluster/sealing/Sealing"
import { Effect, Layer } from "effect"
import { HttpRouter } from "effect/http"
import { describe, expect, it, vi } from "vitest"

const png = Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), Buffer.alloc(8)])
type Response = readonly [status: number, body: Uint8Array, location?: string]

/** Requests the image at an address, of a web with these responses. Returns the response and the addresses that were requested. */
const shown = async (
  address: string,
  web: Readonly<Record<string, Response>>,
  { dest = "image", kind = "session", stamp = "console/image", isOwn = true, count = 1 } = {},
) => {
  const requested: Array<string> = []
  const sizes = new Set<number>()
  const ask = (url: URL, { atMost }: { readonly atMost: number }) => {
    requested.push(url.href)
    sizes.add(atMost)
    const found = web[url.href]
    if (found === undefined) return Effect.fail({ error: "connection" })
    if (found[0] === 0) return Effect.fail({ error: "refused_address" })
    if (found[0] === 1) return Effect.never
    const [status, body, location] = found
    return Effect.succeed({ status, body, headers: new Headers(location === undefined ? {} : { location }) })
  }
  const stamped = (text: string) => Buffer.from(text).toString("base64url")
  const parts = Layer.mergeAll(
    Layer.succeed(GuardedClient, { ask } as never),
    Layer.succeed(CredentialLookup, {
      resolveNaming: (_: unknown, handle: string) =>
        Effect.succeed({ caller: { kind }, named: isOwn && handle === "ada" ? { id: "x" } : undefined }),
    } as never),
    Layer.succeed(Sealing, {
      unstamp: (scope: string, text: string) =>
        scope === stamp ? Buffer.from(text, "base64url").toString() : undefined,
    } as never),
  )
  const { handler, dispose } = HttpRouter.toWebHandler(MailImages.layer.pipe(Layer.provide(parts)), {
    disableLogger: true,
  })
  const headers = { authorization: "Bearer x", "sec-fetch-dest": dest }
  const get = () => handler(new Request(`http://api/console/mail/Ada/m/images/${stamped(address)}`, { headers }))
  const [response] = (await Promise.all(Array.from({ length: count }, get))) as [globalThis.Response]
  const outcome = response.status === 200 ? response.headers.get("content-type") : response.status
  const policy = response.headers.get("cache-control")
  await dispose()
  return { outcome, policy, requested, sizes, headers: response.headers }
}

const at = (path: string) => `https://a.example/${path}`
/** A chain of redirects to an image. */
const chain = (length: number): Record<string, Response> =>
  Object.fromEntries(
    Array.from({ length: length + 1 }, (_, n) => [
      at(`${n}`),
      n === length
        ? [200, png]
        : [[301, 302, 303, 307, 308][n]!, Buffer.alloc(0), n % 2 === 0 ? `/${n + 1}` : at(`${n + 1}`)],
    ]),
  )

describe("A remote image", () => {
  it.each([0, 1, 2, 3])("is shown after %d redirects", async (length) => {
    const { outcome, policy, requested } = await shown(at("0"), chain(length))
    expect([outcome, policy]).toEqual(["image/png", "private, max-age=86400"])
    expect(requested).toEqual(Array.from({ length: length + 1 }, (_, n) => at(`${n}`)))
  })

  it("is not shown after more than 3 redirects", async () => {
    const { outcome, policy, requested } = await shown(at("0"), chain(4))
    expect([outcome, policy, requested.length]).toEqual([404, "no-store", 4])
  })

  it.each<readonly [string, Record<string, Response>, number]>([
    ["a redirect without an address", { [at("0")]: [302, png] }, 1],
    ["a redirect to something else than an address", { [at("0")]: [302, png, "http://["] }, 1],
    ["an error with an image", { [at("0")]: [404, png] }, 1],
    ["an empty response", { [at("0")]: [200, Buffer.alloc(0)] }, 1],
    ["a page", { [at("0")]: [200, Buffer.from("<svg onload=x>")] }, 1],
    ["a host that does not respond", {}, 1],
    ["a private host", { [at("0")]: [0, png] }, 1],
    ["a redirect to a private host", { [at("0")]: [302, png, "https://10.0.0.1/"], "https://10.0.0.1/": [0, png] }, 2],
  ])("is not shown for %s", async (_, web, requests) => {
    const { outcome, requested } = await shown(at("0"), web)
    expect([outcome, requested.length]).toEqual([404, requests])
  })

  it("is requested by https where http is refused, also after a redirect", async () => {
    const web: Record<string, Response> = {
      "http://a.example/0": [0, png],
      [at("0")]: [302, png, "http://b.example/1"],
      "http://b.example/1": [0, png],
      "https://b.example/1": [200, png],
    }
    const { outcome, requested } = await shown("http://a.example/0", web)
    expect([outcome, requested]).toEqual([
      "image/png",
      ["http://a.example/0", at("0"), "http://b.example/1", "https://b.example/1"],
    ])
    expect((await shown("http://a.example/9", { [at("9")]: [200, png] })).requested).toEqual(["http://a.example/9"])
  })

  it.each([
    ["image/png", "89504e470d0a1a0a"],
    ["image/jpeg", "ffd8ffe0"],
    ["image/gif", Buffer.from("GIF89a").toString("hex")],
    ["image/webp", Buffer.from("RIFF\0\0\0\0WEBP").toString("hex")],
    ["image/avif", Buffer.from("\0\0\0\u0020ftypavif").toString("hex")],
    [404, Buffer.from("RIFF\0\0\0\0WAVE").toString("hex")],
    [404, Buffer.from("\0\0\0\u0020ftypmp42").toString("hex")],
  ])("is %s by its content, whatever its server says: %s", async (type, hex) => {
    expect((await shown(at("0"), { [at("0")]: [200, Buffer.from(hex, "hex")] })).outcome).toBe(type)
  })

  it("cannot run scripts, is for pages of this service only, and has at most 5 MiB", async () => {
    const { headers, sizes } = await shown(at("0"), chain(0))
    expect(headers.get("content-security-policy")).toBe("default-src 'none'; sandbox")
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin")
    expect([...sizes]).toEqual([5 * 1024 * 1024])
  })

  it("is not shown after 10 seconds without a response, and 12 are requested at the same time", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      const showing = shown(at("0"), { [at("0")]: [1, png] }, { count: 13 })
      await vi.advanceTimersByTimeAsync(9_999)
      let isOver = false
      void showing.finally(() => (isOver = true))
      await vi.advanceTimersByTimeAsync(9_999)
      expect(isOver).toBe(false)
      await vi.advanceTimersByTimeAsync(2)
      const { outcome, requested } = await showing
      expect([outcome, requested.length]).toEqual([404, 13])
    } finally {
      vi.useRealTimers()
    }
  })

  it.each([{ dest: "document" }, { kind: "admin_key" }, { stamp: "console/leave" }, { isOwn: false }])(
    "is not requested for %j",
    async (change) => {
      const { outcome, requested } = await shown(at("0"), chain(0), change)
      expect([outcome, requested]).toEqual([404, []])
    },
  )
})
