/** Reading the account's posts and conversations. */
import { describe, expect, it } from "vitest"
import { connect, post, type Context } from "./Context.ts"

export const suite = (context: Context) =>
  describe("reading", () => {
    it("pages through the account's own posts, newest first", async () => {
      const hopper = await context.network.person("hopper.test")
      const { session } = await connect(context, hopper)
      for (const text of ["one", "two", "three"]) await context.rig.run(context.rig.platform.post(session, post(text)))
      const first = await context.rig.run(context.rig.platform.posts(session, { limit: 2, cursor: undefined }))
      expect(first.entries.map(({ text }) => text)).toEqual(["three", "two"])
      const second = await context.rig.run(context.rig.platform.posts(session, { limit: 2, cursor: first.cursor! }))
      expect(second.entries.map(({ text }) => text)).toEqual(["one"])
      const third =
        second.cursor === null
          ? null
          : await context.rig.run(context.rig.platform.posts(session, { limit: 2, cursor: second.cursor }))
      expect(third?.entries ?? []).toEqual([])
    })

    it("returns a conversation from its root, with replies after the post", async () => {
      const { session } = await connect(context, context.ada)
      const root = await context.grace.post("root")
      const question = await context.rig.run(context.rig.platform.post(session, post("asked", { replyTo: root.uri })))
      const parent = {
        uri: question.uri,
        cid: (
          await context.grace.agent.com.atproto.repo.getRecord({
            repo: context.ada.did,
            collection: "app.bsky.feed.post",
            rkey: question.uri.split("/").at(-1)!,
          })
        ).data.cid!,
      }
      await context.alan.post("answered", { reply: { root, parent } })
      const { entries } = await context.rig.run(context.rig.platform.thread(session, question.uri))
      expect(entries.map(({ author, text }) => [author, text])).toEqual([
        ["grace.test", "root"],
        ["ada.test", "asked"],
        ["alan.test", "answered"],
      ])
      expect(
        await context.rig.failure(
          context.rig.platform.thread(session, `at://${context.grace.did}/app.bsky.feed.post/3aaaaaaaaaaaa`),
        ),
      ).toMatchObject({
        _tag: "PlatformRefused",
        missing: true,
      })
    })
  })
