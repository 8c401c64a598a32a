import { ifMatch, matches, tagOf } from "@svc/domain/Precondition"
import { describe, expect, it } from "vitest"

describe("If-Match", () => {
  it.each([
    [undefined, null],
    ["*", null],
    [" * ", null],
    ['"v7"', [7]],
    ['"v7", "v8"', [7, 8]],
    ['"other", "v8"', [8]],
    // Comparison is strong (RFC 9110 section 13.1.1), so weak tags never match.
    ['W/"v7"', []],
    ['W/"v7", "v8"', [8]],
    ['w/"v7"', []],
    ['"w7"', []],
    ['"v07x"', []],
    ["v7", []],
    ['"v999999999"', [999_999_999]],
    ['"v9999999999"', []],
    ["", []],
  ])("%s names the versions %j", (header, versions) => expect(ifMatch(header)).toEqual(versions))

  it("allows a change to the versions that it names, and to any version if the header is missing", () => {
    expect(matches(ifMatch(tagOf(7)), 7)).toBe(true)
    expect(matches(ifMatch(tagOf(7)), 8)).toBe(false)
    expect(matches(ifMatch(`W/${tagOf(7)}`), 7)).toBe(false)
    expect(matches(ifMatch(undefined), 7)).toBe(true)
  })
})
