/** Options of posts at the edge of every limit, the bounds of what platforms return, and the problem for each of their failures. */
import * as Bluesky from "@svc/cluster/connectors/platforms/bluesky/Options"
import * as Failure from "@svc/cluster/connectors/platforms/Failure"
import * as Mastodon from "@svc/cluster/connectors/platforms/mastodon/PostOptions"
import * as Bounds from "@svc/cluster/connectors/platforms/ResponseBounds"
import * as Refusals from "@svc/cluster/connectors/Refusals"
import { Effect, Exit } from "effect"
import { describe, expect, it } from "vitest"

// oxlint-disable-next-line typescript/no-explicit-any -- options as callers may send them
type Any = any
/** Returns the place that an effect refuses, or undefined if it accepts. */
const refusedAt = (effect: Effect.Effect<unknown, Failure.InputRefused>): string | undefined => {
  const exit = Effect.runSyncExit(Effect.flip(effect))
  return Exit.isSuccess(exit) ? `${exit.value.path}${exit.value.unknownOption === true ? " unknown" : ""}` : undefined
}

const base64 = (size: number, begin = "") => {
  const bytes = Buffer.alloc(size)
  bytes.write(begin, "hex")
  return bytes.toString("base64")
}
const begins = {
  "image/jpeg": "ffd8ff",
  "image/png": "89504e470d0a1a0a",
  "image/gif": "47494638",
  "image/webp": "524946460000000057454250",
} as const
const image = (more: object = {}) => ({
  content_type: "image/png",
  content_base64: base64(20, begins["image/png"]),
  alt: "A picture",
  ...more,
})
const many = (n: number, one: unknown) => Array.from({ length: n }, () => one)

describe("The options of Bluesky", () => {
  const at = (given: Any) => refusedAt(Bluesky.parse(given))
  const accepted: ReadonlyArray<Any> = [
    {},
    { langs: ["en", "pt-BR", "zh-Hant-TW"] },
    { langs: ["a".repeat(8) + "-b".repeat(8)] },
    { labels: many(10, "graphic-media") },
    { labels: ["!no-unauthenticated", "a".repeat(128)] },
    { images: many(4, image()) },
    { images: [image({ alt: "" }), image({ alt: "x".repeat(2_000) })] },
    { images: [image({ content_base64: base64(2_000_000, begins["image/png"]) })] },
    ...Object.entries(begins).map(([content_type, begin]) => ({
      images: [image({ content_type, content_base64: base64(20, begin) })],
    })),
  ]
  it.each(accepted)("are accepted within their limits: %#", (given) => expect(at(given)).toBeUndefined())

  const refused: ReadonlyArray<readonly [Any, string]> = [
    [{ lang: [] }, "/lang unknown"],
    [{ "a/b~": [] }, "/a~1b~0 unknown"],
    [{ langs: "en" }, "/langs"],
    [{ langs: many(4, "en") }, "/langs"],
    [{ langs: ["en", "e"] }, "/langs/1"],
    [{ langs: ["en", 7] }, "/langs/1"],
    [{ langs: ["a".repeat(9)] }, "/langs/0"],
    [{ langs: ["en-b".padEnd(13, "b")] }, "/langs/0"],
    [{ labels: many(11, "a") }, "/labels"],
    [{ labels: ["a".repeat(129)] }, "/labels/0"],
    [{ labels: ["A"] }, "/labels/0"],
    [{ images: many(5, image()) }, "/images"],
    [{ images: [null] }, "/images/0"],
    [{ images: [image({ title: "x" })] }, "/images/0/title unknown"],
    [{ images: [image({ alt: undefined })] }, "/images/0/alt"],
    [{ images: [image({ alt: "x".repeat(2_001) })] }, "/images/0/alt"],
    [{ images: [image(), image({ content_type: "image/bmp" })] }, "/images/1/content_type"],
    [{ images: [image({ content_type: "toString" })] }, "/images/0/content_type"],
    [{ images: [image({ content_base64: base64(2_000_010, begins["image/png"]) })] }, "/images/0/content_base64"],
    [{ images: [image({ content_base64: "not base64!" })] }, "/images/0/content_base64"],
    [{ images: [image({ content_base64: "" })] }, "/images/0/content_base64"],
    ...Object.keys(begins).map((content_type): [Any, string] => [
      { images: [image({ content_type, content_base64: base64(20, "00") })] },
      "/images/0/content_base64",
    ]),
    // A file of the container of WebP with other content.
    [
      { images: [image({ content_type: "image/webp", content_base64: base64(20, "52494646") })] },
      "/images/0/content_base64",
    ],
  ]
  it.each(refused)("are refused beyond their limits, with the place: %# %s", (given, place) =>
    expect(at(given)).toBe(`/options/bluesky${place}`),
  )

  it("do not exist for direct messages", () => {
    expect(refusedAt(Bluesky.rejectAll({}))).toBeUndefined()
    expect(refusedAt(Bluesky.rejectAll({ langs: [] }))).toBe("/options/bluesky/langs unknown")
  })
})

