/**
 * Compares with recorded tables which posts and options each platform accepts, and how its failures and responses are read. The file in `tables/`
 * holds the results; `vitest run test/connectors/tables --update=all` writes it anew after an intended change.
 */
import * as Failure from "@svc/cluster/connectors/platforms/Failure"
import * as Bluesky from "@svc/cluster/connectors/platforms/bluesky/Options"
import * as BlueskyMessages from "@svc/cluster/connectors/platforms/bluesky/Messages"
import * as Text from "@svc/cluster/connectors/platforms/bluesky/Text"
import * as Mastodon from "@svc/cluster/connectors/platforms/mastodon/PostOptions"
import * as Responses from "@svc/cluster/connectors/platforms/mastodon/Responses"
import { boundedDate, boundedPost, boundedWords, hasMoreValues } from "@svc/cluster/connectors/platforms/ResponseBounds"
import * as Refusals from "@svc/cluster/connectors/Refusals"
import { Effect, type Schema } from "effect"
import { expect, it } from "vitest"

const short = (text: string) => (text.length > 300 ? `${text.slice(0, 120)}… (${text.length})` : text)
const written = (value: unknown) =>
  short(
    JSON.stringify(value, (_, one: unknown) => (one instanceof Uint8Array ? `${one.length} bytes` : one)) ?? "nothing",
  )
const outcome = async (work: Effect.Effect<unknown, Failure.PlatformFailure>) => {
  const result = await Effect.runPromise(Effect.result(work))
  if (result._tag === "Success") return `accepted ${written(result.success)}`
  const { _tag, ...members } = result.failure
  return `${_tag} ${written({ ...members, message: result.failure instanceof Failure.Halted ? undefined : result.failure.message })}`
}

const bytes = (hex: string, length = 0) =>
  Buffer.concat([Buffer.from(hex, "hex"), Buffer.alloc(length)]).toString("base64")
const png = "89504e470d0a1a0a"
const image = { content_base64: bytes(png), content_type: "image/png", alt: "a dot" }

const blueskyOptions: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  {},
  { words: 1 },
  { "a/b~c": 1 },
  ...[["en"], ["en", "pt-BR", "zh-Hant-TW"], ["en", "de", "fr", "it"], ["e"], ["english1"], ["en-"], [1], "en", []].map(
    (langs) => ({ langs }),
  ),
  ...[
    ["graphic-media"],
    ["!warn"],
    ["Upper"],
    [""],
    ["a".repeat(128)],
    ["a".repeat(129)],
    Array.from({ length: 10 }, () => "a"),
    Array.from({ length: 11 }, () => "a"),
  ].map((labels) => ({ labels })),
  ...[
    [image],
    [image, image, image, image],
    [image, image, image, image, image],
    ["x"],
    [null],
    [{ ...image, words: 1 }],
    [{ ...image, alt: undefined }],
    [{ ...image, alt: "x".repeat(2_000) }],
    [{ ...image, alt: "x".repeat(2_001) }],
    [{ ...image, content_type: "image/svg+xml" }],
    [{ ...image, content_type: "toString" }],
    [{ ...image, content_base64: "not base64!" }],
    [{ ...image, content_base64: "" }],
    [{ ...image, content_base64: 1 }],
    [{ ...image, content_base64: bytes(png, 2_000_000 - 8) }],
    [{ ...image, content_base64: bytes(png, 2_000_020) }],
    [{ ...image, content_type: "image/jpeg" }],
    [{ ...image, content_type: "image/jpeg", content_base64: bytes("ffd8ffe0") }],
    [{ ...image, content_type: "image/gif", content_base64: bytes("474946383961") }],
    [{ ...image, content_type: "image/webp", content_base64: bytes("524946460000000057454250") }],
    [{ ...image, content_type: "image/webp", content_base64: bytes("524946460000000057415645") }],
  ].map((images) => ({ images })),
]

const mastodonOptions: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  {},
  { words: 1 },
  ...["public", "unlisted", "private", "direct", "secret"].map((visibility) => ({ visibility })),
  { spoiler_text: "x".repeat(5_000) },
  { spoiler_text: "x".repeat(5_001) },
  { sensitive: true },
  { sensitive: "yes" },
  ...["en", "pt-BR", "e", "english", "en_US"].map((language) => ({ language })),
  ...[
    [image],
    [image, image, image, image, image],
    [{ ...image, alt: null }],
    [{ ...image, alt: "x".repeat(1_500) }],
    [{ ...image, alt: "x".repeat(1_501) }],
    [{ ...image, words: 1 }],
    [{ ...image, content_base64: "a" + "=".repeat(3) }],
    [{ ...image, content_base64: "QQ==" }],
    [{ ...image, content_base64: "" }],
    [{ ...image, content_type: "image" }],
    [{ content_type: "image/png" }],
  ].map((media) => ({ media })),
]

