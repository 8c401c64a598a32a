/** Text and links extracted from HTML messages. */
import * as Links from "@svc/cluster/html/Links"
import { fromHtml, linksOf, wordsOf } from "@svc/cluster/html/PlainText"
import { textReply } from "@svc/domain/mail/TextReply"
import { describe, expect, it } from "vitest"

describe("Link targets", () => {
  it.each([
    ['Please <a href="https://example.org/x">confirm</a>, now.', "Please confirm (https://example.org/x), now."],
    ["<a href='https://example.org/a?b=1&amp;c=2'>b</a>", "b (https://example.org/a?b=1&c=2)"],
    ["<a href=https://example.org/>example.org</a> and", "example.org and"],
    ["<a href=' https://exam\tple.org/x\n'>x</a>", "x (https://example.org/x)"],
    ["<a href=https:\\\\example.org\\x>x</a>", "x (https://example.org/x)"],
    ["<a href=https://b\u00fccher.example/>x</a>", "x (https://xn--bcher-kva.example/)"],
    [
      "<a href=mailto:ada@example.org>write</a> <a href=mailto:ada@example.org>ada@example.org</a>",
      "write (mailto:ada@example.org) ada@example.org",
    ],
    ["<a href=javascript:alert(1)>x</a> <a href=#top>y</a> <a href=x.html>z</a> <a>w</a>", "x y z w"],
    ["<base href=https://example.org/d/><a href=x.html>z</a>", "z (https://example.org/d/x.html)"],
    ["<base href=https://a.example/><base href=https://b.example/><a href=x>z</a>", "z (https://a.example/x)"],
    ["<a href=https://example.org/><img src=x alt='Buy now'></a>.", "Buy now (https://example.org/)."],
    ["<a href=https://example.org/p><img src=x></a>", "https://example.org/p"],
    ["<a href=https://example.org/p></a>|<a href=https://example.org/q style='display:none'>y</a>", "|"],
    ["<a href=https://a.example><div>one</div><div>two</div></a>three", "one\ntwo (https://a.example)\nthree"],
    ["<a href=https://a.example>one<a href=https://b.example>two", "one (https://a.example)two (https://b.example)"],
    [
      "<a href=https://a.example>one<area href=https://b.example alt=two>",
      "one (https://a.example)two (https://b.example)",
    ],
    ["<map><area href=https://a.example alt=north></map>", "north (https://a.example)"],
  ])("%s", (html, text) => {
    expect(fromHtml(html)).toBe(text)
  })

  it("are omitted if only the text is requested", () => {
    expect(wordsOf("<a href=https://example.org/x>words</a>")).toBe("words")
  })

  it("are listed with their text, at most 100, each pair once", () => {
    expect(
      linksOf("<a href=https://a.example/>x</a><a href=https://a.example/>x</a><a href=tel:+4930>call</a>"),
    ).toEqual([
      { url: "https://a.example/", text: "x", deceptive: false },
      { url: "tel:+4930", text: "call", deceptive: false },
    ])
    // An address is readable, as written.
    expect(linksOf("<a href=MailTo:j\u00f6rg@example.org>x</a>")).toMatchObject([
      { url: "MailTo:j\u00f6rg@example.org" },
    ])
    const many = (count: number) =>
      Array.from({ length: count }, (_, n) => `<a href=https://a.example/${n}>x</a>`).join("")
    expect(linksOf(many(100))).toHaveLength(100)
    expect(linksOf(many(101))).toHaveLength(100)
    expect(linksOf(`${"x".repeat(256 * 1024)}${many(1)}`)).toEqual([])
    const long = linksOf(`<a href=https://a.example/>${"x".repeat(500)}</a>`)
    expect(long[0]!.text).toHaveLength(200)
    expect(Links.link(`${"x".repeat(199)}\u{1f600}`, "https://a.example/").text).toBe(`${"x".repeat(199)}\ufffd`)
    expect(linksOf(`<a href=https://a.example/${"x".repeat(2_030)}>x</a>`)).toHaveLength(1)
    expect(linksOf(`<a href=https://a.example/${"x".repeat(2_031)}>x</a>`)).toEqual([])
  })

  it("are found in plain text, without the punctuation around them", () => {
    expect(
      Links.ofText("See https://a.example/x, (https://b.example/y) <https://c.example/z>. https://a.example/x!").map(
        ({ url }) => url,
      ),
    ).toEqual(["https://a.example/x", "https://b.example/y", "https://c.example/z"])
    expect(Links.ofText("https://en.example/wiki/A_(b)")[0]!.url).toBe("https://en.example/wiki/A_(b)")
    expect(Links.ofText("no link, www. nor ftp")).toEqual([])
    const many = (count: number) => Array.from({ length: count }, (_, n) => `https://a.example/${n}`).join(" ")
    expect([Links.ofText(many(100)).length, Links.ofText(many(101)).length]).toEqual([100, 100])
  })

  it("have at most 2,048 characters as shown and 4,096 as written", () => {
    const of = (length: number) => "https://a.example/".padEnd(length, "x")
    expect([Links.target(of(2_048), undefined), Links.target(of(2_049), undefined)]).toEqual([of(2_048), undefined])
    const spaced = (length: number) => of(100) + " ".repeat(length - 100)
    expect([Links.target(spaced(4_096), undefined), Links.target(spaced(4_097), undefined)]).toEqual([
      of(100),
      undefined,
    ])
  })
})

