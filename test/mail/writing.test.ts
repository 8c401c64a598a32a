/**
 * Records how mail is written, and what is kept of the mail of others: HTML and its styles, trace fields, claims of our name,
 * replies of servers, and addresses. The file in `readings/` holds the results; `vitest run test/mail/writing
 * --update=all` writes it anew after an intended change.
 */
import * as Author from "@svc/mail-gateway/mail/Author"
import * as InlineStyle from "@svc/mail-gateway/mail/composing/InlineStyle"
import { escaped, fragments, imageOf } from "@svc/mail-gateway/mail/composing/SanitizedHtml"
import * as WhitespaceLimit from "@svc/mail-gateway/mail/composing/WhitespaceLimit"
import * as Results from "@svc/mail-gateway/mail/judging/Results"
import * as Header from "@svc/mail-gateway/mail/mime/Header"
import * as RecipientAddress from "@svc/mail-gateway/mail/RecipientAddress"
import * as Outcomes from "@svc/mail-gateway/mail/sending/Outcomes"
import * as Trace from "@svc/mail-gateway/mail/smtp/Trace"
import { expect, it } from "vitest"

const styles: ReadonlyArray<string> = [
  ...["red", "#abc", "rgb(1,2,3)", "url(x)", "expression(1)", "inherit"].flatMap((value) =>
    ["color", "background-color", "background", "border-color"].map((name) => `${name}:${value}`),
  ),
  ...["Arial, 'Times New'", "x(y)", "x".repeat(200), "x".repeat(201)].map((value) => `font-family:${value}`),
  ...[
    "small",
    "xx-large",
    "xxx-large",
    "12px",
    "72pt",
    "73pt",
    "6em",
    "96px",
    "96.5px",
    "600%",
    "601%",
    "0",
    "1",
    "-1px",
    "1vw",
  ].map((value) => `font-size:${value}`),
  ...["normal", "bold", "100", "900", "150"].map((value) => `font-weight:${value}`),
  ...["normal", "italic", "oblique", "words"].map((value) => `font-style:${value}`),
  ...["none", "underline", "line-through", "blink"].map((value) => `text-decoration:${value}`),
  ...["left", "right", "center", "justify", "start", "end", "words"].map((value) => `text-align:${value}`),
  ...["none", "uppercase", "lowercase", "capitalize", "words"].map((value) => `text-transform:${value}`),
  ...["baseline", "top", "middle", "bottom", "sub", "super", "text-top", "text-bottom", "1px"].map(
    (value) => `vertical-align:${value}`,
  ),
  ...["normal", "nowrap", "pre", "pre-wrap", "pre-line", "words"].map((value) => `white-space:${value}`),
  ...["normal", "1", "1.5", "2.9", "3", "3.1", "96px", "97px", "300%", "301%"].map((value) => `line-height:${value}`),
  ...["ltr", "rtl", "words"].map((value) => `direction:${value}`),
  ...["none", "block", "inline", "inline-block", "table", "inline-table", "table-row", "table-cell", "flex"].map(
    (value) => `display:${value}`,
  ),
  ...["left", "right", "none", "both"].flatMap((value) => [`float:${value}`, `clear:${value}`]),
  ...["auto", "0", "2000px", "2001px", "100%", "101%", "-1px"].flatMap((value) =>
    ["width", "max-width", "min-width", "height"].map((name) => `${name}:${value}`),
  ),
  ...["auto", "64px", "65px", "20%", "21%", "1px 2px 3px 4px", "1px 2px 3px 4px 5px", "-1px", "0 auto"].flatMap(
    (value) => ["margin", "padding", "margin-top", "padding-left"].map((name) => `${name}:${value}`),
  ),
  ...["1px solid red", "20px", "21px", "solid", "groove", "1px solid red 1px", "10%"].flatMap((value) =>
    ["border", "border-left"].map((name) => `${name}:${value}`),
  ),
  ...["solid dashed dotted double", "none", "ridge"].map((value) => `border-style:${value}`),
  ...["1px 2px 3px 4px", "21px", "thin"].map((value) => `border-width:${value}`),
  ...["64px", "65px", "50%", "51%"].map((value) => `border-radius:${value}`),
  ...["collapse", "separate", "words"].map((value) => `border-collapse:${value}`),
  ...["1px 2px", "1px 2px 3px", "21px"].map((value) => `border-spacing:${value}`),
  "word-break:break-all",
  "overflow-wrap:anywhere",
  "list-style-type:disc",
  "list-style-type:url(x)",
  "word-break:a1",
  "overflow-wrap:A",
  "position:absolute",
  "transform:none",
  "opacity:0",
  "box-shadow:none",
  "toString:x",
  "color red",
  "",
  ";;",
  "COLOR: RED !important",
  "color:red;;font-weight:bold; x:y",
  "color:\\72 ed",
  "color:/*x*/red",
  "color:red}",
  "@import x",
  `color:red;${"x".repeat(4_000)}`,
]

