/** The Events of a poll, and the entries of a list of notifications. */
import { describe, expect, it } from "vitest"
import { connect, post, recordAt, type Context } from "./Context.ts"

export const suite = (context: Context) =>
  describe("posts for the account", () => {
    it("are reported once, from the connection on, oldest first", async () => {
      const turing = await context.network.person("turing.test")
      await context.grace.post("@turing.test before")
      const { session } = await connect(context, turing)
      const poll = (mark?: string) => context.rig.run(context.rig.platform.poll(session, mark))
      const firstPoll = await poll()
      expect(firstPoll.received).toEqual([])
      const own = await context.rig.run(context.rig.platform.post(session, post("I compute")))
      await context.grace.post("@turing.test first")
      const answered = { uri: own.uri, cid: (await recordAt(context, own.uri)).cid }
      await context.alan.post("second", { reply: { root: answered, parent: answered } })
      const secondPoll = await poll(firstPoll.mark)
      expect(secondPoll.received.map(({ kind, post, key }) => [kind, post.text, key === post.uri])).toEqual([
        ["mention", "@turing.test first", true],
        ["reply", "second", true],
      ])
      expect(secondPoll.more).toBe(false)
      expect((await poll(secondPoll.mark)).received).toEqual([])
      // A poll from an earlier mark, whose successor was not committed, returns the same posts again.
      expect((await poll(firstPoll.mark)).received).toHaveLength(2)
    })

    it("are all reported after a burst and when a clock of the network is slow", async () => {
      const hedy = await context.network.person("hedy.test")
      const { session } = await connect(context, hedy)
      const firstPoll = await context.rig.run(context.rig.platform.poll(session, undefined))
      const start = Date.now() - 600_000
      for (let n = 0; n < 60; n++) await context.grace.post(`@hedy.test ${n}`, { at: new Date(start + n * 1_000) })
      const received: Array<string> = []
      let mark = firstPoll.mark
      let more = true
      while (more) {
        const next = await context.rig.run(context.rig.platform.poll(session, mark))
        expect(next.received.length).toBeLessThanOrEqual(100)
        received.push(...next.received.map(({ post }) => post.text))
        ;({ mark, more } = next)
      }
      expect(received).toEqual(Array.from({ length: 60 }, (_, n) => `@hedy.test ${n}`))
      // This post arrives last, but its time is before that of posts that were already reported.
      await context.alan.post("@hedy.test late", { at: new Date(start + 50_500) })
      const late = await context.rig.run(context.rig.platform.poll(session, mark))
      expect(late.received.map(({ post }) => post.text)).toEqual(["@hedy.test late"])
      // The list has the same entries in order and without duplicates, although it spans several pages of the server and contains a direct
      // message.
      const other = await connect(context, context.ada)
      await context.rig.run(context.rig.platform.sendDm(other.session, post("psst", { to: "hedy.test" })))
      const { entries } = await context.rig.run(
        context.rig.platform.notifications(session, { limit: 100, cursor: undefined }),
      )
      const expected = Array.from({ length: 60 }, (_, n) => `@hedy.test ${n}`).toReversed()
      expect(entries.map(({ post }) => post.text)).toEqual(["psst", ...expected.toSpliced(9, 0, "@hedy.test late")])
    })

    it("are not reported if they are older than the connection, even when newer ones are deleted", async () => {
      const marie = await context.network.person("marie.test")
      const start = Date.now() - 600_000
      const made: Array<{ uri: string }> = []
      for (let n = 0; n < 55; n++)
        made.push(await context.grace.post(`@marie.test ${n}`, { at: new Date(start + n * 1_000) }))
      const { session } = await connect(context, marie)
      const firstPoll = await context.rig.run(context.rig.platform.poll(session, undefined))
      for (const { uri } of made.slice(-20)) {
        await context.grace.agent.com.atproto.repo.deleteRecord({
          repo: context.grace.did,
          collection: "app.bsky.feed.post",
          rkey: uri.split("/").at(-1)!,
        })
      }
      expect((await context.rig.run(context.rig.platform.poll(session, firstPoll.mark))).received).toEqual([])
    })

    it("are listed newest first in pages that include direct messages", async () => {
      const emmy = await context.network.person("emmy.test")
      const { session } = await connect(context, emmy)
      const other = await connect(context, context.grace)
      for (let n = 0; n < 3; n++) await context.grace.post(`@emmy.test ${n}`)
      await context.rig.run(context.rig.platform.sendDm(other.session, post("psst", { to: "emmy.test" })))
      // The message may have been sent in the current millisecond.
      await context.grace.post("@emmy.test 3", { at: new Date(Date.now() + 1) })
      const pages: Array<Array<string>> = []
      let cursor: string | undefined
      do {
        const page = await context.rig.run(context.rig.platform.notifications(session, { limit: 2, cursor }))
        pages.push(page.entries.map(({ post }) => post.text))
        cursor = page.cursor ?? undefined
      } while (cursor !== undefined && pages.length < 10)
      expect(pages.filter((page) => page.length > 0)).toEqual([
        ["@emmy.test 3", "psst"],
        ["@emmy.test 2", "@emmy.test 1"],
        ["@emmy.test 0"],
      ])
    })
  })