describe("A link whose text names another host", () => {
  it.each([
    ["paypal.com", "https://evil.example/", true],
    ["https://www.paypal.com/login", "https://paypal.com.evil.example/", true],
    ["www.paypal.com", "https://paypal.com@evil.example/", true],
    ["Sign in at bank.example", "https://example.bank.evil.test/", true],
    ["alice.github.io", "https://mallory.github.io/", true],
    ["p\u0430ypal.com", "https://paypal.com/", true],
    ["paypal\u3002com", "https://evil.example/", true],
    ["192.0.2.1", "https://192.0.2.2/", true],
    ["help@bank.example", "mailto:help@evil.example", true],
    ["help@bank.example", "mailto:help@bank.example@evil.example", true],
    ["help@bank.example", "mailto:a@evil.example,help@bank.example", true],
    ["www.bank.unknown", "https://evil.example/", true],
    ["billing@bank.example", "https://evil.example/", true],
    ["https://report.pdf/", "https://evil.example/", true],
    ["paypal.com", "https://www.paypal.com/", false],
    ["www.example.co.uk", "https://shop.example.co.uk/x", false],
    ["https://example.org", "http://example.org/", false],
    ["help@bank.example", "mailto:help@bank.example", false],
    ["Read more", "https://tracker.example/", false],
    ["report.pdf", "https://files.example/9", false],
    ["README.md", "https://code.example/", false],
    ["invoice.cc", "https://files.example/invoice.cc", false],
    ["10.5 or e.g. 3.14", "https://a.example/", false],
    ["ada.me@bank.example", "mailto:ada.me@bank.example", false],
    ["b\u00fccher.example", "https://xn--bcher-kva.example/", false],
  ])("with text %s and target %s is deceptive: %s", (words, url, deceptive) => {
    expect(Links.isDeceptive(words, url)).toBe(deceptive)
    expect(linksOf(`<a href="${url}">${words}</a>`)).toMatchObject([{ deceptive }])
  })
})