const markups: ReadonlyArray<string> = [
  "<p>one<br>two</p>",
  "<p class=x id=y onclick=z title=t dir=rtl lang=de align=center>a",
  "<b><i>x</b>y</i>",
  "<div><p>a<div>b</div>c",
  "<script>x</script><style>y</style>kept<template>z</template><title>t</title><textarea>u</textarea>",
  "<!-- comment --><![CDATA[x]]><?php x ?>&amp;&lt;&nbsp;&copy;&#65;&bogus;",
  "<a href=https://x.example title=t target=_top>link</a><a href=javascript:1>no</a><a href=/relative>rel</a><a href=mailto:a@b>mail</a><a name=x>anchor</a>",
  "<a href=https://x.example>one<a href=https://y.example>two</a></a>",
  "<img src=cid:known alt=a width=10 height=20><img src=cid:unknown alt=b><img src=https://x.example/y.png alt=c><img src=data:image/png;base64,AA== alt=d><img alt=e>",
  "<table width=100% border=1 cellpadding=2 bgcolor=red><caption>c</caption><tr><td colspan=2 rowspan=3>a<td>b</table>",
  "<td>outside</td><tr><td>x</td></tr><li>item</li><dt>t</dt><dd>d</dd><col>",
  "<table>text<tr>more<td>cell</td></tr></table>",
  "<ul><li>a<li>b<ul><li>c</ul></ul><ol start=3 type=a><li value=5>x</ol><dl><dt>t<dd>d</dl>",
  "<font color=red size=5 face=Arial>f</font><center>c</center><blockquote cite=x>q</blockquote><pre>  a\n b</pre>",
  "<form action=x><input value=y><button>b</button></form><select><option>o</select><video>v</video><svg><text>s</text></svg><math>m</math>",
  '<span style="color:red;position:fixed;margin:1px">s</span><div style="margin:10px;padding:20px">d</div>',
  '<span style="display:none">hidden</span><span hidden>hidden</span><span style="font-size:0">tiny</span>',
  "</table></div></body>end",
  "<h1>a</h1><hr><h7>b</h7><section>c</section><article>d</article><main>e</main>",
  `${"<div>".repeat(120)}deep`,
  `${"<br>".repeat(100)}far`,
  "<img src=cid:% alt=a><img src=cid:kno%77n alt=b>",
  `a${"\n".repeat(200)}b${" ".repeat(500)}c`,
  "<p>unclosed <b",
  "<p title='a\"b&lt;c'>q</p>",
  "",
  "   ",
]

const claims = [
  "mail.example; dkim=pass",
  "MAIL.Example. 1; spf=pass",
  "other.example; x",
  "mail.example.evil; x",
  '"mail.example"; x',
  '"mail\\.example"; x',
  "(a (b)) mail.example; x",
  "(open mail.example; x",
  "(open MAIL.example; x",
  "(a (b) \\) ) mail.example; x",
  "(mail.example) other.example; x",
  '" mail.example "; x',
  '"x MAIL.example',
  "\uff4dail.example; x",
  "mail(c).example; x",
  "=?utf-8?q?mail.example?=; x",
  "=?utf-8?b?bWFpbC5leGFtcGxl?=; x",
  "mail.\u200bexample; x",
  "; mail.example",
  "",
  "mail.example",
  "x mail.example",
]

