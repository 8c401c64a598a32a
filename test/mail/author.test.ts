/** The single author that a From field names. */
import { aligned, author, limits } from "@svc/mail-gateway/mail/Author"
import { describe, expect, it } from "vitest"

describe("The author of", () => {
  it.each([
    ["a@x.example", "a@x.example", "x.example"],
    ["<a@x.example>", "a@x.example", "x.example"],
    ['"B, \\"C\\" (d" <a@x.example>', "a@x.example", "x.example"],
    ["A (b \\) c) <a@x.example>", "a@x.example", "x.example"],
    ["A (b (c) \\( d) <a@X.Example.>", "a@X.Example.", "x.example"],
    ["a@bücher.example", "a@bücher.example", "xn--bcher-kva.example"],
    ["a@x.example (a@x.example)", "a@x.example", "x.example"],
  ])("%s is its address", (field, address, domain) => {
    expect(author(field)).toMatchObject({ address: { address }, domain })
  })

  it.each([
    undefined,
    "",
    "A",
    "a@",
    "@x.example",
    "a@x.example, b@y.example",
    "a@x.example <b@y.example>",
    "a@y.example <b@x.example>",
    // A string or comment that does not end, or one that ends without a beginning.
    '"A <a@x.example>',
    '"A\\" <a@x.example>',
    "A (b <a@x.example>",
    "A (b \\) <a@x.example>",
    "A ) <a@x.example>",
    "(a) ) a@x.example",
    "a@x.example .evil.example",
    "<a@x.example(c).evil.example>",
    "=?utf-8?q?a?=@x.example",
    `${"A".repeat(limits.author)} <a@x.example>`,
  ])("%j is nobody", (field) => expect(author(field)).toBeUndefined())

  it("a field of the maximum length is read", () => {
    const address = " <a@x.example>"
    expect(author(`${"A".repeat(limits.author - address.length)}${address}`)?.domain).toBe("x.example")
    expect(author(`${"A".repeat(limits.author - address.length + 1)}${address}`)).toBeUndefined()
  })
})

it("Domains are aligned if they belong to one organisation", () => {
  for (const [a, b, expected] of [
    ["x.example", "mail.x.example", true],
    ["X.example.", "x.example", true],
    ["a.x.co.uk", "b.x.co.uk", true],
    ["x.co.uk", "y.co.uk", false],
    ["a.github.io", "b.github.io", false],
    ["x.example", "xx.example", false],
    ["", "", false],
    ["a b", "a b", false],
  ] as const) {
    expect([a, b, aligned(a, b)]).toEqual([a, b, expected])
  }
})
