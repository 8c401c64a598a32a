/** An account's server that is unreachable, does not respond, rejects or limits requests, or is malicious. */
import { createServer, type RequestListener, type Server } from "node:http"
import { createServer as createSocketServer, type Socket } from "node:net"
import { Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { openRig } from "../network/Rig.ts"
import { listening } from "../network/Service.ts"
import { connect, post, type Context } from "./Context.ts"

const cid = "bafyreidnbtbjip723jjcs7eixrh2mnunbzdjwuifwgmzbjob3jngxshg2q"
const aRecord = { uri: "at://did:plc:edq7nv5teq7r5zo5gcr57jwm/app.bsky.feed.post/3aaaaaaaaaaaa", cid, value: {} }

export const suite = (context: Context) =>
  describe("an account's server", () => {
    it("fails calls in flight during a restart and accepts the same session afterwards", async () => {
      const { session, rows } = await connect(context, context.ada)
      await context.network.stop()
      expect(await context.rig.failure(context.rig.platform.post(session, post("away")))).toMatchObject({
        _tag: "PlatformUnreachable",
      })
      await context.network.start()
      expect((await context.rig.run(context.rig.platform.post(session, post("back")))).text).toBe("back")
      expect(rows.keeps).toBe(0)
    })

    it("times out when it does not respond", async () => {
      const { connected, rows } = await connect(context, context.ada)
      const hasty = await openRig(context.network, { timeoutMillis: 300 })
      const sockets: Array<Socket> = []
      const silent = createSocketServer((socket) => void sockets.push(socket))
      await context.network.stop()
      await new Promise<void>((resolve) =>
        silent.listen(Number(new URL(context.network.pds).port), "localhost", resolve),
      )
      const failure = await hasty.failure(hasty.platform.post(hasty.session(connected, rows), post("silence")))
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => silent.close(resolve))
      await context.network.start()
      await hasty.close()
      expect(failure).toMatchObject({ _tag: "PlatformUnreachable" })
    })

    it("reports when a rate limit on sign-ins ends", async () => {
      const busy = await context.network.person("busy.test")
      const login = () =>
        context.rig.failure(
          context.rig.platform.login!(context.rig.visit, { account: busy.did, password: Redacted.make("wrong") }),
        )
      let failure = await login()
      for (let n = 0; n < 40 && failure._tag === "CredentialRefused"; n++) failure = await login()
      expect(failure).toMatchObject({ _tag: "PlatformRateLimited", until: expect.any(Date) })
    })

    /** Creates a Connector whose server is `listener`. */
    const at = async (
      listener: RequestListener,
      use: (connected: Awaited<ReturnType<typeof connect>>) => Promise<void>,
    ) => {
      const server: Server = createServer(listener)
      const port = await listening(server)
      const made = await connect(context, context.ada)
      const tokens = JSON.parse(Redacted.value(made.rows.credential))
      made.rows.credential = Redacted.make(JSON.stringify({ ...tokens, service: `http://localhost:${port}` }))
      try {
        await use(made)
      } finally {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    }
    const json =
      (status: number, body: string, headers = {}): RequestListener =>
      (_, response) =>
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)

    it("receives no calls while its rate limit is exhausted", async () => {
      const reset = Math.floor(Date.now() / 1_000) + 90
      const limits = { "ratelimit-limit": "3000", "ratelimit-remaining": "0", "ratelimit-reset": String(reset) }
      const refusal = JSON.stringify({ error: "RateLimitExceeded", message: "Rate Limit Exceeded" })
      await at(json(429, refusal, limits), async ({ session }) => {
        expect(await context.rig.failure(context.rig.platform.post(session, post("no")))).toMatchObject({
          _tag: "PlatformRateLimited",
          message: "Rate Limit Exceeded",
          until: new Date(reset * 1_000),
        })
      })
      await at(json(200, JSON.stringify({ notifications: [], logs: [], cursor: "1" }), limits), async ({ session }) => {
        const { notBefore } = await context.rig.run(context.rig.platform.poll(session, undefined))
        expect(notBefore).toEqual(new Date(reset * 1_000))
      })
    })

    it.each([
      ["an answer that is too long", json(200, JSON.stringify({ records: ["x".repeat(2 * 1024 * 1024)] }))],
      ["no JSON", json(200, "<html>")],
      ["nesting without end", json(200, `{"records":${"[".repeat(200_000)}${"]".repeat(200_000)}}`)],
      [
        "more values than anybody reads",
        json(200, JSON.stringify({ ...aRecord, records: Array.from({ length: 2_500 }, () => aRecord) })),
      ],
      ["what no lexicon says", json(200, JSON.stringify({ records: [{ uri: 1 }] }))],
      ["a way elsewhere", json(302, "", { location: "http://169.254.169.254/" })],
      ["an error of its own", json(500, JSON.stringify({ error: "InternalServerError", message: "Oops" }))],
      ["an error that is not JSON", json(502, "bad gateway")],
    ])("counts as unreachable when it responds with %s", async (_, listener) => {
      await at(listener, async ({ session }) => {
        expect(
          await context.rig.failure(context.rig.platform.posts(session, { limit: 10, cursor: undefined })),
        ).toMatchObject({ _tag: "PlatformUnreachable" })
      })
    })

    it("has too many replies to read, and the thread shows the post and the replies that fit", async () => {
      const uri = `at://${context.grace.did}/app.bsky.feed.post/3aaaaaaaaaaaa`
      const type = "app.bsky.feed.defs#threadViewPost"
      const node = (text: string, replies: ReadonlyArray<object>) => ({
        $type: type,
        post: {
          uri,
          cid,
          author: { did: context.grace.did, handle: "grace.test" },
          record: { text, createdAt: new Date().toISOString() },
          indexedAt: new Date().toISOString(),
        },
        replies,
      })
      const depths: Array<number> = []
      const popular: RequestListener = (request, response) => {
        const depth = Number(new URL(request.url!, "http://localhost").searchParams.get("depth"))
        depths.push(depth)
        const replies = Array.from({ length: depth > 1 ? 2_000 : 300 * depth }, (_, n) => node(`${n}`, []))
        json(200, JSON.stringify({ thread: node("popular", replies) }))(request, response)
      }
      await at(popular, async ({ session }) => {
        const { entries } = await context.rig.run(context.rig.platform.thread(session, uri))
        expect([entries[0]!.text, entries.length, depths]).toEqual(["popular", 200, [6, 1]])
      })
    })

    it("cannot exhaust memory with endless or oversized posts", async () => {
      const author = { did: context.grace.did, handle: "grace.test", displayName: "x".repeat(5_000) }
      let pages = 0
      const listener: RequestListener = (_, response) => {
        pages++
        const notifications = Array.from({ length: 100 }, (_, n) => ({
          uri: `at://${author.did}/app.bsky.feed.post/3aaaaa${String(pages).padStart(3, "2")}${String(n).padStart(4, "2")}`,
          cid,
          author: { did: author.did, handle: author.handle },
          reason: "mention",
          record: { text: `\u0000\ud800${"y".repeat(5_000)}`, createdAt: "+275760-09-13T00:00:00.000Z" },
          isRead: false,
          indexedAt: new Date().toISOString(),
        }))
        json(200, JSON.stringify({ notifications, cursor: String(pages), logs: [] }))(_, response)
      }
      await at(listener, async ({ session }) => {
        const mark = JSON.stringify({ floor: 0, seen: [] })
        const polled = await context.rig.run(context.rig.platform.poll(session, mark))
        expect(polled.received).toHaveLength(50)
        expect(polled.mark.length).toBeLessThan(8_192)
        expect(pages).toBeLessThan(50)
        for (const { post } of polled.received) {
          expect(post.text.includes("\0") || !post.text.isWellFormed()).toBe(false)
          expect(post.created_at.getUTCFullYear()).toBeLessThan(10_000)
        }
      })
    })
  })