const mastodon = "/options/mastodon"
describe("The options of Mastodon", () => {
  const picture = (more: object = {}) => ({ content_type: "image/png", content_base64: "eA==", ...more })
  const at = (options: Any, post: object = {}) => refusedAt(Mastodon.parse({ text: "Hi", options, ...post } as Any))

  it.each<Any>([
    {},
    { visibility: "private", spoiler_text: "x".repeat(5_000), sensitive: true, language: "pt-BR" },
    { media: many(4, picture()) },
    { media: [picture({ alt: null }), picture({ alt: "x".repeat(1_500) })] },
  ])("are accepted within their limits: %#", (options) => expect(at(options)).toBeUndefined())

  it.each<[Any, string]>([
    [{ poll: {} }, "/poll unknown"],
    [{ visibility: "secret" }, "/visibility"],
    [{ spoiler_text: "x".repeat(5_001) }, "/spoiler_text"],
    [{ sensitive: "yes" }, "/sensitive"],
    [{ language: "e" }, "/language"],
    [{ language: "en_US" }, "/language"],
    [{ media: many(5, picture()) }, "/media"],
    [{ media: [picture(), picture({ alt: "x".repeat(1_501) })] }, "/media/1/alt"],
    [{ media: [picture({ content_base64: "!" })] }, "/media/0/content_base64"],
    [{ media: [picture({ content_type: "image" })] }, "/media/0/content_type"],
    [{ media: [picture({ title: "x" })] }, "/media/0/title"],
  ])("are refused beyond their limits, with the place: %# %s", (options, place) =>
    expect(at(options)).toBe(`${mastodon}${place}`),
  )

  it("need text or media, and a direct message a recipient and no other visibility", () => {
    expect(at({}, { text: " \n" })).toBe("/text")
    expect(at({ media: [picture()] }, { text: "" })).toBeUndefined()
    expect(at({ media: [] }, { text: "" })).toBe("/text")
    expect(at({}, { to: "grace@example.social" })).toBeUndefined()
    expect(at({ visibility: "direct" }, { to: "@grace" })).toBeUndefined()
    expect(at({ visibility: "public" }, { to: "grace" })).toBe(`${mastodon}/visibility`)
    for (const to of ["", "a b", "grace@a/b", "x".repeat(101)]) expect(at({}, { to }), to).toBe("/to")
    expect(Mastodon.recipientOf(" @grace@example.social ")).toBe("grace@example.social")
  })

  const limits = { perUrl: 23, characters: 30, attachments: 2, imageBytes: 100, mimeTypes: new Set(["image/png"]) }
  const within = (text: string, options: Any = {}) =>
    refusedAt(Mastodon.checkLimits({ ...limits, ...options.limits } as Any, text, options))

  it.each<[string, Any, string | undefined]>([
    ["x".repeat(30), {}, undefined],
    ["x".repeat(31), {}, "/text"],
    ["x".repeat(20), { spoiler_text: "y".repeat(10) }, undefined],
    ["x".repeat(20), { spoiler_text: "y".repeat(11) }, "/text"],
    // A family of several code points is one character, an address has a fixed length, and a mention none of its domain.
    ["👨‍👩‍👧‍👦".repeat(30), {}, undefined],
    ["👨‍👩‍👧‍👦".repeat(31), {}, "/text"],
    [`${"x".repeat(6)} https://example.org/${"y".repeat(200)}`, {}, undefined],
    [`${"x".repeat(7)} https://example.org/`, {}, "/text"],
    [`@grace@a-very-long-domain.example.social ${"x".repeat(23)}`, {}, undefined],
    [`@grace@a-very-long-domain.example.social ${"x".repeat(24)}`, {}, "/text"],
    ["x", { media: many(2, picture()) }, undefined],
    ["x", { media: many(3, picture()) }, `${mastodon}/media`],
    ["x", { media: [picture(), picture({ content_type: "image/gif" })] }, `${mastodon}/media/1/content_type`],
    ["x", { media: [picture({ content_type: "image/gif" })], limits: { mimeTypes: undefined } }, undefined],
    ["x", { media: [picture({ content_base64: base64(100) })] }, undefined],
    ["x", { media: [picture({ content_base64: base64(101) })] }, `${mastodon}/media/0/content_base64`],
  ])("keep the limits of the server, as the server counts: %#", (text, options, place) =>
    expect(within(text, options)).toBe(place),
  )
})

