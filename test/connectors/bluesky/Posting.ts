/** Posts that the account publishes. */
import { describe, expect, it } from "vitest"
import { connect, recordAt, post, type Context } from "./Context.ts"

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
)

export const suite = (context: Context) =>
  describe("posting", () => {
    it("marks links and mentions of existing accounts", async () => {
      const { session } = await connect(context, context.ada)
      const made = await context.rig.run(
        context.rig.platform.post(session, post("Hëllo @grace.test and @nobody.test, see https://example.com/x.")),
      )
      expect(made).toMatchObject({
        author: "ada.test",
        author_id: context.ada.did,
        text: "Hëllo @grace.test and @nobody.test, see https://example.com/x.",
        reply_to: null,
        url: `https://bsky.app/profile/${context.ada.did}/post/${made.uri.split("/").at(-1)}`,
      })
      const { facets } = (await recordAt(context, made.uri)).value
      expect(facets).toEqual([
        {
          $type: "app.bsky.richtext.facet",
          index: { byteStart: 7, byteEnd: 18 },
          features: [{ $type: "app.bsky.richtext.facet#mention", did: context.grace.did }],
        },
        {
          index: { byteStart: 41, byteEnd: 62 },
          features: [{ $type: "app.bsky.richtext.facet#link", uri: "https://example.com/x" }],
        },
      ])
    })

    it("writes languages, self-labels and images with descriptions", async () => {
      const { session } = await connect(context, context.ada)
      const images = [{ content_base64: png.toString("base64"), content_type: "image/png", alt: "one dot" }]
      const options = { langs: ["en", "pt-BR"], labels: ["graphic-media"], images }
      const made = await context.rig.run(context.rig.platform.post(session, post("look", { options })))
      const record = (await recordAt(context, made.uri)).value
      expect(record).toMatchObject({
        langs: ["en", "pt-BR"],
        labels: { $type: "com.atproto.label.defs#selfLabels", values: [{ val: "graphic-media" }] },
        embed: { $type: "app.bsky.embed.images", images: [{ alt: "one dot" }] },
      })
      const cid = record.embed.images[0].image.ref.toString()
      const { data } = await context.ada.agent.com.atproto.sync.getBlob({ did: context.ada.did, cid })
      expect(Buffer.from(data)).toEqual(png)
    })

    it("counts graphemes like the platform: 300 families pass within the byte limit, 301 characters do not", async () => {
      const { session } = await connect(context, context.ada)
      await context.rig.run(context.rig.platform.validate(post("é".normalize("NFD").repeat(300))))
      const made = await context.rig.run(context.rig.platform.post(session, post("👍🏽".repeat(300))))
      expect((await recordAt(context, made.uri)).value).toMatchObject({ text: "👍🏽".repeat(300) })
      expect(await context.rig.failure(context.rig.platform.validate(post("a".repeat(301))))).toMatchObject({
        _tag: "InputRefused",
        path: "/text",
        message: "The text has 301 characters; Bluesky allows 300.",
      })
      // 200 family emoji are 5,000 bytes, which exceeds the platform's limit in bytes.
      expect(await context.rig.failure(context.rig.platform.validate(post("👩‍👩‍👧‍👦".repeat(200))))).toMatchObject({
        path: "/text",
      })
    })

    it("validates without any call and rejects unknown options", async () => {
      const refused = async (options: Record<string, unknown>) =>
        context.rig.failure(context.rig.platform.validate(post("x", { options })))
      expect(await refused({ visibility: "public" })).toMatchObject({
        path: "/options/bluesky/visibility",
        unknownOption: true,
      })
      expect(await refused({ langs: ["en", "de", "fr", "it"] })).toMatchObject({ path: "/options/bluesky/langs" })
      expect(await refused({ langs: ["not a language"] })).toMatchObject({ path: "/options/bluesky/langs/0" })
      const image = { content_base64: png.toString("base64"), content_type: "image/png", alt: "" }
      expect(await refused({ images: [image, { ...image, content_type: "image/jpeg" }] })).toMatchObject({
        path: "/options/bluesky/images/1/content_base64",
      })
      expect(await refused({ images: [{ ...image, content_type: "toString" }] })).toMatchObject({
        path: "/options/bluesky/images/0/content_type",
      })
      expect(await refused({ images: [{ ...image, width: 1 }] })).toMatchObject({ unknownOption: true })
      expect(await refused({ images: Array.from({ length: 5 }, () => image) })).toMatchObject({
        path: "/options/bluesky/images",
      })
    })

    it("creates one post for a retried command", async () => {
      const { session } = await connect(context, context.ada)
      const given = post("once")
      const first = await context.rig.run(context.rig.platform.post(session, given))
      const repeated = await context.rig.run(context.rig.platform.post(session, { ...given, again: true }))
      expect(repeated).toMatchObject({ uri: first.uri, text: "once" })
      const { entries } = await context.rig.run(context.rig.platform.posts(session, { limit: 50, cursor: undefined }))
      expect(entries.filter(({ text }) => text === "once")).toHaveLength(1)
      // The first attempt of this command created no post.
      const other = await context.rig.run(context.rig.platform.post(session, post("late", { again: true })))
      expect(other.text).toBe("late")
    })

    it("replies with root and parent, also to the URL of the post's page", async () => {
      const { session } = await connect(context, context.ada)
      const root = await context.grace.post("What is new?")
      const first = await context.rig.run(context.rig.platform.post(session, post("Much.", { replyTo: root.uri })))
      expect(first.reply_to).toBe(root.uri)
      const page = first.url!
      const second = await context.rig.run(context.rig.platform.post(session, post("More.", { replyTo: page })))
      expect((await recordAt(context, second.uri)).value.reply).toMatchObject({
        root: { uri: root.uri, cid: root.cid },
        parent: { uri: first.uri },
      })
      expect(
        await context.rig.failure(
          context.rig.platform.post(
            session,
            post("?", { replyTo: `at://${context.grace.did}/app.bsky.feed.post/3aaaaaaaaaaaa` }),
          ),
        ),
      ).toMatchObject({ _tag: "PlatformRefused", missing: true })
      expect(
        await context.rig.failure(context.rig.platform.validate(post("?", { replyTo: "https://example.com/1" }))),
      ).toMatchObject({
        path: "/reply_to",
      })
    })
  })
