/** Records, profiles and threads of Bluesky, as the platform returns them. The test answers the calls in memory. */
import { XRPCError } from "@atproto/api"
import type { Connection } from "@svc/cluster/connectors/platforms/bluesky/Connection"
import * as Posts from "@svc/cluster/connectors/platforms/bluesky/Posts"
import * as Profile from "@svc/cluster/connectors/platforms/bluesky/Profile"
import * as Records from "@svc/cluster/connectors/platforms/bluesky/Records"
import type { PlatformFailure } from "@svc/cluster/connectors/platforms/Failure"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { connected, down, missing, refused } from "./bluesky/RecordedAgent.ts"

describe("the URI of a post", () => {
  const at = "at://did:plc:ada/app.bsky.feed.post/3k"
  it.each([
    [at, "did:plc:ada", "3k"],
    ["https://bsky.app/profile/ada.example/post/3k", "ada.example", "3k"],
    ["https://bsky.app/profile/ada.example/post/3k?x", undefined, undefined],
    ["https://bsky.app.evil.example/profile/ada.example/post/3k", undefined, undefined],
    ["at://did:plc:ada/app.bsky.feed.like/3k", undefined, undefined],
    ["at://did:plc:ada/app.bsky.feed.post/", undefined, undefined],
    ["at://did:plc:ada", undefined, undefined],
    ["nonsense", undefined, undefined],
    [
      `at://did:plc:ada/app.bsky.feed.post/${"a".repeat(2_048 - at.length + 2)}`,
      "did:plc:ada",
      "a".repeat(2_048 - at.length + 2),
    ],
    [`at://did:plc:ada/app.bsky.feed.post/${"a".repeat(2_048 - at.length + 3)}`, undefined, undefined],
  ])("%.60s names a repository and a record", (uri, host, rkey) => {
    const parsed = Records.parse(uri)
    expect([parsed?.host, parsed?.rkey]).toEqual([host, rkey])
  })

  it("gives a post its page, its author and its time", () => {
    const author = { did: "did:plc:ada", handle: "ada.example", displayName: "Ada" }
    const record = { text: "hi", createdAt: "2026-01-02T03:04:05.000Z" }
    const base = {
      uri: at,
      url: "https://bsky.app/profile/did:plc:ada/post/3k",
      author_id: author.did,
      author: author.handle,
      author_name: "Ada",
      text: "hi",
      reply_to: null,
    }
    expect(Records.post(at, record, author)).toEqual({ ...base, created_at: new Date(record.createdAt) })
    const seen = "2026-01-03T00:00:00.000Z"
    for (const createdAt of [undefined, 7, "never"])
      expect(Records.post(at, { ...record, createdAt }, { ...author, displayName: "" }, seen)).toEqual({
        ...base,
        author_name: null,
        created_at: new Date(seen),
      })
    expect(Records.post(at, { text: "hi" }, author)?.created_at).toEqual(new Date(0))
    expect(Records.post("at://x", record, author)?.url).toBeNull()
    for (const broken of [undefined, null, {}, { text: 7 }]) expect(Records.post(at, broken, author)).toBeUndefined()
    const reply = { root: { uri: "at://r", cid: "c" }, parent: { uri: "at://p", cid: "c" } }
    expect(Records.post(at, { ...record, reply }, author)?.reply_to).toBe("at://p")
    expect(Records.replyOf({ ...record, reply: { root: reply.root } })).toBeUndefined()
  })
})

