/** Differences between the HTML and the plain text of a message, and how they are shown. */
import { differenceOf } from "@svc/cluster/mail/sending/PartsDifference"
import { describe, expect, it } from "vitest"

describe("the HTML and the text of a message", () => {
  it.each([
    ["the same words", "<p>Dear Grace,</p><p>here <b>it</b> is.</p>", "Dear Grace,\n\nhere *it* is."],
    ["lists", "<ul><li>one</li><li>two</li></ul><ol><li>three</li></ol>", "* one\n* two\n\n1. three"],
    ["a link that only the HTML has", '<p>Pay <a href="https://shop.example/17">here</a></p>', "Pay here"],
    ["a link that the HTML shows", '<p>See <a href="https://shop.example/17">https://shop.example/17</a></p>', "See"],
    [
      "a link beside its words",
      '<a href="https://shop.example/17?a=1&amp;b=2">Pay</a>',
      "Pay: https://shop.example/17?a=1&b=2",
    ],
    [
      "an address that one form repeats",
      '<p>See <a href="https://shop.example/17">the shop</a>: https://shop.example/17 and https://shop.example/17.</p>',
      "See the shop: https://shop.example/17 and .",
    ],
    [
      "an address that the text names twice",
      "<p>https://shop.example/17</p>",
      "https://shop.example/17 https://shop.example/17/",
    ],
    ["soft hyphens, case and stylised letters", "<h1>Don&shy;ation 𝗻𝗼𝘄</h1>", "DONATION now"],
    ["one form only", "<p>Hello</p>", null],
  ])("are equal for %s", (_, html, text) => expect(differenceOf(html, text)).toBeNull())

  it.each([
    ["other words", "<p>wire EUR 9,000</p>", "Harmless", ["wire EUR 9,000"], ["Harmless"]],
    ["one other number", "<p>Send 9,000 euros to Grace today.</p>", "Send 90 euros to Grace today.", ["9,000"], ["90"]],
    ["more words", "<p>Hello.</p><p>And wire it.</p>", "Hello.", ["And wire it"], []],
    ["another currency", "<p>Pay € 5</p>", "Pay $ 5", ["€"], ["$"]],
    [
      "another order",
      "<p>Ada gets 9, Bob gets 1.</p>",
      "Ada gets 1, Bob gets 9.",
      ["9, Bob gets 1"],
      ["1, Bob gets 9"],
    ],
    [
      "another link",
      '<p>Pay <a href="https://evil.example/">here</a></p>',
      "Pay here https://good.example",
      ["https://evil.example"],
      ["https://good.example"],
    ],
    ["a repeated word", "<p>no no</p>", "no", ["no"], []],
    ["words around two equal ones", "<p>a X b c Y d</p>", "a b c d", ["X b c Y"], []],
    ["words around three equal ones", "<p>a X b c d Y</p>", "a b c d", ["X", "Y"], []],
  ])("differ by %s, and the passages are named", (_, html, text, only_in_html, only_in_text) =>
    expect(differenceOf(html, text)).toEqual({ only_in_html, only_in_text }),
  )

  it("have a bounded list of differences", () => {
    const found = differenceOf("<p>a b c d e</p>".repeat(50_000), "x y z ".repeat(50_000))!
    const passages = [...found.only_in_html, ...found.only_in_text]
    expect(passages.length).toBeLessThanOrEqual(40)
    expect(Math.max(...passages.map(({ length }) => length))).toBeLessThanOrEqual(310)
    const numbers = Array.from({ length: 21 }, (_, n) => n)
    const each = (form: string) => numbers.map((n) => `the same words and ${form}${n}`).join(" ")
    const named = (form: string) => numbers.slice(0, 20).map((n) => `${form}${n}`)
    const links = numbers.map((n) => `<a href="https://x.example/${n}">here</a>`).join(" ")
    const shown = `${"here ".repeat(21)}https://good.example`
    expect(differenceOf(links, shown)!.only_in_html).toHaveLength(20)
    expect(differenceOf(`<p>${each("h")}</p>`, each("t"))).toEqual({
      only_in_html: named("h"),
      only_in_text: named("t"),
    })
  })
})
