/** Posts of a Mastodon account: which requests they take, and what the server's responses become. The test answers in memory. */
import { PlatformUnreachable } from "@svc/cluster/connectors/platforms/Failure"
import type { NewPost, Session } from "@svc/cluster/connectors/platforms/Platform"
import type { Instances } from "@svc/cluster/connectors/platforms/mastodon/Discovery"
import * as Statuses from "@svc/cluster/connectors/platforms/mastodon/Statuses"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { type Respond, service, visiting } from "./mastodon/RecordedCalls.ts"

const limits = {
  domain: "social.example",
  characters: 500,
  perUrl: 23,
  attachments: 4,
  imageBytes: 1_000_000,
  mimeTypes: undefined,
  idempotent: true,
  streaming: undefined,
}
const account = (acct: string, id = "7") => ({ id, username: acct, acct, display_name: "" })
const status = (id: string, more: object = {}) => ({
  id,
  uri: `${service}/users/x/statuses/${id}`,
  account: account("eve"),
  content: `<p>Text ${id}</p>`,
  visibility: "public",
  created_at: "1970-01-01T00:00:00.000Z",
  ...more,
})
/** The statuses of the account `me`, at a server that answers each request as the test says. */
const statuses = (respond: Respond, more: Partial<typeof limits> = {}) => {
  const { visit, sent } = visiting(respond)
  const made = Statuses.make({ limits: () => Effect.succeed({ ...limits, ...more }) } as unknown as Instances)
  const session = {
    ...visit,
    account: { service, id: "1" },
    credential: Effect.succeed(
      Redacted.make(JSON.stringify({ token: "token", application: { id: "app", secret: "secret" } })),
    ),
  } as unknown as Session
  const asked = () => sent.splice(0).map(({ method, url }) => `${method} ${url.slice(service.length)}`)
  return { ...made, session, sent, asked }
}
const post = (more: Partial<NewPost> = {}): NewPost => ({
  text: "hello",
  command: "018bcfe5-6800-7000-8000-000000000000",
  again: false,
  options: {},
  replyTo: undefined,
  to: undefined,
  ...more,
})

describe("a reply", () => {
  it.effect("mentions the author, once and never the account itself, and is no more visible than its parent", () =>
    Effect.gen(function* () {
      let parent: object = {}
      const server = statuses(({ method }) =>
        method === "POST" ? { body: status("9") } : { body: { statuses: [status("5", parent)] } },
      )
      const posted = Effect.fnUntraced(function* (text: string, of: object) {
        parent = of
        yield* server.post(server.session, post({ text, replyTo: "https://other.example/5" }))
        const { status, visibility, in_reply_to_id } = JSON.parse(server.sent.splice(0).at(-1)!.body)
        return [status, visibility, in_reply_to_id]
      })
      const eve = account("a.b@c.example")
      expect(yield* posted("Hi", { account: eve })).toEqual(["@a.b@c.example Hi", undefined, "5"])
      expect(yield* posted("Hi @A.B@c.example!", { account: eve })).toEqual(["Hi @A.B@c.example!", undefined, "5"])
      // Another account, and a name that only begins like the author's.
      for (const text of ["@aXb@c.example", "@a.b@c.example.org", "x@a.b@c.example"])
        expect(yield* posted(text, { account: eve })).toEqual([`@a.b@c.example ${text}`, undefined, "5"])
      expect(yield* posted("More", { account: account("me", "1") })).toEqual(["More", undefined, "5"])
      for (const visibility of ["unlisted", "private", "direct"])
        expect(yield* posted("More", { account: account("me", "1"), visibility })).toEqual(["More", visibility, "5"])
    }),
  )
})