describe("a thread", () => {
  const uri = "at://did:plc:ada/app.bsky.feed.post/0"
  const view = (n: number, more: object = {}) => ({
    $type: "app.bsky.feed.defs#threadViewPost",
    post: {
      uri: `at://did:plc:ada/app.bsky.feed.post/${n}`,
      cid: "c",
      record: { text: String(n) },
      author: { did: "did:plc:ada", handle: "ada" },
      indexedAt: "2026-01-01T00:00:00.000Z",
    },
    ...more,
  })
  const read = (thread: unknown) => {
    const { connection } = connected({ getPostThread: () => ({ thread }) })
    return Effect.map(Posts.thread(connection, uri), ({ entries }) => entries.map(({ text }) => Number(text)))
  }

  it.effect("has the posts above, the post, and its replies, each followed by its own", () =>
    Effect.gen(function* () {
      const gone = { $type: "app.bsky.feed.defs#notFoundPost", uri, notFound: true }
      const parent = view(-1, { parent: view(-2, { parent: gone }) })
      const replies = [view(1, { replies: [view(2), gone] }), gone, view(3)]
      expect(yield* read(view(0, { parent, replies }))).toEqual([-2, -1, 0, 1, 2, 3])
    }),
  )

  it.effect("has no more levels than were requested, even if the server returns more", () =>
    Effect.gen(function* () {
      let asked: any
      const { connection } = connected({ getPostThread: (one) => ((asked = one), { thread: view(0) }) })
      yield* Posts.thread(connection, uri)
      let [above, below]: [object | undefined, object | undefined] = [undefined, undefined]
      for (let n = 300; n > 0; n--) {
        above = view(-n, above === undefined ? {} : { parent: above })
        below = view(n, below === undefined ? {} : { replies: [below] })
      }
      const found = yield* read(view(0, { parent: above, replies: [below] }))
      expect(Math.max(...found)).toBe(Math.min(asked.depth + 1, 300))
      expect(found.filter((n) => n < 0)).toHaveLength(asked.parentHeight)
    }),
  )

  it.effect("is read with fewer levels if it is too large, and is refused if it is missing", () =>
    Effect.gen(function* () {
      const depths: Array<number> = []
      const limited = (most: number) =>
        connected({ getPostThread: ({ depth }) => (depths.push(depth), depth > most ? down() : { thread: view(0) }) })
          .connection
      for (const most of [1, 0]) yield* Posts.thread(limited(most), uri)
      const [full] = depths
      expect(depths).toEqual([full, 1, full, 1, 0])
      expect(yield* Effect.flip(Posts.thread(limited(-1), uri))).toMatchObject({ _tag: "PlatformUnreachable" })
      const none = connected({ getPostThread: () => ({ thread: { $type: "app.bsky.feed.defs#blockedPost" } }) })
      expect(yield* Effect.flip(Posts.thread(none.connection, uri))).toMatchObject({
        _tag: "PlatformRefused",
        missing: true,
      })
      const odd = connected({ getPostThread: refused })
      expect(yield* Effect.flip(Posts.thread(odd.connection, "https://example.org/x"))).toMatchObject({
        _tag: "InputRefused",
        path: "/uri",
      })
      expect(odd.sent).toEqual([])
      expect(yield* Effect.flip(Posts.thread(odd.connection, uri))).toMatchObject({
        _tag: "PlatformRefused",
        message: "no",
      })
    }),
  )
})