it("what is written and kept is exact", async () => {
  const lines: Array<string> = ["# Styles"]
  for (const style of styles) {
    const [roomy, narrow] = [true, false].map((isRoomy) => InlineStyle.filter(style, isRoomy))
    lines.push(
      `${style.slice(0, 80)}: ${roomy!.style.slice(0, 80)}${roomy!.spaced ? " spaced" : ""}${narrow!.style === roomy!.style ? "" : ` | ${narrow!.style}`}`,
    )
  }
  lines.push("# Markup")
  for (const markup of markups) {
    const shown = new Set<string>()
    const images = { known: new Set(["known"]), shown }
    const kept = fragments([markup], images)
    lines.push(
      `${JSON.stringify(markup.slice(0, 120))}`,
      `  ${JSON.stringify(kept?.slice(0, 900))} ${[...shown].join(" ")}`,
    )
  }
  lines.push(
    JSON.stringify(fragments(["<b>one", "two"], { known: new Set(), shown: new Set() })),
    escaped(`<a href="x">'&`),
  )
  for (const source of [
    "cid:known",
    "CID:known",
    "cid:%6bnown",
    "cid:%",
    "cid:%e4",
    "cid:other",
    "https://x.example/y",
    "",
  ])
    lines.push(`${source}: ${imageOf(source, { known: new Set(["known"]) })}`)
  for (const text of [
    "a\tb\r\nc\rd",
    `a${"\n".repeat(100)}b`,
    `a${" ".repeat(300)}b`,
    "a\u0000\u0085b",
    "\u200b\u00a0x",
  ])
    lines.push(
      `${JSON.stringify(text.slice(0, 20))} ${JSON.stringify(WhitespaceLimit.ofText(text)).length} ${JSON.stringify(WhitespaceLimit.ofLine(text)).length} ${JSON.stringify(WhitespaceLimit.ofMarkup(text)).length}`,
    )

  lines.push("# Claims")
  for (const claim of claims) {
    const raw = Buffer.from(`Authentication-Results: ${claim}\r\nX-Other: mail.example\r\n\r\n`)
    const { rows } = Header.read(raw, 0, raw.length)
    lines.push(`${JSON.stringify(claim)}: ${Results.forged(raw, rows, "Mail.Example").length}`)
  }
  lines.push(JSON.stringify(Results.field("mail.example", ["spf=pass", `dkim=pass ${"x ".repeat(120)}`])))
  const many = Buffer.from(`${"A: b\r\n".repeat(2_005)}\r\nbody`)
  const block = Header.read(many, 0, many.length)
  lines.push(`${block.rows.length} rows, ${block.lines} lines, body at ${block.bodyStart} of ${many.length}`)

  lines.push("# Trace")
  const at = new Date(0)
  for (const [helo, secure, isExtended, isUtf8] of [
    ["x.example", false, false, false],
    ["x.example", true, true, false],
    ["x.example", true, true, true],
    ["[192.0.2.1]", false, true, false],
    ['x" (forged)\r\n', false, true, false],
    ["", false, true, false],
    ["x".repeat(300), false, true, false],
  ] as const) {
    const field = Trace.received({
      helo,
      ip: "192.0.2.1",
      host: "mail.example",
      secure,
      isExtended,
      isUtf8,
      id: "id 1",
      at,
    })
    lines.push(JSON.stringify(field), JSON.stringify(Trace.headers([field])))
  }
  lines.push(
    JSON.stringify(
      Trace.stamp(["A: b"], Buffer.from("0123456789"), [
        [1, 3],
        [5, 6],
      ]).map((piece) => Buffer.from(piece).toString()),
    ),
  )

  lines.push("# Outcomes")
  const transmission = { recipients: ["a@x.example", "b@x.example"] } as never
  for (const code of [null, 199, 200, 250, 299, 300, 399, 400, 421, 450, 499, 500, 530, 534, 535, 538, 550, 599])
    lines.push(`${code}: ${Outcomes.ofReply("a", { code, status: null, text: "", host: null }).state}`)
  const reply = Outcomes.withoutReply("x".repeat(600), "host")
  lines.push(`${reply.text.length} ${reply.host} ${reply.code}`)
  for (const outcomes of [
    Outcomes.deferred(transmission, reply),
    Outcomes.refused(transmission, reply),
    Outcomes.held(transmission),
  ])
    lines.push(
      outcomes
        .map(
          ({ recipient, state, reply: said }) =>
            `${recipient} ${state} ${said === null ? "without a reply" : "with a reply"}`,
        )
        .join(", "),
    )
  for (const tag of ["Held", "Broken", "Unknown"])
    lines.push(
      `${tag}: ${Outcomes.ofTransaction(transmission, { _tag: tag, message: "why" } as never, "host")
        .map(({ state, reply: said }) => `${state} ${said?.text ?? ""}`)
        .join(", ")}`,
    )

  lines.push("# Addresses")
  for (const local of [
    "ada",
    "A-da",
    "ada+Tag",
    "ada+",
    "ada+a+b",
    "a.b",
    "",
    "+x",
    "x".repeat(63),
    "x".repeat(64),
    "ä",
  ])
    lines.push(`${local}: ${JSON.stringify(RecipientAddress.parse(local))}`)
  for (const address of ["ada@X.example", "a@b@C.example", "postmaster", "@x", ""])
    lines.push(`${address}: ${JSON.stringify(RecipientAddress.split(address))}`)
  lines.push(JSON.stringify(RecipientAddress.byMailbox(["ada@x", "A-DA@x", "ada+t@x", "Ada+T@x", "bob@x", "a.b@x"])))
  for (const value of [
    undefined,
    "",
    "A <a@x.example>",
    "a@x.example, b@x.example",
    "Group: a@x.example;",
    '"a@evil.example" <b@x.example>',
    "<a@x.example>",
    "=?utf-8?q?J=C3=B6rg?= <j@x.example>",
    "no address",
    "a@x.example (comment)",
    "a@x (comment) .example",
    "a@x.example )",
    "(open) a@x.example (open",
    '"open <a@x.example>',
    '"a\\" <b@x.example>" <c@x.example>',
    `a@${"x".repeat(256)}.example`,
    "a@xn--mnchen-3ya.example",
    "a@münchen.example",
    "a@x..example",
    "a@localhost",
  ])
    lines.push(`${value}: ${JSON.stringify(Author.addresses(value))} ${JSON.stringify(Author.author(value))}`)
  for (const [one, other] of [
    ["x.example", "X.example"],
    ["a.x.example", "b.x.example"],
    ["x.co.uk", "y.co.uk"],
    ["", ""],
    ["x.example.", "x.example"],
  ])
    lines.push(`${one} ${other}: ${Author.aligned(one!, other!)}`)
  await expect(`${lines.join("\n").replaceAll("\r", "␍").toWellFormed()}\n`).toMatchFileSnapshot("readings/writing.txt")
})

