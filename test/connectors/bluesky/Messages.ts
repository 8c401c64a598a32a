/** Direct messages. */
import { describe, expect, it } from "vitest"
import { connect, post, type Context } from "./Context.ts"

export const suite = (context: Context) =>
  describe("direct messages", () => {
    it("are sent, answered, listed by conversation and reported by a poll", async () => {
      const one = await connect(context, context.ada)
      const other = await connect(context, context.alan)
      const firstPoll = await context.rig.run(context.rig.platform.poll(other.session, undefined))
      const sent = await context.rig.run(
        context.rig.platform.sendDm(one.session, post("hello https://example.com", { to: "@alan.test" })),
      )
      expect(sent).toMatchObject({ author: "ada.test", text: "hello https://example.com", url: null })
      const secondPoll = await context.rig.run(context.rig.platform.poll(other.session, firstPoll.mark))
      expect(secondPoll.received).toMatchObject([
        { kind: "dm", key: sent.uri, post: { author: "ada.test", uri: sent.uri } },
      ])
      expect((await context.rig.run(context.rig.platform.poll(other.session, secondPoll.mark))).received).toEqual([])
      const answer = post("hello back", { to: context.ada.did, replyTo: sent.uri })
      const back = await context.rig.run(context.rig.platform.sendDm(other.session, answer))
      expect(back.reply_to).toBe(sent.uri)
      const { entries } = await context.rig.run(context.rig.platform.dms(one.session, { limit: 10, cursor: undefined }))
      expect(entries.map(({ author, text }) => [author, text])).toContainEqual(["alan.test", "hello back"])
      const conversation = await context.rig.run(context.rig.platform.thread(one.session, back.uri))
      expect(conversation.entries.map(({ text }) => text)).toEqual(["hello https://example.com", "hello back"])
    })

    it("are sent once when the response is lost and the command is retried", async () => {
      const one = await connect(context, context.ada)
      const given = post("only once", { to: "grace.test" })
      context.network.chat.loseNextAnswer()
      expect(await context.rig.failure(context.rig.platform.sendDm(one.session, given))).toMatchObject({
        _tag: "PlatformUnreachable",
      })
      const sent = await context.rig.run(context.rig.platform.sendDm(one.session, { ...given, again: true }))
      const { entries } = await context.rig.run(context.rig.platform.thread(one.session, sent.uri))
      expect(entries.filter(({ text }) => text === "only once")).toHaveLength(1)
    })

    it("are unsupported with an app password that excludes them, while polls still report mentions", async () => {
      const ida = await context.network.person("ida.test")
      const { session, rows } = await connect(context, ida, false)
      expect(
        await context.rig.failure(context.rig.platform.sendDm(session, post("hi", { to: "ada.test" }))),
      ).toMatchObject({
        _tag: "Unsupported",
      })
      const firstPoll = await context.rig.run(context.rig.platform.poll(session, undefined))
      await context.grace.post("@ida.test hear")
      const secondPoll = await context.rig.run(context.rig.platform.poll(session, firstPoll.mark))
      expect(secondPoll.received.map(({ post }) => post.text)).toEqual(["@ida.test hear"])
      expect(rows.kept.get("dm")).toBe("false")
    })

    it("reject options and a reply to a message of another conversation", async () => {
      const one = await connect(context, context.ada)
      const toAlan = await context.rig.run(context.rig.platform.sendDm(one.session, post("a", { to: "alan.test" })))
      expect(
        await context.rig.failure(
          context.rig.platform.sendDm(one.session, post("b", { to: "grace.test", replyTo: toAlan.uri })),
        ),
      ).toMatchObject({ _tag: "InputRefused", path: "/reply_to" })
      expect(
        await context.rig.failure(
          context.rig.platform.validate(post("b", { to: "grace.test", options: { langs: [] } })),
        ),
      ).toMatchObject({
        unknownOption: true,
      })
    })
  })