describe("Invisible text", () => {
  it.each([
    "<div style='display:none'>no</div>",
    "<div style='DISPLAY : None !important;'>no</div>",
    "<div style='visibility:hidden'>no</div>",
    "<div hidden>no</div>",
    "<div aria-hidden=true>no</div>",
    "<div aria-hidden=' TRUE '>no</div>",
    "<div style='font-size:0'>no</div>",
    "<div style='font:0/0 Arial'>no</div>",
    "<div style='font-size:1px;line-height:1px'>no</div>",
    "<div style='opacity:0'>no</div>",
    "<div style='opacity:.0'>no</div>",
    "<div style='max-height:0;overflow:hidden'>no</div>",
    "<div style='width:0px;overflow:hidden'>no</div>",
    "<div style='text-indent:-9999px'>no</div>",
    "<div style='position:absolute;left:-5000px'>no</div>",
    "<div style='position:absolute;clip:rect(0 0 0 0)'>no</div>",
    "<div style='color:#fff'>no</div>",
    "<div style='color:#ffffff;background-color:white'>no</div>",
    "<div style='background:#333'><span style='color:#333'>no</span></div>",
    "<table bgcolor=000000><tr><td><font color=#000000>no</font></td></tr></table>",
    "<div style='color:transparent'>no</div>",
    "<div style='display:none'><p>no<p>no<div>no</div><span style='display:block'>no</span></div>",
    "<style>.pre{display:none}</style><div class='a pre'>no</div>",
    "<head><style>/* x */ p.x, .y { display : none !important }</style></head><p class=y>no</p>",
    "<style>#top{font-size:0}</style><div id=top>no</div>",
    "<p style='display:none'>no<p>seen before</p>",
    "<div style='display:none'><div style='display:block'><b>no</b></div></div>",
    "<div style='visibility:collapse'>no</div>",
    "<div style='opacity:0%'>no</div>",
    "<div style='font-size:4px'>no</div>",
    "<div style='font-size:3pt'>no</div>",
    "<div style='font-size:25%'>no</div>",
    "<div style='font-size:.3em'>no</div>",
    "<div style='text-indent:-100px'>no</div>",
    ...["left", "top", "right", "bottom"].map((side) => `<div style='position:fixed;${side}:-100em'>no</div>`),
    "<div style='position:absolute;clip:rect(1px, 1px, 1px, 1px)'>no</div>",
    ...["height", "max-height", "width", "max-width"].map((box) => `<div style='overflow:clip;${box}:0'>no</div>`),
    "<div style='color:rgb(255,255,255)'>no</div>",
    "<div style='color:rgb(100% 100% 100%)'>no</div>",
    "<div style='color:rgba(0,0,0,0.29)'>no</div>",
    "<div style='color:#0004'>no</div>",
    "<div style='color:#efefef'>no</div>",
    "<div style='display:none' style='display:block'>no</div>",
    "<DIV STYLE='COLOR:RGB(255, 255, 255)'>no</DIV>",
    "<div style='color:#ffff'>no</div>",
    "<div style='color:#f0f0f0'>no</div>",
    "<div style='color:white'>no</div>",
    "<div style='color:rgb(0 0 0 / 29%)'>no</div>",
    "<div style='font-size:6px'><small style='color:red'>no</small></div>",
    "<style>.a{color:red}</style><style>.y{display:none}</style><p class=y>no</p>",
    "<style>#Top{display:none}</style><p id=TOP>no</p>",
    "<div style='color:#00000010'>no</div>",
    "<style>.A{DISPLAY:NONE}</style><p class=a>no</p>",
    "<style>.x{color:black}}.y{display:none}</style><p class=y>no</p>",
    "<svg><svg></svg><p>no</p></svg>",
    "<head><title>no</title><p>no<body>",
    "<font color=ffffff>no</font>",
    "<div style='background:#000;color:black'>no</div>",
    ...["script", "style", "title", "template", "noframes", "iframe", "object", "svg", "math"].map(
      (name) => `<${name}><${name}>no</${name}></${name}>`,
    ),
  ])("%s", (html) => {
    expect(fromHtml(`${html}<p>seen</p>`)).not.toContain("no")
    expect(fromHtml(`${html}<p>seen</p>`)).toContain("seen")
  })

  it.each([
    "<div style='display:block'>seen</div>",
    "<div style='font-size:0'><span style='font-size:14px'>seen</span></div>",
    "<td style='background:#000;color:#fff'>seen</td>",
    "<table bgcolor=#000000><tr><td style='color:#fff'>seen</td></tr></table>",
    "<td background=x.png style='color:#fff'>seen</td>",
    "<td style='background-image:url(x.png);color:#fff'>seen</td>",
    "<style>.hero{background:#000}</style><div bgcolor=#ffffff><p class=hero><b style='color:#fff'>seen</b></p></div>",
    "<style>.t{font-size:16px}</style><td style='font-size:0'><div class=t>seen</div></td>",
    "<style>@media (max-width:600px){.m{display:none}}</style><p class=m>seen</p>",
    "<style>.a .b{display:none}</style><p class=b>seen</p>",
    "<div style='max-height:0'>seen</div>",
    "<div style='overflow:hidden;height:1px'>seen</div>",
    "<div style='font-size:5px'>seen</div>",
    "<small><sub>seen</sub></small>",
    "<div style='text-indent:-99px'>seen</div>",
    "<div style='left:-5000px;clip:rect(0 0 0 0)'>seen</div>",
    "<div style='position:relative;left:-5000px'>seen</div>",
    "<div style='position:absolute;left:-99px'>seen</div>",
    "<div style='color:rgba(0,0,0,0.3)'>seen</div>",
    "<div style='color:#000f'>seen</div>",
    "<div style='color:#eee'>seen</div>",
    "<div style='color:hsl(0 0% 100%)'>seen</div>",
    "<div style='color:#ddd'>seen</div>",
    "<div style='opacity:0.5'>seen</div>",
    "<img style='display:none'>seen",
    "<br style='display:none'><input type=hidden style='display:none'>seen",
    "<div style='display:none'/>seen",
    "<table><tr><td><span style='display:none'>no</td><td>seen</td></tr></table>",
    "<ul><li style='display:none'>no<li>seen</ul>",
    "<table><tr><td style='display:none'>no<td>seen</table>",
    "<table><th style='display:none'>no<tr><td>seen</table>",
    "<div><p style='display:none'>no<div>seen</div></div>",
    "<svg/>seen",
    "<img style='display:none'/>seen",
    "<head><title>no</title><body>seen",
    "<div style='visibility:visible;opacity:1;clip:auto'>seen</div>",
    "<div style='color:transparent;color:black'>seen</div>",
    "<div style='background-color:#000'><p style='background:linear-gradient(#fff,#fff);color:#000'>seen</p></div>",
    "<style>@media print{.m{display:none}.n{color:red}}.k{color:red}</style><p class=m>seen</p>",
    "<div style='display:none'><table><tr><td>no</div>no</td></tr></table></div><p>seen</p>",
    // A cell or item of a nested table or list does not close the one around that table or list.
    "<table><td style='display:none'>no<table><td>no</table>no</table>seen",
    "<table><td style='display:none'>no<table><th>no</table>no</table>seen",
    "<table><tr style='display:none'><td>no<table><tr><td>no</table>no</table>seen",
    "<ul><li hidden>no<ol><li id=i>no</ol>no</ul>seen",
    "<dl><dd style='display:none'>no<dl><dt>no<dd>no</dl>no</dl>seen",
    "<dl><dt hidden>no<dl><dd>no</dl>no</dl>seen",
  ])("does not include %s", (html) => {
    expect(fromHtml(html)).toBe("seen".replace("", html.includes("<li>") ? "- " : ""))
  })

  it("includes the padding of a preview", () => {
    const padding = "&zwnj;&nbsp;&#847;&shy;&#8203;&#8199;&#65279; ".repeat(100)
    expect(fromHtml(`Preview${padding}<p>Hello</p>`)).toBe("Preview\u200c\n\nHello")
    expect(fromHtml("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \ud83d\udc68\u200d\ud83d\udcbb")).toBe(
      "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \ud83d\udc68\u200d\ud83d\udcbb",
    )
  })
})