it("An attribute of HTML keeps its largest value and loses a larger one", () => {
  const kept = (element: string, name: string, value: string) => {
    const cell = element === "td" || element === "th"
    const html = `<${element} ${name}="${value}">x</${element}>`
    const found = fragments([cell ? `<table><tr>${html}</tr></table>` : html], { known: new Map() } as never)
    return found!.includes(`${name}="${value}"`)
  }
  for (const [element, name, most, more] of [
    ["td", "colspan", "99", "100"],
    ["td", "rowspan", "99", "100"],
    ["table", "border", "20", "21"],
    ["table", "cellpadding", "20", "21"],
    ["table", "cellspacing", "20", "21"],
    ["td", "width", "1999", "2000"],
    ["td", "width", "100%", "101%"],
    ["font", "size", "+7", "+8"],
    ["ol", "start", "99999", "100000"],
    ["td", "title", "a".repeat(500), "a".repeat(501)],
    ["td", "lang", "a".repeat(35), "a".repeat(36)],
    ["td", "align", "a".repeat(20), "a".repeat(21)],
  ] as const) {
    expect([kept(element, name, most), kept(element, name, more)], `${name}=${most}`).toEqual([true, false])
  }
})

it("Text behind an element that cannot be seen ends a run of blank lines, and the text in the element does not", () => {
  const blank = "<br>".repeat(150)
  const unseen = "<span style=color:#fff>unseen</span>"
  const blanksOf = (html: string) => fragments([html], { known: new Set(), shown: new Set() })!.split("<br>").length - 1
  expect(blanksOf(`${blank}<p>${unseen}seen</p>${blank}`)).toBe(300)
  expect(blanksOf(`${blank}<p>${unseen}</p>${blank}`)).toBeLessThan(200)
})
