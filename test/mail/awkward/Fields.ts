/** Messages with awkward header fields: encoded words, raw 8-bit, parameters, missing fields. */
import { type Awkward, attached, file, letter, plain, utf8 } from "./Letter.ts"

export const fields: Readonly<Record<string, Awkward>> = {
  // Encoded words (RFC 2047).
  "an encoded word cut within a character": letter(
    { subject: "Grüße aus Köln" },
    plain("=?utf-8?B?R3LDvMOfZSBhdXMgS8M=?=", " =?utf-8?B?tmxu?="),
  ),
  "two sets in one subject": letter(
    { subject: "Größe привет" },
    plain("=?iso-8859-1?Q?Gr=F6=DFe_?= =?koi8-r?B?0NLJ18XU?="),
  ),
  "an encoded word with raw spaces": letter({ subject: "one two" }, plain("=?utf-8?Q?one two?=")),
  "an encoded word in quotation marks": letter(
    { from: "Jürgen <j@example.org>" },
    'From: "=?utf-8?Q?J=C3=BCrgen?=" <j@example.org>',
    "",
    "x",
  ),
  "an encoded word with a language": letter({ subject: "café" }, plain("=?iso-8859-1*fr?Q?caf=E9?=")),
  "an encoded word beside plain text": letter(
    { subject: "Re: é [list] done" },
    plain("Re: =?utf-8?q?=C3=A9?= [list] done"),
  ),
  "an encoded comma in a name": letter(
    { from: "Doe, Jane <jane@example.org>", to: ["x@example.org", "y@example.org"] },
    "From: =?utf-8?Q?Doe=2C_Jane?= <jane@example.org>",
    "To: =?utf-8?Q?a=2Cb?= <x@example.org>, y@example.org",
    "",
    "x",
  ),
  "ISO-2022-JP in a subject": letter({ subject: "日本語テスト" }, plain("=?ISO-2022-JP?B?GyRCRnxLXDhsJUYlOSVIGyhC?=")),
  "ISO-2022-JP in two words": letter(
    { subject: "日本語テスト" },
    plain("=?ISO-2022-JP?B?GyRCRnxLXDhsGyhC?=", " =?ISO-2022-JP?B?GyRCJUYlOSVIGyhC?="),
  ),
  "GB2312 that is GBK": letter({ subject: "你好朱镕基" }, plain("=?gb2312?B?xOO6w9bs6Ua7+Q==?=")),
  "an encoded word without padding": letter({ subject: "hello" }, plain("=?utf-8?B?aGVsbG8?=")),

  "Korean that Windows added": letter({ subject: "똠방각하" }, plain("=?ks_c_5601-1987?B?jGO55rCix88=?=")),
  "HZ in a subject": letter({ subject: "己所不欲 ~ now" }, plain("=?HZ-GB-2312?Q?~{<:Ky2;S{~}_~~_now?=")),
  "a file name in Korean that Windows added": letter(
    { attachments: file("똠.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename*=euc-kr''%8C%63.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name in pieces of both kinds": letter(
    { attachments: file("ä 50%20;off.pdf") },
    attached(
      "Content-Type: application/pdf",
      `Content-Disposition: attachment; filename*0*=utf-8''%C3%A4%20; filename*1="50%20;"; filename*2*=o%66f; filename*3=.pdf`,
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a percent sign that encodes nothing in an extended file name": letter(
    { attachments: file("50% off=ä%.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename*=utf-8''50%%20off=%C3%A4%.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a text with an empty file name": letter(
    { text: "x", attachments: [] },
    "From: a@example.org",
    'Content-Type: text/plain; name=""',
    'Content-Disposition: inline; filename=""',
    "",
    "x",
  ),
  "a file name in two pairs of quotation marks": letter(
    { attachments: file("one two.pdf") },
    attached(
      "Content-Type: application/pdf",
      'Content-Disposition: attachment; filename="=?utf-8?q?one_?="',
      ' "=?utf-8?q?two.pdf?="',
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name with a remark": letter(
    { attachments: file("report (1).pdf") },
    attached(
      "Content-Type: application/pdf (of sorts)",
      "Content-Disposition: attachment (not; inline) ; filename=report (1).pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),

  // 8-bit header fields.
  "a subject of raw UTF-8": letter({ subject: "Grüße" }, plain(utf8("Grüße"))),
  "a subject of raw latin1": letter({ subject: "Grüße" }, plain("Grüße")),
  "a name of raw UTF-8": letter({ from: "Jürgen <j@example.org>" }, utf8("From: Jürgen <j@example.org>"), "", "x"),
  "an address of RFC 6532": letter({ from: "<用户@例え.example>" }, utf8("From: 用户@例え.example"), "", "x"),

  // Parameters (RFC 2231).
  "a file name in an extended parameter": letter(
    { attachments: file("Übersicht.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename*=utf-8''%C3%9Cbersicht.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name in pieces": letter(
    { attachments: file("a very long file name indeed.pdf") },
    attached(
      "Content-Type: application/pdf",
      'Content-Disposition: attachment; filename*0="a very long "; filename*1="file name ";',
      ' filename*2="indeed.pdf"',
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name in encoded pieces out of order": letter(
    { attachments: file("Größe und Maß.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename*1*=und%20Ma%C3%9F; filename*2=.pdf;",
      " filename*0*=utf-8''Gr%C3%B6%C3%9Fe%20",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name in latin1": letter(
    { attachments: file("Öl.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename*=iso-8859-1'de'%D6l.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a plain and an extended file name": letter(
    { attachments: file("Öl.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename=Ol.pdf; filename*=utf-8''%C3%96l.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name as an encoded word": letter(
    { attachments: file("Rechnung für März.pdf") },
    attached(
      'Content-Type: application/pdf; name="=?utf-8?Q?Rechnung_f=C3=BCr_M=C3=A4rz?=',
      ' =?utf-8?Q?.pdf?="',
      "Content-Disposition: attachment",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name of raw UTF-8": letter(
    { attachments: file("Übersicht.pdf") },
    attached(
      "Content-Type: application/pdf",
      utf8('Content-Disposition: attachment; filename="Übersicht.pdf"'),
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name with a semicolon and quotation marks": letter(
    { attachments: file('a; "b".pdf') },
    attached(
      "Content-Type: application/pdf",
      'Content-Disposition: attachment; filename="a; \\"b\\".pdf"',
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a file name with spaces and without quotation marks": letter(
    { attachments: file("annual report.pdf") },
    attached(
      "Content-Type: application/pdf",
      "Content-Disposition: attachment; filename=annual report.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "comments in a content type": letter(
    { text: "ä" },
    "From: a@example.org",
    "Content-Type: text/plain (plain) ; charset=utf-8 (what else)",
    "",
    utf8("ä"),
  ),

  // Headers.
  "a folded subject": letter({ subject: "one two three" }, plain("one", " two", "\tthree")),
  "a subject on the second line": letter({ subject: "late" }, "From: a@example.org", "Subject:", " late", "", "x"),
  "no subject, no date, no type": letter({ subject: "", text: "x" }, "From: a@example.org", "", "x"),
  "no header at all": letter({ subject: "", text: "just words" }, "", "just words"),
  "an mbox line above the header": letter(
    { subject: "hello", text: "x" },
    "From a@example.org Thu Jan  1 00:00:00 2026",
    "From: a@example.org",
    "Subject: hello",
    "",
    "x",
  ),
  "a line in the header that is no field": letter(
    { subject: "hello", text: "x" },
    "From: a@example.org",
    "this is no field",
    "Subject: hello",
    "",
    "x",
  ),
  "groups, comments and routes in addresses": letter(
    { from: "Ada <a@example.org>", to: ["b@example.org", "c@example.org", "d@example.org"] },
    "From: Ada (the first) <a@example.org>",
    'To: friends: b@example.org, "C, D" <c@example.org>;, d@example.org (Dee)',
    "",
    "x",
  ),
  "an address twice": letter({ from: "<a@example.org>" }, 'From: "a@example.org" <a@example.org>', "", "x"),
  "undisclosed recipients": letter({ to: [] }, "From: a@example.org", "To: undisclosed-recipients:;", "", "x"),
  "a type without the semicolon behind it": letter(
    { attachments: file("a b.pdf") },
    attached('Content-Type: application/pdf name="a b.pdf"', "Content-Transfer-Encoding: base64"),
  ),
  "a type with a comma behind it, and a disposition without its semicolon": letter(
    { text: "see file", attachments: file("a.pdf") },
    attached(
      "Content-Type: application/pdf, x-mode=0600",
      "Content-Disposition: attachment filename=a.pdf",
      "Content-Transfer-Encoding: base64",
    ),
  ),
  "a parameter on a line of its own that is not folded": letter(
    { text: "see file", attachments: file("a b.pdf") },
    attached(
      "Content-Transfer-Encoding: base64",
      "Content-Type: application/pdf; x-mode=0600; ",
      'name="a b.pdf"',
      "Content-Disposition: attachment",
    ),
  ),
  "a header in capitals without spaces": letter(
    { subject: "loud", text: "ä" },
    "FROM:a@example.org",
    "SUBJECT:loud",
    "CONTENT-TYPE:TEXT/PLAIN;CHARSET=UTF-8",
    "",
    utf8("ä"),
  ),
}
