/** Extraction of content from a mail program's MIME structure, and how readers parse the result. */
import { rewrite } from "@svc/mail-gateway/mail/composing/MessageRewriter"
import { spawnSync } from "node:child_process"
import { describe, expect, it } from "vitest"
import { has } from "../../harness/Programs.ts"

const disclosure = "An AI wrote this message."
const now = new Date("2026-03-01T12:00:00Z")

const given = (raw: Buffer | string) => ({
  raw: new Uint8Array(Buffer.from(typeof raw === "string" ? raw.replaceAll(/\r?\n/g, "\r\n") : raw)),
  author: { address: "ada@mail.example", canonical: "ada", domain: "mail.example" },
  messageId: "<made@mail.example>",
  date: now,
  did: "did:web:mail.example:%40ada",
  disclosure,
  language: "en",
})

const done = async (raw: Buffer | string) => {
  const outcome = await rewrite(given(raw))
  if (outcome._tag !== "Rewritten") throw new Error(JSON.stringify(outcome))
  const { rewritten } = outcome
  const bytes = Buffer.from(rewritten.content.raw)
  const { text, html, headers } = rewritten.content
  return {
    ...rewritten,
    bytes,
    read: { text, html, headers: new Map(headers.map(({ name, value }) => [name.toLowerCase(), value])) },
  }
}

/** Parses with Python's library. */
const python = `
import base64, email, email.policy, json, sys
def read(raw):
    message = email.message_from_bytes(base64.b64decode(raw), policy=email.policy.default)
    bodies = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    return {kind: body and body.get_content() for kind, body in bodies.items()}
print(json.dumps([read(raw) for raw in json.load(sys.stdin)]))`

const fault = async (raw: string) => {
  const outcome = await rewrite(given(raw))
  return outcome._tag === "Faulty" ? `${outcome.path} ${outcome.message}` : outcome._tag
}

const head = "From: Ada <ada@mail.example>\nTo: bob@example.org\nSubject: hello\nMIME-Version: 1.0\n"
const message = (fields: string, body: string) => `${head}${fields}\n\n${body}`

/** The parts of a multipart. */
const parts = (type: string, boundary: string, ...all: ReadonlyArray<string>) =>
  `Content-Type: ${type}; boundary="${boundary}"\n\n${all.map((one) => `--${boundary}\n${one}\n`).join("")}--${boundary}--\n`
const text = (body: string, more = "") => `Content-Type: text/plain; charset=utf-8${more}\n\n${body}`
const html = (body: string) => `Content-Type: text/html; charset=utf-8\n\n${body}`

/** A text before its signature, which mail programs collapse. */
const unfolded = (text: string) => text.split(/^-- $/m)[0]!.trimEnd()

/** In both bodies, at the end, once each, and in the header. */
const expectDisclosed = ({ read, bytes }: Awaited<ReturnType<typeof done>>) => {
  const above = unfolded(read.text ?? "")
  expect(above.endsWith(`---\n${disclosure}`) || above.trim() === disclosure).toBe(true)
  // After the table that holds the content, with nothing behind it.
  expect(read.html?.slice(read.html.lastIndexOf("</table>"))).toMatch(
    new RegExp(`^</table>\\s<div style="position:relative[^"]*">${disclosure}</div>\\s</body>\\s</html>\\s*$`),
  )
  expect(read.headers.get("ai-disclosure")).toBe("mode=ai-originated")
  expect(bytes.toString("latin1").match(/^Content-Type: text\/(?:plain|html)/gim)?.length).toBeGreaterThanOrEqual(2)
}

