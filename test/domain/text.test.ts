/** Texts in requests, at the edge of each rule, and texts of others within sentences. */
import { displayUserCode, userCodeOf } from "@svc/domain/account/Device"
import { HandleText } from "@svc/domain/handles/HandleParam"
import { ofField } from "@svc/domain/mail/ContentId"
import { fill, quoted, said } from "@svc/domain/Phrases"
import { Line, Text, Url } from "@svc/domain/Text"
import { Schema } from "effect"
import { describe, expect, it } from "vitest"

describe("Text", () => {
  it.each([
    ["", true],
    ["a\r\n\tb\u007f", true],
    ["\u{1f600}", true],
    ["a\0", false],
    ["\ud83d", false],
    ["\ude00\ud83d", false],
  ])("%j is accepted: %s", (text, may) => expect(Schema.is(Text)(text)).toBe(may))
})

describe("A line of at most three characters", () => {
  it.each<readonly [string, boolean]>([
    ["a", true],
    ["\u{1f600}a", true],
    ["", false],
    ["abcd", false],
    ...["\0", "\t", "\n", "\u001f", "\u007f", "\u0085", "\u009f", "\ud83d"].map((one) => [`a${one}`, false] as const),
  ])("accepts %j: %s", (text, may) => expect(Schema.is(Line(3))(text)).toBe(may))
})

describe("A URL", () => {
  const base = "https://example.org/"
  it.each([
    [base, true],
    [base.padEnd(2048, "x"), true],
    [base.padEnd(2049, "x"), false],
    ["http://example.org/", false],
    ["example.org", false],
    ["", false],
    [`${base}\0`, false],
  ])("with https is accepted: %s", (text, may) => expect(Schema.is(Url(["https:"], "a URL"))(text)).toBe(may))
})

describe("A Handle that a request names", () => {
  it.each([
    ["ada", true],
    ["@ada", true],
    ["a@b", false],
    ["ada@example.org", false],
    ["x".repeat(201), false],
  ])("%s is read: %s", (text, may) => expect(Schema.is(HandleText)(text)).toBe(may))
})

describe("A code that a person types", () => {
  it.each([
    ["WDJB-MJHT", "WDJBMJHT"],
    ["wdjbmjht", "WDJBMJHT"],
    ["WDJB-MJH", undefined],
    ["WDJB-MJHTX", undefined],
    ["WDJB-MJHA", undefined],
    ["WDJB MJHT", undefined],
  ])("%s is read as %s", (typed, code) => {
    expect(userCodeOf(typed)).toBe(code)
    if (code !== undefined) expect(displayUserCode(code)).toBe("WDJB-MJHT")
  })
})

describe("A Content-ID field", () => {
  it.each([
    ["<image-1@mail.example>", "image-1@mail.example"],
    [`<${"a".repeat(120)}>`, "a".repeat(120)],
    [`<${"a".repeat(121)}>`, undefined],
    ["<a b@mail.example>", undefined],
    ['<a"b@mail.example>', undefined],
    ["<a@b@mail.example>", undefined],
    ["a@mail.example", undefined],
    ["<>", undefined],
    [undefined, undefined],
  ])("%s has the id %s", (field, id) => expect(ofField(field)).toBe(id))
})

describe("A text of others within a sentence", () => {
  it("is one line of at most 120 characters that cannot reverse its surroundings", () => {
    expect(said(" Ada\r\n \u202eLove\u2066lace\u0000 ")).toBe("Ada Love lace")
    expect(said("\u{1f600}".repeat(120))).toBe("\u{1f600}".repeat(120))
    expect(said("\u{1f600}".repeat(121))).toBe(`${"\u{1f600}".repeat(119)}…`)
    for (const other of [undefined, null, 7, {}]) expect(said(other)).toBe("")
  })

  it("is quoted as the language does, and fills its place in the sentence", () => {
    expect((["en", "de", "fr"] as const).map((language) => quoted(language, "Ada"))).toEqual([
      "'Ada'",
      "„Ada“",
      "«\u00a0Ada\u00a0»",
    ])
    expect(fill("{who} called {whom}{when}. {who}!", { who: "{whom}", whom: "Grace" })).toBe(
      "{whom} called Grace. {whom}!",
    )
  })
})