describe("A font size", () => {
  it.each([
    ["4.9px", false],
    ["5px", true],
    ["5", true],
    ["3.7pt", false],
    ["3.8pt", true],
    ["0.3rem", false],
    ["0.4rem", true],
    ["0.3em", false],
    ["0.4em", true],
    ["31%", false],
    ["32%", true],
    ["0.6ex", false],
    ["0.7ch", true],
    ["xx-small", true],
    ["smaller", true],
    ["large", true],
  ])("of %s is legible: %s", (size, isLegible) =>
    expect(fromHtml(`<div style='font-size:${size}'>x</div>`)).toBe(isLegible ? "x" : ""),
  )

  it.each([
    ["smaller", 0.4, true],
    ["smaller", 0.37, false],
    ["x-small", 0.5, true],
    ["xx-small", 0.49, false],
    ["small", 0.39, true],
    ["small", 0.38, false],
    ["x-large", 0.32, true],
  ])("of %s is the one that a part of it in em refers to: %s", (outer, inner, isLegible) =>
    expect(fromHtml(`<div style='font-size:${outer}'><b style='font-size:${inner}em'>x</b></div>`)).toBe(
      isLegible ? "x" : "",
    ),
  )
})

describe("The text of HTML", () => {
  it.each([
    ["a<br><br>b", "a\n\nb"],
    ["a<p>b</p><p>c</p>d", "a\n\nb\n\nc\n\nd"],
    ["<div>a</div><div>b</div>c", "a\nb\nc"],
    ["<h1>a</h1>b<hr>c", "a\n\nb\nc"],
    ["<ul><li>a<li>b</ul><dl><dt>c<dd>d</dl>", "- a\n- b\n\nc\nd"],
    ["<table><tr><th>a</th><td>b</td></tr><tr><td>c</table>", "a b\nc"],
    ["<pre>a\n  b\n\n  c</pre>d  e", "a\n  b\n\n  c\n\nd e"],
    [" a \n <b> b</b>&nbsp;\tc ", "a b c"],
    ["a&amp;b &lt;c&gt; &#x1f600;", "a&b <c> \u{1f600}"],
    ["a<!-- b -->c<![CDATA[d]]>", "ac"],
    [`${"<blockquote type=cite>".repeat(12)}a${"</blockquote>".repeat(12)}b`, `${">".repeat(10)} a\n\nb`],
    ["<blockquote type=cite>a<blockquote type=CITE>b</blockquote>c</blockquote>", "> a\n>\n>> b\n>\n> c"],
    ["<blockquote>a</blockquote><blockquote type=cite>b<blockquote>c</blockquote>d", "a\n\n> b\n>\n> c\n>\n> d"],
    ["<b><blockquote type=cite>a</b>b", "> a\nb"],
    ["a<br/>b<hr/>c", "a\nb\nc"],
    ["1 < 2 &amp", "1 < 2 &"],
    ["<style>p{}</style>.y{display:none}<p class=y>b", ".y{display:none}\n\nb"],
    ["<b>.y{display:none}</b><p class=y>b", ".y{display:none}\n\nb"],
    ["<pre>a  b<pre>c  d</pre>e  f</pre>g  h", "a  b\n\nc  d\n\ne  f\n\ng h"],
    ["<area href=https://a.example alt=north>, south", "north (https://a.example), south"],
    ["<pre>a  b</pre></pre>c  d<pre>e  f", "a  b\n\nc d\n\ne  f"],
    ["<p>a</p> <p> b", "a\n\nb"],
    ["a <br> b", "a\nb"],
  ])("%s", (html, text) => expect(fromHtml(html)).toBe(text))
})