describe("Submitted content", () => {
  it("is found at any depth, in its order", async () => {
    const raw = `${head}${parts(
      "multipart/mixed",
      "a",
      parts(
        "multipart/alternative",
        "b",
        text("One in words"),
        parts(
          "multipart/mixed",
          "c",
          html("<p>One <b>rich</b></p>"),
          "Content-Type: application/pdf; name=a.pdf\n\nPDF",
          html("<p>Two</p>"),
        ),
      ),
      text("Three", "\nContent-Disposition: inline"),
      "Content-Type: image/png\nContent-ID: <i@x>\nContent-Transfer-Encoding: base64\n\nUE5H",
    )}`
    const out = await done(raw)
    expectDisclosed(out)
    expect(out.read.text).toBe(`One in words\nThree\n\n---\n${disclosure}\n`)
    expect(out.read.html).toMatch(/<p>One <b>rich<\/b><\/p>\s*<p>Two<\/p>\s*<div style="white-space:pre-wrap">Three/)
    expect(out.attachments.map(({ filename, content_type }) => [filename, content_type])).toEqual([
      ["a.pdf", "application/pdf"],
      [null, "image/png"],
    ])
  })

  it("keeps its characters in every set and encoding", async () => {
    const latin = Buffer.concat([
      Buffer.from(
        `${head}Content-Type: text/plain; charset=iso-8859-1; format=flowed\r\n\r\n`.replaceAll(/\r?\n/g, "\r\n"),
      ),
      Buffer.from("Gr\xfc\xdfe aus \r\nM\xfcnchen\r\n", "latin1"),
    ])
    expect((await done(latin)).read.text).toBe(`Grüße aus München\n\n---\n${disclosure}\n`)
    const utf16 = Buffer.from("\ufeff<p>Привет</p>", "utf16le").toString("base64")
    const out = await done(message("Content-Type: text/html; charset=utf-16\nContent-Transfer-Encoding: base64", utf16))
    expectDisclosed(out)
    expect(out.read.html).toContain("<p>Привет</p>")
    expect(out.read.text).toBe(`Привет\n\n---\n${disclosure}\n`)
  })

  it("keeps author, date, thread and the allowed fields", async () => {
    const out = await done(
      message(
        "Date: Sun, 1 Mar 2026 10:00:00 +0100\nMessage-ID: <own@laptop>\nIn-Reply-To: <q@x.example>\nReferences: <p.without.at> <p@x.example> <q@x.example>\n" +
          "Cc: =?utf-8?q?J=C3=B6rg?= <joerg@example.org>\nBcc: hidden@example.org\nReply-To: ada+news@mail.example\nX-Mailer: Pine\n" +
          "Received: from laptop (10.0.0.7)\nList-Unsubscribe: <javascript:x>\nSender: eve@evil.example\nDKIM-Signature: v=1\n" +
          "Auto-Submitted: no\nContent-Language: xx\nDisposition-Notification-To: eve@evil.example\n" +
          'X-MC-BccAddress: eve@evil.example\nX-SMTPAPI: {"to":["eve@evil.example"]}',
        "Answer.",
      ),
    )
    const lines = out.bytes.toString("latin1").split("\r\n\r\n")[0]!.split("\r\n")
    expect(lines).toEqual(
      expect.arrayContaining([
        "From: Ada <ada@mail.example>",
        "Date: Sun, 1 Mar 2026 10:00:00 +0100",
        "Message-ID: <own@laptop>",
        "In-Reply-To: <q@x.example>",
        "References: <p.without.at> <p@x.example> <q@x.example>",
        "Reply-To: ada+news@mail.example",
        "X-Mailer: Pine",
        "Auto-Submitted: auto-replied",
        "Content-Language: en",
      ]),
    )
    expect(out.cc).toEqual([{ address: "joerg@example.org", name: "Jörg" }])
    expect(out.bytes.toString("latin1")).not.toMatch(/hidden@|laptop \(|javascript|evil|DKIM/)
  })

  it("has the same fingerprint when it is resubmitted with another encoding", async () => {
    const id = "Message-ID: <own@laptop>\n"
    const one = await done(message(`${id}Content-Type: text/plain`, "Words"))
    const two = await done(
      `${head}${id}Date: Sun, 1 Mar 2026 10:00:00 +0100\n${parts("multipart/mixed", "z9", text("Words"))}`,
    )
    const other = await done(message(`${id}Content-Type: text/plain`, "Other words"))
    expect(two.fingerprint).toEqual(one.fingerprint)
    expect(other.fingerprint).not.toEqual(one.fingerprint)
    expect((await done(message("Content-Type: text/plain", "Words"))).fingerprint).toBeNull()
    const both = (rich: string) => done(`${head}${id}${parts("multipart/alternative", "b", text("Words"), html(rich))}`)
    expect((await both("<p>a</p>")).fingerprint).not.toEqual((await both("<p>b</p>")).fingerprint)
  })

  it("prefers plain text that is an alternative of its own, and the last HTML", async () => {
    const mixed = parts("multipart/mixed", "m", text("Beside"), html("<p>One</p>"))
    const out = await done(`${head}${parts("multipart/alternative", "a", mixed, text("Words"), html("<p>Two</p>"))}`)
    expect([unfolded(out.read.text!).split("\n")[0], /One|Two/.exec(out.read.html!)?.[0]]).toEqual(["Words", "Two"])
  })

  it("has files with a name of 200 characters, and with parameters that need no quotation marks", async () => {
    const file = (type: string, name = "") => `Content-Type: ${type}\nContent-Disposition: attachment${name}\n\nx`
    const name = `; filename*=utf-8''${"a".repeat(199)}${encodeURIComponent("😀")}.csv`
    const out = await done(
      `${head}${parts("multipart/mixed", "b", text("x"), file("text/csv; charset=utf-8", name), file('text/csv; charset="a b"'), file("text/plain"))}`,
    )
    expect(out.attachments.map(({ filename }) => filename)).toEqual([`${"a".repeat(199)}\ufffd`, null, null])
    expect(out.bytes.toString("latin1").match(/^Content-Type: text\/csv[^\r]*/gm)).toEqual([
      expect.stringContaining("text/csv; charset=utf-8"),
      "Content-Type: text/csv",
    ])
  })
})

describe("The disclosure", () => {
  const hostile: Readonly<Record<string, string>> = {
    "no body": message("Content-Type: application/pdf; name=a.pdf", "PDF"),
    "no MIME": "From: ada@mail.example\nTo: bob@example.org\n\nhello",
    nothing: "From: ada@mail.example\n\n",
    "an empty text beside HTML": `${head}${parts("multipart/alternative", "b", text("  \n"), html("<p>seen</p>"))}`,
    "HTML that hides what follows": message(
      "Content-Type: text/html",
      "<style>div{display:none!important}</style><p>seen<div style='position:fixed;inset:0;height:9999px;background:#fff'><!-- <![CDATA[ <textarea><plaintext><svg><title>",
    ),
    "HTML that a comment opens in one part": `${head}${parts("multipart/mixed", "b", html("<p>a<!--"), html("<script>"), text("b"))}`,
    "two types, of which readers choose": message(
      "Content-Type: text/plain\nContent-Type: multipart/mixed; boundary=x",
      "--x\n\nhello\n--x--\n",
    ),
    "a type spelled in two ways": message(
      'Content-Type: multipart/mixed;\n boundary=x; boundary="y"',
      "--x\nContent-Type: text/html\n\nA\n--x--\n--y\n\nB\n--y--\n",
    ),
    "a part that is a message": `${head}${parts("multipart/mixed", "b", text("see below"), `Content-Type: message/rfc822\n\n${message("Content-Type: text/html", "<style>*{display:none}</style>")}`)}`,
    "HTML for other readers": `${head}${parts("multipart/alternative", "b", text("a"), "Content-Type: text/x-amp-html\n\n<html amp4email>", "Content-Type: text/watch-html\n\n<b>x</b>", html("<p>a</p>"))}`,
    "a digest": `${head}${parts("multipart/digest", "b", `\n${message("Content-Type: text/html", "<p>x")}`)}`,
    "parts nested as deep as they are read": `${head}${Array.from({ length: 18 }).reduce<string>((inner, _, n) => parts("multipart/mixed", `d${n}e`, inner), text("deep"))}`,
    "a boundary that begins another": `${head}${parts("multipart/mixed", "a", parts("multipart/mixed", "ab", parts("multipart/mixed", "abc", text("x"))))}`,
    "UTF-7": message(
      "Content-Type: text/html; charset=utf-7",
      "+ADw-style+AD4-*+AHs-display:none+AH0-+ADw-/style+AD4-seen",
    ),
    "an unknown set and encoding": message(
      "Content-Type: text/plain; charset=x-nobody\nContent-Transfer-Encoding: x-uuencode",
      "seen",
    ),
    "quoted-printable that never ends": message(
      "Content-Type: text/html\nContent-Transfer-Encoding: quoted-printable",
      "<p>a=\n=\n=3C!--=",
    ),
    "a signature that programs fold": message("Content-Type: text/plain", "a\n-- \nb"),
    "right to left without an end": message("Content-Type: text/plain; charset=utf-8", "a\u202e\u2067".repeat(50)),
    "a screen of nothing": message("Content-Type: text/html", `<p>a</p>${"<br>".repeat(5_000)}`),
    "screens of nothing in many parts": `${head}${parts("multipart/mixed", "b", ...Array.from({ length: 60 }, () => html("<br>".repeat(150))))}`,
  }
  for (const [name, raw] of Object.entries(hostile)) {
    it(`is in both bodies of ${name}`, async () => {
      const out = await done(raw)
      expectDisclosed(out)
      const shown = out.read.html ?? ""
      expect(shown).not.toMatch(/<style|<script|position:fixed|display:none|<!-- |<textarea|<plaintext/i)
      expect((shown.match(/<br>/g) ?? []).length).toBeLessThan(260)
      expect(out.attachments.some(({ content_type }) => /^(?:multipart|message)\//.test(content_type))).toBe(false)
    })
  }

  it.skipIf(!has("python"))("is found by another program", async () => {
    const raws = await Promise.all(
      Object.values(hostile).map(async (raw) => (await done(raw)).bytes.toString("base64")),
    )
    const { stdout } = spawnSync("python3", ["-c", python], {
      input: JSON.stringify(raws),
      maxBuffer: 64 * 1024 * 1024,
    })
    const read: ReadonlyArray<{ plain: string; html: string }> = JSON.parse(stdout.toString())
    expect(read).toHaveLength(raws.length)
    for (const { plain, html } of read) {
      expect(unfolded(plain.replaceAll("\r", "")).endsWith(disclosure)).toBe(true)
      expect(html.replaceAll("\r", "").trimEnd().endsWith(`${disclosure}</div>\n</body>\n</html>`)).toBe(true)
    }
  })
})

describe("A message that cannot be accepted", () => {
  it("is refused with the reason", async () => {
    expect(
      await fault(
        `${head}${parts("multipart/signed", "b", text("a"), "Content-Type: application/pgp-signature\n\nx")}`,
      ),
    ).toMatch(/^\/ Signed mail cannot carry/)
    expect(
      await fault(
        `${head}${parts("multipart/mixed", "o", parts("multipart/encrypted", "b", "Content-Type: application/pgp-encrypted\n\nVersion: 1"))}`,
      ),
    ).toMatch(/^\/ Encrypted mail/)
    expect(await fault(message("Content-Type: application/pkcs7-mime; smime-type=enveloped-data", "x"))).toMatch(
      /^\/ Signed or encrypted/,
    )
    expect(await fault(message("Content-Type: multipart/mixed", "--\nx"))).toMatch(
      /^\/ The parts of the message cannot/,
    )
    expect(await fault(`${head}Reply-To: eve@evil.example\n\nx`)).toMatch(/^\/reply_to /)
    expect(await fault(`${head}Cc: "not plain"@evil.example\n\nx`)).toMatch(/^\/cc /)
    expect(await fault(`${head}From: ada@mail.example\n\nx`)).toMatch(/^\/from /)
    expect(await fault(message("Content-Type: text/plain", "a".repeat(1_000_001)))).toMatch(
      /^\/text Expected at most 1000000/,
    )
    expect(await fault(message("Content-Type: text/html", "<b>".repeat(600)))).toMatch(/^\/html Elements are nested/)
    expect(
      await fault(`${head}${parts("multipart/mixed", "b", ...Array.from({ length: 1_200 }, () => text("x")))}`),
    ).toMatch(/^\/ Expected fewer than 1000 parts/)
    expect(
      await fault(
        `${head}${parts("multipart/mixed", "b", ...Array.from({ length: 201 }, () => "Content-Type: image/png\n\nx"))}`,
      ),
    ).toMatch(/^\/attachments /)
  })
})

describe("A limit of a submitted message", () => {
  const files = (count: number) =>
    `${head}${parts("multipart/mixed", "b", ...Array.from({ length: count }, () => "Content-Type: image/png\n\nx"))}`
  const to = (count: number) =>
    `From: Ada <ada@mail.example>\nTo: ${Array.from({ length: count }, (_, at) => `a${at}@example.org`).join(",\n ")}\nSubject: x\n\nx`
  it.each([
    ["files", files(200), files(201)],
    [
      "characters",
      message("Content-Type: text/plain", "a".repeat(1_000_000)),
      message("Content-Type: text/plain", "a".repeat(1_000_001)),
    ],
    [
      "characters of HTML",
      message("Content-Type: text/html", "a".repeat(1_000_000)),
      message("Content-Type: text/html", "a".repeat(1_000_001)),
    ],
    ["recipients", to(200), to(201)],
    [
      "the subject",
      `From: Ada <ada@mail.example>\nTo: b@example.org\nSubject: ${"a".repeat(900)}\n\nx`,
      `From: Ada <ada@mail.example>\nTo: b@example.org\nSubject: ${"a".repeat(901)}\n\nx`,
    ],
  ])("is exact: %s", async (_, within, beyond) => {
    expect(await fault(within)).toBe("Rewritten")
    expect(await fault(beyond)).toMatch(/ Expected at most /)
  })

  it("is exact: the parts, of which the message is one", async () => {
    const many = (count: number) =>
      `${head}${parts("multipart/mixed", "b", ...Array.from({ length: count }, () => text("x")))}`
    expect(await fault(many(998))).toBe("Rewritten")
    expect(await fault(many(999))).toBe("/ Expected fewer than 1000 parts")
  })
})
