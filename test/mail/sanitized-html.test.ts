/** HTML of a caller: permitted elements and attributes, and what counts as blank. */
import { fragments } from "@svc/mail-gateway/mail/composing/SanitizedHtml"
import { describe, expect, it } from "vitest"

const clean = (html: string, ...known: ReadonlyArray<string>) =>
  fragments([html], { known: new Set(known), shown: new Set() })!
const count = (html: string, part: string) => clean(html).split(part).length - 1

describe("Sanitized HTML", () => {
  it.each([
    [
      "no text block between the rows of a table",
      "<table><p>a</p><tr><td>b</td></tr></table>",
      "<table>a<tr><td>b</td></tr></table>",
    ],
    [
      "no link in a link",
      "<a href=https://x.example>a<b><a href=https://y.example>b</a></b></a>",
      '<a href="https://x.example">a<b>b</b></a>',
    ],
    ["nothing of elements in a removed one", "<svg><p>a</p>b</svg>c", "c"],
    ["elements in lower case", "<B>a</B>", "<b>a</b>"],
    [
      "attributes without white space around them",
      '<a href=" https://x.example ">a</a>',
      '<a href="https://x.example">a</a>',
    ],
    ["links on links alone", '<p href="https://x.example">a</p>', "<p>a</p>"],
    ["images in images alone", '<p src="https://x.example/a.png">a</p>', "<p>a</p>"],
    ["a height of images alone", '<p height="10">a</p>', "<p>a</p>"],
    ["a size of fonts alone", '<hr size="3"><font size="3">a</font>', '<hr><font size="3">a</font>'],
    [
      "a quotation's type",
      '<blockquote type="cite">a</blockquote><blockquote type="x">b</blockquote>',
      '<blockquote type="cite">a</blockquote><blockquote>b</blockquote>',
    ],
    [
      "colours that every browser reads alike",
      '<font color="red">a</font><font color="#12">b</font><font color="chucknorris">c</font>',
      '<font color="red">a</font><font>b</font><font>c</font>',
    ],
    [
      "quotation marks of a style",
      `<p style='font-family:"A B"'>a</p>`,
      '<p style="font-family:&quot;A B&quot;">a</p>',
    ],
  ])("has %s", (_, html, expected) => expect(clean(html)).toBe(expected))

  it("names images by their ids, quoted", () => {
    expect(clean(`<img src='cid:a"b'>`, 'a"b')).toBe('<img src="cid:a&quot;b">')
    expect(clean("<img src=cid:a%22b>", 'a"b')).toBe('<img src="cid:a&quot;b">')
    expect(clean("<img src=cid:a%22c>", 'a"b')).toBe("<img>")
  })
})

describe("Nested HTML", () => {
  it("is refused above 500 elements, of which up to 100 are kept", () => {
    expect(count("<b>".repeat(500), "<b>")).toBe(100)
    expect(clean("<b>".repeat(501))).toBeUndefined()
  })
})

describe("Blank HTML", () => {
  it("has at most 200 lines between two words", () => {
    expect(count("<br>".repeat(201), "<br>")).toBe(200)
    expect(count(`${"<br>".repeat(200)}a${"<br>".repeat(200)}`, "<br>")).toBe(400)
    // Documents are shown one below another.
    const several = fragments(["<br>".repeat(150), "<br>".repeat(150)], { known: new Set(), shown: new Set() })!
    expect(several.split("<br>").length - 1).toBe(200)
  })

  it("includes margins, images, invisible characters and long white space", () => {
    expect(count('<p style="margin:9px;padding:0"></p>'.repeat(60), "margin")).toBe(50)
    expect(count(`<table>${"<tr></tr>".repeat(101)}</table>`, "<tr>")).toBe(100)
    // An image without a height counts as one of 150 pixels.
    expect(count('<img src="https://x.example/a.png">'.repeat(30), "<img")).toBe(26)
    expect(count('<img src="https://x.example/a.png" height="20">'.repeat(201), "<img")).toBe(200)
    expect(count("<p>\u00a0</p>".repeat(300), "\u00a0")).toBe(196)
    expect(count(`<i>${" ".repeat(40)}</i>`.repeat(400), " ".repeat(40))).toBe(300)
  })

  it("does not end with words in the colour of their background", () => {
    const blank = "<br>".repeat(150)
    const around = (words: string) => count(`${blank}${words}${blank}`, "<br>")
    expect(around('<font color="red">a</font>')).toBe(300)
    expect(around('<font color="#ffffff">a</font>')).toBeLessThan(200)
    const cell = (color: string) => `<table><tr><td bgcolor="black"><font color="${color}">a</font></td></tr></table>`
    expect(around(cell("white"))).toBe(300)
    expect(around(cell("black"))).toBeLessThan(200)
    // Words after the element are visible again.
    expect(around('<font color="#ffffff">a</font>b')).toBe(300)
  })
})