const post = (members: object = {}) => ({
  text: "hi",
  replyTo: undefined,
  options: {},
  command: "00000000-0000-7000-8000-000000000000",
  again: false,
  ...members,
})
const limits = {
  domain: "x.example",
  characters: 20,
  perUrl: 5,
  attachments: 1,
  imageBytes: 10,
  mimeTypes: new Set(["image/png"]),
  idempotent: true,
  streaming: undefined,
}
const picture = (size: number, content_type = "image/png") => ({
  ...image,
  content_type,
  content_base64: Buffer.alloc(size).toString("base64"),
})

it("posts, options, failures and responses are read exactly", async () => {
  const lines: Array<string> = []
  const table = async <A>(
    title: string,
    inputs: ReadonlyArray<A>,
    run: (input: A) => Effect.Effect<unknown, Failure.PlatformFailure>,
  ) => {
    lines.push(`# ${title}`)
    for (const input of inputs) lines.push(`${written(input)}: ${await outcome(run(input))}`)
  }
  await table("Options of Bluesky", blueskyOptions, Bluesky.parse)
  await table("Options of a direct message on Bluesky", [{}, { langs: [] }], Bluesky.rejectAll)
  await table(
    "Direct messages on Bluesky",
    [
      ...["ada.test", "@ada.test", "did:plc:x", "a b", "a/b", "", "x".repeat(300), "x".repeat(301)].map((to) =>
        post({ to }),
      ),
      post({ to: "ada.test", text: " " }),
      ...["chat.bsky.convo://one/two", "chat.bsky.convo://one/%zz", "at://x/y", "chat.bsky.convo://one"].map(
        (replyTo) => post({ to: "ada.test", replyTo }),
      ),
    ],
    (one) => BlueskyMessages.validate(one),
  )
  await table(
    "Texts of Bluesky",
    [
      "",
      "a",
      "x".repeat(300),
      "x".repeat(301),
      "👩‍👩‍👧".repeat(120),
      "é".repeat(300),
      "e\u0301".repeat(300),
      "x".repeat(3_001),
    ],
    (text) => Text.validate(text, Text.postLimit),
  )
  await table("Messages of Bluesky", ["x".repeat(1_000), "x".repeat(1_001), "x".repeat(10_001)], (text) =>
    Text.validate(text, Text.messageLimit),
  )
  await table("Options of Mastodon", mastodonOptions, (options) => Mastodon.parse(post({ options })))
  await table(
    "Posts on Mastodon",
    [
      { text: " " },
      { text: " ", options: { media: [image] } },
      ...["ada", "@ada", "ada@x.example", "@ada@x.example:80", "a b", "ada@", "@", "ada@x@y"].map((to) => ({ to })),
      { to: "ada", options: { visibility: "direct" } },
      { to: "ada", options: { visibility: "public" } },
    ],
    (members) => Mastodon.parse(post(members)),
  )
  await table(
    "Limits of a Mastodon server",
    [
      ["x".repeat(20), {}],
      ["x".repeat(21), {}],
      ["x".repeat(19), { spoiler_text: "xx" }],
      ["https://a.example/very/long/path 123456789012345", {}],
      ["https://a.example/very/long/path 12345678901234567", {}],
      ["@ada@long.server.example 123456789012345", {}],
      ["@ada@long.server.example 1234567890123456", {}],
      ["👩‍👩‍👧".repeat(20), {}],
      ["hi", { media: [picture(10)] }],
      ["hi", { media: [picture(11)] }],
      ["hi", { media: [picture(1), picture(1)] }],
      ["hi", { media: [picture(1, "image/gif")] }],
    ] as ReadonlyArray<readonly [string, Mastodon.Options]>,
    ([text, options]) => Mastodon.checkLimits(limits, text, options),
  )

  const failures: ReadonlyArray<Failure.PlatformFailure> = [
    new Failure.CredentialRefused({ message: "no  such\ntoken" }),
    new Failure.PlatformRateLimited({ message: "slow", until: null }),
    new Failure.PlatformRateLimited({ message: "slow", until: new Date(90_500) }),
    new Failure.PlatformRateLimited({ message: "slow", until: new Date(0) }),
    new Failure.PlatformUnreachable({ message: "x".repeat(400) }),
    new Failure.PlatformRefused({ message: "no" }),
    new Failure.PlatformRefused({ message: "none", missing: true }),
    new Failure.Unsupported({ message: "not here" }),
    new Failure.InputRefused({ message: "wrong", path: "/text" }),
    new Failure.InputRefused({ message: "wrong", path: "/options/x", unknownOption: true }),
    new Failure.Halted({ reason: "paused" }),
    new Failure.Halted({ reason: "moved" }),
  ]
  for (const [title, convert] of Object.entries({
    connecting: Refusals.whileConnecting,
    connected: Refusals.whileConnected,
    posting: Refusals.whilePosting,
  })) {
    lines.push(`# Failures while ${title}`)
    for (const failure of failures) {
      const { _tag, ...members } = convert("Platform", failure, 60_000)
      lines.push(`${failure._tag} ${written({ ...failure })}: ${_tag} ${written(members)}`)
    }
  }
  lines.push(
    written(
      [Refusals.paused(), Refusals.notConnected("X"), Refusals.stopped(null), Refusals.stopped("why")].map(
        ({ _tag, detail }) => [_tag, detail],
      ),
    ),
  )
  const platform = { name: "mastodon", title: "Mastodon" } as const
  lines.push(written(Refusals.credentialRefused(platform, "no")), written(Refusals.undeclared(platform)))

  lines.push("# Bounds")
  const at = new Date(1_000)
  for (const url of [
    "https://x.example/a",
    "http://x.example",
    "javascript:1",
    "x",
    "",
    null,
    `https://x.example/${"x".repeat(2_048)}`,
  ])
    lines.push(
      `${written(url)}: ${written(boundedPost({ uri: "u\0", url, author_id: "i", author: "x".repeat(600), author_name: null, text: "\ud800a", reply_to: null, created_at: at }))}`,
    )
  lines.push(
    written(
      boundedPost({
        uri: "x".repeat(3_000),
        url: null,
        author_id: "x".repeat(3_000),
        author: "a",
        author_name: "x".repeat(600),
        text: "x".repeat(11_000),
        reply_to: "x".repeat(3_000),
        created_at: at,
      }),
    ),
  )
  for (const date of [
    "2026-11-20T12:00:00Z",
    "1970-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z",
    "9999-12-31T23:59:59Z",
    "+010000-01-01T00:00:00Z",
    "words",
  ])
    lines.push(`${date}: ${boundedDate(date, at).toISOString()}`)
  lines.push(boundedWords("  a\n b  "), String(boundedWords("x".repeat(301)).length))

  const account = { id: "1", username: "ada", acct: "ada@x.example" }
  const status = {
    id: "1",
    uri: "https://x.example/1",
    account,
    content: "<p>hi</p>",
    visibility: "public",
    created_at: "2026-11-20T12:00:00Z",
  }
  const responses: ReadonlyArray<readonly [string, Schema.Constraint, unknown]> = [
    ["Account", Responses.Account, account],
    ["Account", Responses.Account, { ...account, id: "a/b" }],
    ["Account", Responses.Account, { ...account, id: "x".repeat(65) }],
    ["Account", Responses.Account, { ...account, display_name: null, bot: null, source: { note: null } }],
    ["Account", Responses.Account, { ...account, acct: "x".repeat(2_049) }],
    ["Account", Responses.Account, "words"],
    ["Status", Responses.Status, status],
    ["Status", Responses.Status, { ...status, account: undefined }],
    ["Found", Responses.Found, { statuses: Array.from({ length: 201 }, () => status), accounts: null }],
    ["Token", Responses.Token, { access_token: "x", expires_in: 5 }],
    ["Metadata", Responses.Metadata, { issuer: null }],
  ]
  for (const [name, schema, data] of responses) {
    const read = await Effect.runPromise(Effect.result(Responses.as(schema)(data)))
    lines.push(
      `${name} ${written(data)}: ${read._tag === "Success" ? written(read.success).length : read.failure.message}`,
    )
  }
  lines.push(
    String(Responses.validEntries(Responses.Account)([account, "x", account]).length),
    String(Responses.validEntries(Responses.Account)("x").length),
  )
  lines.push(String(Responses.validEntries(Responses.Account)(Array.from({ length: 201 }, () => account)).length))
  await table("Lists", ["x", [account, 1]], (data) => Responses.listOf(Responses.Account)(data))
  await expect(`${lines.join("\n").toWellFormed()}\n`).toMatchFileSnapshot("tables/tables.txt")
})

it("counts the values of a JSON text outside of its strings", () => {
  const texts: ReadonlyArray<readonly [string, number]> = [
    ["[", 1],
    ["[1,2,3]", 3],
    ['{"a":[1,{"b":2}],"c":3}', 5],
    ['[",[{","\\",,","a"]', 3],
    [',"', 1],
  ]
  for (const [text, values] of texts) {
    const bytes = Buffer.from(text)
    expect([text, hasMoreValues(bytes, values), hasMoreValues(bytes, values - 1)]).toEqual([text, false, true])
  }
})
