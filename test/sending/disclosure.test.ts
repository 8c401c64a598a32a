/**
 * The AI disclosure as a reader sees it: for any content it is in the text, and visible in the HTML as a browser
 * renders it: styled on its own, not covered, and reachable by scrolling.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import fc from "fast-check"
import type { Letter } from "@svc/cluster/mail/sending/Composer"
import { textReply } from "@svc/domain/mail/TextReply"
import { write } from "@svc/mail-gateway/mail/composing/MessageWriter"
import type { Browser, Page } from "playwright-core"
import { closeContexts, openBrowser } from "../harness/Browser.ts"
import { has } from "../harness/Programs.ts"

const disclosure = "This message was written and sent by an AI agent (ada), not by a person."

const letter = (part: Partial<Letter>): Letter => ({
  messageId: "<1@mail.localhost>",
  date: new Date("2026-11-20T12:00:00.000Z"),
  from: { address: "ada@mail.localhost", name: null },
  to: ["grace@example.org"],
  cc: [],
  subject: "Hello",
  text: undefined,
  html: undefined,
  inReplyTo: null,
  references: [],
  attachments: [],
  headers: {},
  did: "did:web:mail.example:%40ada",
  disclosure,
  language: "en",
  ...part,
})

const composed = async (part: Partial<Letter>) => {
  const written = await write(letter(part))
  if (written._tag !== "Composed") throw new Error(`not composed: ${JSON.stringify(written)}`)
  return written.composed
}

/** Markup that tries to drop, cover, displace or restyle what follows it. */
const hostile: ReadonlyArray<string> = [
  "</body></html>",
  "</div></div></td></tr></table><div style='display:none'>",
  "</td></tr></tbody></table></div><!--",
  "<!--",
  "<!-- ",
  "<![CDATA[",
  "<plaintext>",
  "<textarea>",
  "<xmp>",
  "<title>",
  "<style>",
  "<script>",
  "<noscript>",
  "<template>",
  "<select><option>",
  "<svg><foreignObject>",
  "<math><mtext>",
  "<iframe>",
  "<object>",
  "<frameset>",
  "<head>",
  "<details>",
  "<dialog>",
  "<button>",
  "<form><input value='",
  "<table><tr>",
  "<table><tr><td>",
  "<tr><td>",
  "<td style='display:none'>",
  "<table><table><table></table></table></table></table>",
  "<ul><li><div><li></li></div></li></div>",
  "<p><font color=white size=1><div>",
  "<a href='https://x.example/'><table><a href='https://y.example/'>",
  "<b><i><s><u><small><small><small><small>",
  "<font color='#ffffff'>",
  "<font size=1 color=white><p></font>",
  "<style>div,p,body{display:none!important;font-size:0;color:#fff}</style>",
  "<link rel=stylesheet href='https://x.example/a.css'>",
  "<base href='https://x.example/'>",
  "<meta http-equiv=refresh content='0;url=https://x.example/'>",
  "<div style='position:fixed;inset:0;background:#fff;z-index:2147483647'>cover</div>",
  "<div style='position:absolute;top:0;left:0;width:9999px;height:9999px;background:#fff'>cover</div>",
  "<div style='margin-bottom:-500px;background:#fff'>cover<br><br><br><br></div>",
  "<div style='transform:translateY(300px);background:white;width:900px'>cover</div>",
  "<div style='box-shadow:0 0 0 9999px white'>x</div>",
  "<div style='outline:9999px solid white'>x</div>",
  "<div style='border-bottom:9999px solid white'>x</div>",
  "<div style='height:99999px'>x</div>",
  "<div style='padding-bottom:99999px'>x</div>",
  "<div style='line-height:99999px'>x</div>",
  "<div style='font-size:9999px;line-height:0'>\u2588\u2588</div>",
  "<div style='font-size:96px;line-height:1;color:#000'>\u2588\u2588\u2588\u0489\u0489</div>",
  "<div style='float:left;width:100%'>float</div>",
  "<div style='float:right'><img src='https://x.example/a.png' height=1100 width=100%></div>",
  "<br>".repeat(3000),
  "<p>&nbsp;</p>".repeat(3000),
  "<p style='margin:64px;padding:64px'></p>".repeat(500),
  "<pre>" + "\n".repeat(5000) + "</pre>",
  "<div style='white-space:pre'>" + "\n \u00a0".repeat(3000) + "</div>",
  "<span>" + "\u3164\u2800".repeat(5000) + "</span>",
  "<table cellpadding=20>" + "<tr><td></td></tr>".repeat(500) + "</table>",
  "<img src='https://x.example/a.png' height=1100>".repeat(100),
  "<hr>".repeat(1000),
  "<ul>" + "<li></li>".repeat(1000) + "</ul>",
  "\u202e\u202e",
  "<bdo dir=rtl>",
  "<p dir=rtl>",
  "\u0000<p",
  "<div class='gmail_quote'><blockquote>",
  "<x-foo style='display:none'>",
  "<span style='display:none'>a</span><br>".repeat(3000),
  "<p style='color:#fff'>words</p>".repeat(3000),
  "<div style='background:#000;color:#010101'>words<br></div>".repeat(3000),
  "<div style='font-size:0;padding:64px'>words</div>".repeat(3000),
  '<DIV STYLE="display:none"',
  "<div style=display:none",
  "<a title='",
  '<a title="',
  "&lt;/body&gt;",
  "word",
]

