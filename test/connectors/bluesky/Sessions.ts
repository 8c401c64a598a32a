/** Sessions with an app password: they are reused, refreshed once by concurrent calls, and ended. */
import { createHmac } from "node:crypto"
import { Redacted } from "effect"
import { describe, expect, it } from "vitest"
import type { Session } from "@svc/cluster/connectors/platforms/Platform"
import type { Rows } from "../network/Rig.ts"
import { tokenSecret } from "../network/Servers.ts"
import { connect, post, type Context } from "./Context.ts"

/** Replaces the access token with one that expired. */
const expire = (rows: Rows) => {
  const tokens = JSON.parse(Redacted.value(rows.credential))
  const [head, claims] = tokens.accessJwt.split(".")
  const ended = { ...JSON.parse(Buffer.from(claims, "base64url").toString()), exp: Math.floor(Date.now() / 1_000) - 60 }
  const signed = `${head}.${Buffer.from(JSON.stringify(ended)).toString("base64url")}`
  const mark = createHmac("sha256", tokenSecret).update(signed).digest("base64url")
  rows.credential = Redacted.make(JSON.stringify({ ...tokens, accessJwt: `${signed}.${mark}` }))
}

/** Records the methods that a session calls. */
const watched = (session: Session) => {
  const called: Array<string> = []
  const fetch: typeof globalThis.fetch = (input, init) => {
    called.push(new URL(input instanceof Request ? input.url : String(input)).pathname.split("/").at(-1)!)
    return session.http.fetch(input, init)
  }
  return { called, session: { ...session, http: { ...session.http, fetch } } }
}

export const suite = (context: Context) =>
  describe("app password session", () => {
    it("serves every call without another sign-in or a lock", async () => {
      const { session, rows } = await connect(context, context.ada)
      const seen = watched(session)
      await context.rig.run(context.rig.platform.post(seen.session, post("a")))
      await context.rig.run(context.rig.platform.inspect(seen.session))
      await context.rig.run(context.rig.platform.poll(seen.session, undefined))
      expect(seen.called).not.toContain("com.atproto.server.createSession")
      expect(seen.called).not.toContain("com.atproto.server.refreshSession")
      expect(rows.locked).toBe(0)
    })

    it("refreshes an expired access token and stores the new tokens before the call continues", async () => {
      const { session, rows } = await connect(context, context.ada)
      expire(rows)
      const before = rows.credential
      const { text } = await context.rig.run(context.rig.platform.post(session, post("after two hours")))
      expect(text).toBe("after two hours")
      expect([rows.locked, rows.keeps]).toEqual([1, 1])
      const [old, now] = [before, rows.credential].map((one) => JSON.parse(Redacted.value(one)))
      expect(now.refreshJwt).not.toBe(old.refreshJwt)
      await context.rig.run(context.rig.platform.post(session, post("and on")))
      expect(rows.keeps).toBe(1)
    })

    it("is refreshed once when several processes find it expired", async () => {
      const { connected, session, rows } = await connect(context, context.ada)
      expire(rows)
      const processes = [session, context.rig.session(connected, rows), context.rig.session(connected, rows)].map(
        watched,
      )
      await Promise.all(
        processes.map((one, n) => context.rig.run(context.rig.platform.post(one.session, post(`process ${n}`)))),
      )
      expect(processes.flatMap(({ called }) => called).filter((name) => name.endsWith("refreshSession"))).toHaveLength(
        1,
      )
      expect(rows.keeps).toBe(1)
    })

    it("survives a crash between the platform's response and the commit", async () => {
      const { session, rows } = await connect(context, context.ada)
      expire(rows)
      const before = rows.credential
      await context.rig.run(context.rig.platform.post(session, post("one")))
      // The state as if the refreshed credential was never committed.
      rows.credential = before
      await context.rig.run(context.rig.platform.post(session, post("two")))
      expect(rows.keeps).toBe(2)
    })

    it("fails with the platform's message after the owner revokes the app password", async () => {
      const { session, rows } = await connect(context, context.ada)
      const { data } = await context.ada.agent.com.atproto.server.listAppPasswords()
      for (const { name } of data.passwords) await context.ada.agent.com.atproto.server.revokeAppPassword({ name })
      expire(rows)
      const before = rows.credential
      expect(await context.rig.failure(context.rig.platform.poll(session, undefined))).toEqual(
        expect.objectContaining({ _tag: "CredentialRefused", message: "Token has been revoked" }),
      )
      expect(rows.credential).toBe(before)
    })

    it("sends nothing once the Connector is paused", async () => {
      const { session, rows } = await connect(context, context.ada)
      rows.paused = true
      expect(await context.rig.failure(context.rig.platform.post(session, post("no")))).toMatchObject({
        _tag: "Halted",
        reason: "paused",
      })
    })

    it("is revoked, also if it has already ended", async () => {
      const { session, rows } = await connect(context, context.ada)
      await context.rig.run(context.rig.platform.revoke(session))
      await context.rig.run(context.rig.platform.revoke(session))
      expire(rows)
      expect(await context.rig.failure(context.rig.platform.post(session, post("no")))).toMatchObject({
        _tag: "CredentialRefused",
      })
    })
  })
