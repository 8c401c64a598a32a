/** OAuth with the server's own authorization server: PAR, PKCE, DPoP and, with a public address, private_key_jwt. */
import { metadata } from "@svc/cluster/connectors/platforms/bluesky/ClientMetadata"
import type { Connected } from "@svc/cluster/connectors/platforms/Platform"
import { Redacted } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openBrowser } from "../../harness/Browser.ts"
import { consent } from "../network/Consent.ts"
import { openRig, type Rig } from "../network/Rig.ts"
import { type Context, post } from "./Context.ts"
import { has } from "../../harness/Programs.ts"

/** No request is sent to this address. The server rejects domain names that are reserved for examples. */
const publicUrl = "https://connectors.agent-identity.dev"
const localUrl = "http://localhost:8080"

export const suite = (context: Context) =>
  describe("OAuth", () => {
    let known: Rig
    let local: Rig
    const fetched: Array<string> = []
    const fetch = globalThis.fetch

    beforeAll(async () => {
      known = await openRig(context.network, { baseUrl: publicUrl })
      local = await openRig(context.network, { baseUrl: localUrl })
      // The authorization server fetches our client metadata document from its public address, which does not exist on this machine.
      globalThis.fetch = (async (input, init) => {
        const url = input instanceof Request ? input.url : String(input)
        if (!url.startsWith(publicUrl)) return fetch(input, init)
        fetched.push(url)
        return Response.json(metadata({ baseUrl: publicUrl } as Parameters<typeof metadata>[0], known.key))
      }) as typeof fetch
    })
    afterAll(async () => {
      globalThis.fetch = fetch
      await known?.close()
      await local?.close()
    })

    const begin = (rig: Rig, baseUrl: string, account: string | undefined) =>
      rig.run(
        rig.platform.authorize(rig.visit, { account, state: "ours", redirectUri: `${baseUrl}/connectors/callback` }),
      )
    type Begun = Awaited<ReturnType<typeof begin>>
    const back = (baseUrl: string, { kept, state }: Begun, query: URLSearchParams) => ({
      kept,
      state,
      redirectUri: `${baseUrl}/connectors/callback`,
      query,
    })
    const connect = async (rig: Rig, baseUrl: string, account: string | undefined, person = context.ada) => {
      const started = await begin(rig, baseUrl, account)
      const returned = await consent(started.url, person)
      const connected = await rig.run(rig.platform.finish(rig.visit, back(baseUrl, started, returned.searchParams)))
      const rows = rig.rows(connected)
      return { started, returned, connected, rows, session: rig.session(connected, rows) }
    }
    /** Lets the access token expire. */
    const expire = (rows: { credential: Connected["credential"] }) => {
      const kept = JSON.parse(Redacted.value(rows.credential))
      kept.saved.tokenSet.expires_at = new Date(Date.now() - 60_000).toISOString()
      rows.credential = Redacted.make(JSON.stringify(kept))
    }

    it("connects with the published client metadata, and posts, polls and sends direct messages", async () => {
      const { started, returned, connected, session } = await connect(known, publicUrl, "ada.test")
      expect(fetched).toContain(`${publicUrl}/api/connectors/bluesky/client-metadata.json`)
      expect(started.state).toBe(returned.searchParams.get("state"))
      expect(returned.origin + returned.pathname).toBe(`${publicUrl}/connectors/callback`)
      expect(connected).toMatchObject({
        account: { name: "ada.test", id: context.ada.did, service: context.network.pds },
        via: "oauth",
        capabilities: ["post", "reply", "thread", "notifications", "dm"],
      })
      const made = await known.run(known.platform.post(session, post("by OAuth")))
      expect(made.author).toBe("ada.test")
      const { mark } = await known.run(known.platform.poll(session, undefined))
      await context.grace.post("@ada.test do you hear?")
      const { received } = await known.run(known.platform.poll(session, mark))
      expect(received.map(({ post }) => post.text)).toEqual(["@ada.test do you hear?"])
      const sent = await known.run(known.platform.sendDm(session, post("by OAuth", { to: "grace.test" })))
      expect(sent.text).toBe("by OAuth")
      expect((await known.run(known.platform.inspect(session))).account.id).toBe(context.ada.did)
      const disclosed = await known.run(known.platform.disclose(session))
      expect((await known.run(known.platform.inspect(session))).disclosed).toBe(true)
      await known.run(known.platform.undisclose(session, disclosed!))
    })

    it.skipIf(!has("chromium"))(
      "leads a person through the server's pages and back, in a browser",
      async () => {
        const started = await begin(known, publicUrl, "ada.test")
        const page = await (await openBrowser()).newPage()
        try {
          // Our redirect page has no public address on this machine. Some browsers do not let a test intercept a redirect, but all of them
          // report its target.
          await page.route(`${publicUrl}/**`, (route) => route.fulfill({ body: "Connected." }))
          const arrived = page.waitForRequest((request) => request.url().startsWith(`${publicUrl}/`))
          await page.goto(started.url)
          await page.locator('input[name="password"]').fill(context.ada.password)
          await page.locator('button[type="submit"]').click()
          await page.getByRole("button", { name: /authorize|accept|allow/i }).click()
          const { searchParams } = new URL((await arrived).url())
          const connected = await known.run(known.platform.finish(known.visit, back(publicUrl, started, searchParams)))
          expect(connected.account).toMatchObject({ name: "ada.test", id: context.ada.did })
        } finally {
          await page.close()
        }
      },
      120_000,
    )

    it("works without a public address through a loopback redirect", async () => {
      const { returned, connected } = await connect(local, localUrl, undefined)
      expect(returned.origin).toBe("http://127.0.0.1:8080")
      expect(connected.account.id).toBe(context.ada.did)
    })

    it("fails if the person denies it, and accepts a redirect once and only with its own state", async () => {
      const started = await begin(known, publicUrl, "ada.test")
      const returned = await consent(started.url, context.ada, "no")
      expect(
        await known.failure(known.platform.finish(known.visit, back(publicUrl, started, returned.searchParams))),
      ).toMatchObject({ _tag: "CredentialRefused", message: "The user rejected the request" })

      const other = await begin(known, publicUrl, "ada.test")
      const { searchParams } = await consent(other.url, context.ada)
      const foreign = new URLSearchParams(searchParams)
      foreign.set("state", "somebody else's")
      await known.failure(known.platform.finish(known.visit, back(publicUrl, other, foreign)))
      const mixed = new URLSearchParams(searchParams)
      mixed.set("iss", "https://evil.example.com")
      await known.failure(known.platform.finish(known.visit, back(publicUrl, other, mixed)))
      await known.run(known.platform.finish(known.visit, back(publicUrl, other, searchParams)))
      expect(
        await known.failure(known.platform.finish(known.visit, back(publicUrl, other, searchParams))),
      ).toMatchObject({ _tag: "CredentialRefused" })
    })

    it("refreshes once when several processes find the token near its end, and takes no lock otherwise", async () => {
      const { connected, rows, session } = await connect(known, publicUrl, "ada.test")
      await known.run(known.platform.post(session, post("no lock")))
      expect([rows.locked, rows.keeps]).toEqual([0, 0])
      const before = rows.credential
      expire(rows)
      const processes = [session, known.session(connected, rows), known.session(connected, rows)]
      await Promise.all(processes.map((one, n) => known.run(known.platform.post(one, post(`process ${n}`)))))
      expect(rows.keeps).toBe(1)
      const [old, now] = [before, rows.credential].map((one) => JSON.parse(Redacted.value(one)).saved.tokenSet)
      expect(now.refresh_token).not.toBe(old.refresh_token)
      expect(now.sub).toBe(context.ada.did)
    })

    it("reuses nonces, so that no call is made twice", async () => {
      const { rows, session } = await connect(known, publicUrl, "ada.test")
      const calls = async () => {
        let posts = 0
        const fetch: typeof session.http.fetch = (input, init) => {
          if ((input instanceof Request ? input.url : String(input)).includes("createRecord")) posts++
          return session.http.fetch(input, init)
        }
        await known.run(known.platform.post({ ...session, http: { ...session.http, fetch } }, post("nonce")))
        return posts
      }
      await calls()
      expect(JSON.parse(rows.kept.get("nonces")!)).toHaveProperty([context.network.pds])
      expect(await calls()).toBe(1)
    })

    it("fails when a refresh token is spent twice, as after a crash before the commit", async () => {
      const { rows, session } = await connect(known, publicUrl, "ada.test")
      expire(rows)
      const spent = rows.credential
      await known.run(known.platform.post(session, post("one")))
      rows.credential = spent
      expect(await known.failure(known.platform.post(session, post("two")))).toMatchObject({
        _tag: "CredentialRefused",
      })
    })

    it("revokes the session at the authorization server, also if it has already ended", async () => {
      const { rows, session } = await connect(known, publicUrl, "ada.test")
      await known.run(known.platform.revoke(session))
      await known.run(known.platform.revoke(session))
      expire(rows)
      expect(await known.failure(known.platform.post(session, post("no")))).toMatchObject({ _tag: "CredentialRefused" })
    })

    it("reports a failed revocation when the server is unreachable", async () => {
      const { session } = await connect(known, publicUrl, "ada.test")
      await context.network.stop()
      const failure = await known.failure(known.platform.revoke(session))
      await context.network.start()
      expect(failure).toMatchObject({ _tag: "PlatformUnreachable" })
      await known.run(known.platform.revoke(session))
    })

    it("rejects an unknown account as invalid input", async () => {
      const request = { account: "nobody.test", state: "ours", redirectUri: `${publicUrl}/connectors/callback` }
      expect(await known.failure(known.platform.authorize(known.visit, request))).toMatchObject({
        _tag: "InputRefused",
        path: "/account",
      })
    })
  })