const fragments = fc
  .array(
    fc.oneof(fc.constantFrom(...hostile), fc.constantFrom("a", " ", "<p>", "</p>", "</div>", "</table>", "<div>")),
    {
      minLength: 1,
      maxLength: 8,
    },
  )
  .map((parts) => parts.join(""))

describe("the AI disclosure as text", () => {
  it("is at the end of any text", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "binary", maxLength: 300 }), fragments, async (noise, markup) => {
        const written = `${noise.replaceAll("\0", "").toWellFormed()}${markup.replaceAll("\0", "")}`
        const { content } = await composed({ text: written, html: undefined })
        expect(content.text!.trimEnd().endsWith(disclosure)).toBe(true)
        expect(content.html).toContain(disclosure)
      }),
      { numRuns: 60 },
    )
  })

  it("is in text derived from HTML and in HTML derived from text", async () => {
    const one = await composed({ html: "<p>Hello <b>Grace</b></p>" })
    expect(one.content.text).toContain("Hello Grace")
    expect(one.content.text!.trimEnd().endsWith(disclosure)).toBe(true)
    const two = await composed({ text: "if a < b:\n    c" })
    expect(two.content.html).toContain("if a &lt; b:\n    c")
    expect(two.content.html).toContain(disclosure)
  })

  it("is not after pages of white space or in a part that clients collapse as a signature", async () => {
    const voids = ["\n", " \n", "\u00a0\n", "\u2800\n", "\u3164\n", "\u2028", "\u200b\n", "\r\n", "\v", "\f", "\t\n"]
    for (const empty of voids) {
      const { content } = await composed({ text: `Hello.${empty.repeat(20_000)}` })
      expect(content.text!.split(/\n|\u2028/).length).toBeLessThan(30)
    }
    // Stacked combining marks of the last line overlap the following lines.
    const piled = await composed({
      text: `Hello.${"\u0316\u0489".repeat(500)}`,
      html: `<b>Hello.${"\u0320".repeat(500)}</b>`,
    })
    expect(`${piled.content.text}${piled.content.html}`).not.toMatch(/\p{M}{9}/u)
    const folded = await composed({ text: "Hello.\n-- \nAda\n-- \n\u001b[8m" })
    expect(folded.content.text).not.toContain("\u001b")
  })

  it("is above a signature, whose separator keeps its trailing space", async () => {
    const { content } = await composed({ text: "Hello.\n\n-- \nAda\nAnalytical Engines Ltd." })
    expect(content.text).toBe(`Hello.\n\n---\n${disclosure}\n\n-- \nAda\nAnalytical Engines Ltd.\n`)
    expect(Buffer.from(content.raw).toString()).toContain("\r\n--=20\r\nAda\r\n")
    expect(textReply(content.text!)).toBe(`Hello.\n\n---\n${disclosure}`)
    const only = await composed({ text: "-- \nAda" })
    expect(only.content.text).toBe(`${disclosure}\n\n-- \nAda\n`)
  })

  it("is not after pages of invisible words", async () => {
    const unseen = [
      "<span style='display:none'>a</span><br>",
      "<span style='font-size:0'>words</span><br>",
      "<span style='font-size:1px'>words</span><br>",
      "<p style='color:#fff'>words</p>",
      "<p style='color:rgba(0,0,0,0.01)'>words</p>",
      "<p style='background:navy;color:#000081'>words</p>",
      "<p style='color:rgb(100% 100% 98% / 90%)'>words</p>",
      "<p style='color:transparent'>words</p>",
      "<p><font color=white>words</font></p>",
      "<div style='background:#000;color:#010101'>words<br></div>",
      "<table bgcolor='#000000'><tr><td><b style='color:black'>words</b></td></tr></table>",
      `${"<small>".repeat(20)}words<br>${"</small>".repeat(20)}`,
    ]
    for (const one of unseen) {
      const { content } = await composed({ html: one.repeat(3_000) })
      const lines = content.html!.match(/<br>|words/g) ?? []
      expect([one, lines.length < 450]).toEqual([one, true])
    }
    for (const style of ["color:#666", "background:navy;color:white", "color:rgb(200 0 0 / 80%)"]) {
      const { content } = await composed({ html: `<p style='${style}'>words</p>`.repeat(3_000) })
      expect([style, content.html!.match(/words/g)?.length]).toEqual([style, 3_000])
    }
    // A color in an unknown notation is removed.
    const { content } = await composed({ html: "<p style='color:hsl(0 0% 100%);background:lab(0 0 0)'>words</p>" })
    expect(content.html).not.toMatch(/hsl|lab/)
  })

  it("is in the header fields, and the message is 7-bit with lines of valid length", async () => {
    const { content } = await composed({
      text: `Grüße ${"ä".repeat(3000)}`,
      inReplyTo: "<2@example.org>",
      references: ["<2@example.org>"],
      subject: "Grüße\r\nBcc: evil@example.org",
      headers: { "X-A": "b\r\nBcc: evil@example.org" },
      attachments: [
        { filename: "../../a\u202e.html", content_type: "text/html", content_base64: "PGI+" },
        { filename: "m", content_type: "message/rfc822", content_base64: "" },
        { filename: "n", content_type: "multipart/alternative", content_base64: "" },
      ],
    })
    const raw = Buffer.from(content.raw).toString("latin1")
    const head = raw.slice(0, raw.indexOf("\r\n\r\n"))
    expect(head).toMatch(/^Auto-Submitted: auto-replied\r$/m)
    expect(head).toMatch(/^AI-Disclosure: mode=ai-originated\r$/m)
    expect(head).not.toMatch(/^Bcc:/im)
    // oxlint-disable-next-line no-control-regex -- what 7 bit means
    expect(raw).toMatch(/^[\x00-\x7f]*$/)
    expect(raw.split("\r\n").every((line) => line.length <= 998 && !/[\r\n]/.test(line))).toBe(true)
    expect(raw).toContain("Content-Disposition: attachment")
    expect(raw).not.toMatch(/^Content-Type: message\/rfc822/im)
    expect(raw.match(/^Content-Type: multipart\/alternative/gim)?.length).toBe(1)
  })
})