describe("What a platform returns", () => {
  it("is truncated, and made storable", () => {
    const post = {
      uri: "u".repeat(3_000),
      url: "https://example.social/1",
      author_id: "i".repeat(3_000),
      author: "a".repeat(600),
      author_name: "n".repeat(600),
      text: `\0\ud800${"t".repeat(20_000)}`,
      reply_to: "r".repeat(3_000),
      created_at: new Date(0),
    }
    const bounded = Bounds.boundedPost(post)
    expect(bounded.text.slice(0, 2)).toBe("\ufffdt")
    expect(
      Object.fromEntries(Object.entries(bounded).map(([name, value]) => [name, String(value ?? "").length])),
    ).toMatchObject({
      uri: 2_048,
      url: 24,
      author_id: 2_048,
      author: 500,
      author_name: 500,
      text: 9_999,
      reply_to: 2_048,
    })
    expect(Bounds.boundedPost({ ...post, author_name: null, reply_to: null })).toMatchObject({
      author_name: null,
      reply_to: null,
    })
    for (const url of ["javascript:alert(1)", "ftp://x", "nothing", `https://x/${"y".repeat(2_048)}`, null])
      expect(Bounds.boundedPost({ ...post, url }).url, String(url)).toBeNull()
    expect(Bounds.boundedPost({ ...post, url: "http://x/" }).url).toBe("http://x/")
    expect(Bounds.boundedWords(`  a \n\t b${"c".repeat(400)}`)).toBe(`a b${"c".repeat(297)}`)
  })

  it("has a date from 1970 to 9999, or the given one", () => {
    const otherwise = new Date(7)
    for (const text of ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "2026-11-20T12:00:00.000Z"])
      expect(Bounds.boundedDate(text, otherwise).toISOString()).toBe(text)
    for (const text of ["1969-12-31T23:59:59.999Z", "+010000-01-01T00:00:00.000Z", "soon", ""])
      expect(Bounds.boundedDate(text, otherwise)).toBe(otherwise)
  })
})

describe("A failure of a platform", () => {
  const now = 1_000_000
  const message = "No  luck"
  const limited = (until: number | null) =>
    new Failure.PlatformRateLimited({ message, until: until === null ? null : new Date(now + until) })
  const place = { message, path: "/text" }
  const cases: ReadonlyArray<readonly [Failure.PlatformFailure, Any, Any, Any]> = [
    ...(
      [
        [null, 60],
        [4_001, 5],
        [4_000, 4],
        [-1, 1],
      ] as const
    ).map(([until, seconds]) => {
      const same = {
        code: "connector_platform_rate_limited",
        retry_after_seconds: seconds,
        detail: "Mastodon: No luck",
      }
      return [limited(until), same, same, same] as const
    }),
    ...(
      [
        [
          new Failure.PlatformUnreachable({ message }),
          { code: "connector_platform_error", retry_after_seconds: 10, agent_hint: "wait" },
        ],
        [new Failure.PlatformRefused({ message }), { code: "connector_platform_error", agent_hint: "fix_call" }],
        [new Failure.PlatformRefused({ message, missing: true }), { code: "not_found", detail: "Mastodon: No luck" }],
        [new Failure.Unsupported({ message }), { code: "connector_capability_unsupported" }],
        [new Failure.InputRefused(place), { code: "invalid_request", errors: [{ path: "/text", message }] }],
      ] as const
    ).map(([failure, same]) => [failure, same, same, same] as const),
    [
      new Failure.InputRefused({ ...place, unknownOption: true }),
      { code: "invalid_request" },
      { code: "invalid_request" },
      { code: "connector_option_unknown", errors: [{ path: "/text", message }] },
    ],
    [
      new Failure.CredentialRefused({ message }),
      { code: "connector_credential_refused", detail: "Mastodon: No luck" },
      { code: "connector_stopped", detail: "Mastodon: No luck" },
      { code: "connector_stopped", detail: "Mastodon: No luck" },
    ],
    [new Failure.Halted({ reason: "moved" }), { _tag: "Moved" }, { _tag: "Moved" }, { _tag: "Moved" }],
    [
      new Failure.Halted({ reason: "paused" }),
      { _tag: "Moved" },
      { code: "connector_paused" },
      { code: "connector_paused" },
    ],
  ]
  it.each(cases)("is a problem that says what to do: %s", (failure, connecting, connected, posting) => {
    expect(Failure.isFailure(failure)).toBe(true)
    expect(Refusals.whileConnecting("Mastodon", failure, now)).toMatchObject(connecting)
    expect(Refusals.whileConnected("Mastodon", failure, now)).toMatchObject(connected)
    expect(Refusals.whilePosting("Mastodon", failure, now)).toMatchObject(posting)
  })

  it("is no defect, and a defect is no failure", () => {
    for (const other of [new Error("x"), null, "Halted", { _tag: "Other" }])
      expect(Failure.isFailure(other)).toBe(false)
  })
})