describe("the profile of an automated account", () => {
  const line = "Automated."
  const label = { val: "bot" }
  const labels = (...values: ReadonlyArray<{ val: string }>) => ({ $type: "com.atproto.label.defs#selfLabels", values })
  /** Runs a change on a stored record, and returns the record, its answer and the versions that it replaced. */
  const changing = <A>(
    stored: any,
    change: (connection: Connection) => Effect.Effect<A, PlatformFailure>,
    lostSwaps = 0,
  ) => {
    const state = { record: stored, lost: lostSwaps, swaps: [] as Array<unknown> }
    const { connection } = connected({
      getRecord: () => (state.record === undefined ? missing() : { value: state.record, cid: "v1" }),
      putRecord: ({ record, swapRecord }) => {
        state.swaps.push(swapRecord)
        if (state.lost-- > 0) throw new XRPCError(400, "InvalidSwap", "swap")
        state.record = record
        return {}
      },
    })
    return Effect.map(Effect.result(change(connection)), (result) => ({
      record: state.record,
      swaps: state.swaps,
      answer: result._tag === "Success" ? result.success : result.failure,
    }))
  }
  const profile = (more: object = {}) => ({ $type: "app.bsky.actor.profile", displayName: "Ada", ...more })
  const disclose = (stored: unknown, lostSwaps = 0) =>
    changing(stored, (connection) => Profile.disclose(connection, line), lostSwaps)
  const undisclose = (stored: unknown, changed: object | string) =>
    changing(stored, (connection) =>
      Profile.undisclose(connection, typeof changed === "string" ? changed : JSON.stringify(changed)),
    )

  it.effect("gets the label and the line that it does not have yet", () =>
    Effect.gen(function* () {
      for (const [stored, after, label_, line_] of [
        [profile(), profile({ labels: labels(label), description: line }), true, line],
        [
          profile({ description: "I compute." }),
          profile({ labels: labels(label), description: `I compute.\n\n${line}` }),
          true,
          line,
        ],
        [
          profile({ labels: labels({ val: "x" }), description: line }),
          profile({ labels: labels({ val: "x" }, label), description: line }),
          true,
          null,
        ],
        [profile({ labels: labels(label) }), profile({ labels: labels(label), description: line }), false, line],
        // The own text of the account is never cut: the line does not fit.
        [
          profile({ description: "x".repeat(250) }),
          profile({ labels: labels(label), description: "x".repeat(250) }),
          true,
          null,
        ],
      ] as const) {
        const { record, answer, swaps } = yield* disclose(stored)
        expect([record, JSON.parse(answer as string), swaps]).toEqual([after, { label: label_, line: line_ }, ["v1"]])
      }
      const marked = profile({ labels: labels(label), description: `a\n${line}\nb` })
      expect(yield* disclose(marked)).toEqual({ record: marked, answer: undefined, swaps: [] })
      // Only a new record may be stored, because none existed.
      const fresh = yield* disclose(undefined)
      expect([fresh.record, fresh.swaps]).toEqual([
        { $type: "app.bsky.actor.profile", labels: labels(label), description: line },
        [null],
      ])
    }),
  )

  it.effect("is read again if it changed meanwhile, a few times", () =>
    Effect.gen(function* () {
      const once = yield* disclose(profile(), 1)
      expect([once.swaps.length, once.record.description]).toEqual([2, line])
      const never = yield* disclose(profile(), 100)
      expect([never.record, typeof never.answer]).toEqual([profile(), "object"])
      expect(never.swaps.length).toBeLessThan(10)
      const broken = yield* changing(profile(), (connection) =>
        Profile.disclose(
          {
            ...connection,
            agent: connected({ getRecord: () => ({ value: profile() }), putRecord: refused }).connection.agent,
          },
          line,
        ),
      )
      expect(broken.answer).toMatchObject({ _tag: "PlatformRefused", message: "no" })
    }),
  )

  it.effect("loses exactly what the disclosure added and is still there", () =>
    Effect.gen(function* () {
      const both = { label: true, line }
      for (const [stored, changed, after] of [
        [profile({ labels: labels(label), description: line }), both, profile()],
        [
          profile({ labels: labels({ val: "x" }, label), description: `I compute.\n\n${line}` }),
          both,
          profile({ labels: labels({ val: "x" }), description: "I compute." }),
        ],
        [profile({ labels: labels(label), description: `a\n${line}\nb` }), both, profile({ description: "a\nb" })],
        [profile({ labels: labels(label), description: "mine" }), both, profile({ description: "mine" })],
        [
          profile({ labels: labels(label), description: `x\n\n${line}` }),
          { label: false, line },
          profile({ labels: labels(label), description: "x" }),
        ],
        [
          profile({ labels: labels(label), description: `x\n\n${line}` }),
          { label: true, line: null },
          profile({ description: `x\n\n${line}` }),
        ],
      ] as const)
        expect(yield* undisclose(stored, changed)).toMatchObject({ record: after, swaps: ["v1"] })
      for (const [stored, changed] of [
        [profile({ description: "mine" }), both],
        [profile({ labels: labels(label), description: line }), { label: false, line: null }],
        [profile({ labels: labels(label), description: line }), "not JSON"],
      ] as const)
        expect(yield* undisclose(stored, changed)).toEqual({ record: stored, swaps: [], answer: undefined })
    }),
  )
})