describe("A quoted message in HTML", () => {
  const quoted =
    "<p>Yes.</p><div>On 3/12/25 14:02, Grace wrote:<br></div><blockquote type=cite><p>Thursday?</p><p>Or</p><blockquote type=cite>Friday</blockquote></blockquote><p>Bye"

  it("is marked line by line, so that it is distinguishable from the reply", () => {
    expect(fromHtml(quoted)).toBe("Yes.\n\nOn 3/12/25 14:02, Grace wrote:\n\n> Thursday?\n>\n> Or\n>\n>> Friday\n\nBye")
    expect(textReply(fromHtml(quoted))).toBe("Yes.\n\nBye")
  })
  it("is not detected in an indented paragraph", () => {
    expect(fromHtml("<p>a<blockquote style='margin:0 0 0 40px'>b</blockquote>")).toBe("a\n\nb")
  })
})

describe("Hostile HTML", () => {
  it("of any shape is parsed quickly", () => {
    const size = 512 * 1024
    for (const piece of [
      "<b>",
      "<b></i>",
      "<p>",
      "<div style='color:red'>",
      "<a href=https://a.example>x",
      "<td>",
      "<blockquote type=cite>x",
      "<style>.a{display:none}",
      "<style>.a{display:none}</style><p class='a b c'>",
      "</div></td></p>",
      "<a href='",
      "a.b.",
      "&zwnj; ",
    ]) {
      const html = piece.repeat(size / piece.length)
      expect(fromHtml(html).length).toBeLessThan(size * 10)
      expect(linksOf(html).length).toBeLessThanOrEqual(100)
    }
  })
})