describe("a list of posts", () => {
  it.effect("has the next page of the header Link, and the parents of at most 20 posts, if they can be read", () =>
    Effect.gen(function* () {
      let link = ""
      const page = Array.from({ length: 30 }, (_, n) => status(`${n + 100}`, { in_reply_to_id: `${n + 200}` }))
      const server = statuses(({ url }) => {
        if (url.includes("/accounts/")) return { body: page, headers: { link } }
        const id = url.split("/").at(-1)!
        if (id === "200") return { status: 404, body: {} }
        return id === "201" ? new PlatformUnreachable({ message: "down" }) : { body: status(id) }
      })
      const read = () => server.own(server.session, { limit: 100, cursor: "77" })
      const { entries, cursor } = yield* read()
      expect([entries.length, cursor]).toEqual([30, null])
      const asked = server.asked()
      expect(asked[0]).toMatch(/limit=40.*max_id=77|max_id=77.*limit=40/)
      expect(asked).toHaveLength(21)
      expect(entries.map(({ reply_to }) => reply_to)).toEqual(
        page.map((_, n) => (n < 2 || n >= 20 ? null : `${service}/users/x/statuses/${n + 200}`)),
      )
      for (const [given, next] of [
        [`<${service}/x?min_id=9>; rel="prev", <${service}/x?max_id=5&a=1,2>; rel="next"`, "5"],
        [`<${service}/x?max_id=9>; rel="prev"`, null],
        [`<${service}/x?max_id=../9>; rel="next"`, null],
        [`</x?max_id=4>; rel=next`, "4"],
      ] as const) {
        link = given
        expect([given, (yield* read()).cursor]).toEqual([given, next])
      }
    }),
  )
})

describe("a post", () => {
  const picture = { content_base64: "iVBORw0KGgo=", content_type: "image/png", alt: "a dot" }

  it.effect("waits for its images, but not for longer than 15 seconds", () =>
    Effect.gen(function* () {
      const server = statuses(({ url }) =>
        url.includes("/media") ? { body: { id: "3", type: "image", url: null } } : { body: status("9") },
      )
      let isDone = false
      const done = Effect.sync(() => void (isDone = true))
      yield* Effect.forkChild(
        Effect.ensuring(server.post(server.session, post({ options: { media: [picture] } })), done),
      )
      for (let n = 0; n < 200 && !isDone; n++) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust("500 millis")
      }
      expect(server.sent.filter(({ url }) => url.endsWith("/media/3"))).toHaveLength(30)
      expect(JSON.parse(server.sent.at(-1)!.body).media_ids).toEqual(["3"])
    }),
  )

  it.effect(
    "that was interrupted is found at a server without idempotency keys: same text and parent, and not older",
    () =>
      Effect.gen(function* () {
        const mine = (id: string, more: object) => status(id, { content: "<p>hello</p>", ...more })
        const published = Effect.fnUntraced(function* (
          recent: ReadonlyArray<object>,
          again = true,
          idempotent = false,
        ) {
          const server = statuses(({ method }) => ({ body: method === "POST" ? status("9") : recent }), { idempotent })
          const found = yield* server.post(server.session, post({ again }))
          return found.uri.split("/").at(-1)
        })
        const begun = 1_700_000_000_000
        yield* TestClock.setTime(begun + 100_000)
        const at = (millis: number) => ({ created_at: new Date(begun + millis).toISOString() })
        // The id of the command contains its time. The server's clock may be a minute behind.
        expect(yield* published([mine("1", at(-60_000))])).toBe("1")
        for (const [recent, again, idempotent] of [
          [mine("1", at(-60_001)), true, false],
          [mine("1", { ...at(0), in_reply_to_id: "5" }), true, false],
          [mine("1", { ...at(0), content: "<p>hello you</p>" }), true, false],
          [mine("1", at(0)), false, false],
          [mine("1", at(0)), true, true],
        ] as const)
          expect(yield* published([recent], again, idempotent)).toBe("9")
        // The clock was set back by an hour after the command.
        yield* TestClock.setTime(begun - 3_600_000)
        expect(yield* published([mine("1", at(-3_660_000))])).toBe("1")
      }),
  )
})