interface Seen {
  readonly found: boolean
  readonly above: number
  readonly left: number
  readonly width: number
  readonly height: number
}

/** Runs in the page: returns what a reader can see of the disclosure after scrolling to it. */
const measure = `(words) => {
  const own = [...document.querySelectorAll("body div")].filter((one) => one.textContent.trim() === words)
  const element = own.at(-1)
  if (element === undefined) return { found: false }
  element.scrollIntoView({ block: "center" })
  const box = element.getBoundingClientRect()
  const style = getComputedStyle(element)
  const points = [0.02, 0.2, 0.5].map((across) =>
    document.elementFromPoint(box.left + box.width * across, box.top + box.height * 0.7),
  )
  const around = []
  for (let one = element.parentElement; one !== null; one = one.parentElement) around.push(one.tagName)
  return {
    found: true,
    around: around.join(" "),
    uncovered: points.every((point) => point === element),
    visible: element.checkVisibility({ opacityProperty: true, visibilityProperty: true }),
    color: style.color,
    background: style.backgroundColor,
    size: parseFloat(style.fontSize),
    line: style.textDecorationLine,
    left: box.left,
    width: box.width,
    height: box.height,
    above: box.top + window.scrollY,
  }
}`

describe.skipIf(!has("chromium"))("the disclosure on a screen", () => {
  let browser: Browser
  let page: Page

  beforeAll(async () => {
    browser = await openBrowser()
    const context = await browser.newContext({ viewport: { width: 900, height: 700 }, offline: true })
    page = await context.newPage()
  })
  afterAll(closeContexts)

  const seen = async (html: string) => {
    const { content } = await composed({ html })
    await page.setContent(content.html!, { waitUntil: "domcontentloaded" })
    return page.evaluate<Seen>(`(${measure})(${JSON.stringify(disclosure)})`)
  }

  const judge = (html: string, what: Seen) => {
    expect([html.slice(0, 500), what]).toMatchObject([
      html.slice(0, 500),
      {
        found: true,
        around: "BODY HTML",
        uncovered: true,
        visible: true,
        color: "rgb(34, 34, 34)",
        background: "rgb(255, 255, 255)",
        size: 14,
        line: "none",
      },
    ])
    if (!what.found) return
    expect(what.left).toBeLessThan(100)
    expect(what.width).toBeGreaterThan(600)
    expect(what.height).toBeGreaterThan(25)
  }

  it("is visible after each piece of hostile markup", async () => {
    for (const html of hostile) {
      const what = await seen(`<p>Hello.</p>${html}`)
      judge(html, what)
      // No gap is higher than a few screens.
      if (what.found) expect([html.slice(0, 100), what.above < 12_000]).toEqual([html.slice(0, 100), true])
    }
  })

  it("is visible after any combination of hostile markup", async () => {
    await fc.assert(
      fc.asyncProperty(fragments, async (html) => judge(html, await seen(html))),
      { numRuns: 150 },
    )
  }, 480_000)

  it("does not change the look of a legitimate newsletter", async () => {
    const html = `<html><head><title>t</title><style>p{color:red}</style></head><body><h1 style="color:#336699">News</h1>
      <table width="600"><tr><td style="padding:8px;background-color:#eee">Left</td><td>Right</td></tr></table>
      <p>See <a href="https://example.org/a?b=1&amp;c=2">this</a>, and <img src="https://example.org/i.png" alt="i" width="100">.</p>
      <ul><li>one</li><li>two</li></ul><blockquote>quoted</blockquote></body></html>`
    const { content } = await composed({ html })
    expect(content.html).toContain('<h1 style="color:#336699">News</h1>')
    expect(content.html).toContain('<td style="padding:8px;background-color:#eee">Left</td>')
    expect(content.html).toContain('<a href="https://example.org/a?b=1&amp;c=2">this</a>')
    expect(content.html).toContain("<ul><li>one</li><li>two</li></ul>")
    expect(content.html).not.toContain("color:red")
  })
})
