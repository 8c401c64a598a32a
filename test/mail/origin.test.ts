import { judge } from "@svc/mail-gateway/mail/judging/Verdict"
import { stamp } from "@svc/mail-gateway/mail/smtp/Trace"
import { generateKeyPairSync } from "node:crypto"
import { dkimSign } from "mailauth/lib/dkim/sign.js"
import { describe, expect, it } from "vitest"

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const key = publicKey.export({ type: "spki", format: "der" }).toString("base64")

/** DNS records for the tests, which have no access to public DNS. */
const zone: Record<string, string> = {
  "TXT strict.example": "v=spf1 ip4:192.0.2.1 -all",
  "TXT _dmarc.strict.example": "v=DMARC1; p=reject",
  "TXT s1._domainkey.strict.example": `v=DKIM1; k=rsa; p=${key}`,
  "TXT lenient.example": "v=spf1 ip4:192.0.2.1 -all",
  "TXT s1._domainkey.signed.example": `v=DKIM1; k=rsa; p=${key}`,
  "TXT s1._domainkey.trying.example": `v=DKIM1; k=rsa; t=s : Y; p=${key}`,
  "TXT other.example": "v=spf1 ip4:192.0.2.1 -all",
  "TXT policy.example": "v=spf1 ip4:192.0.2.1 include:silent.example -all",
  "TXT _dmarc.policy.example": "v=DMARC1; p=reject",
  "TXT _dmarc.github.io": "v=DMARC1; p=reject",
  "TXT s1._domainkey.attacker.github.io": `v=DKIM1; k=rsa; p=${key}`,
  "TXT s1._domainkey.evilstrict.example": `v=DKIM1; k=rsa; p=${key}`,
  "TXT attacker.github.io": "v=spf1 ip4:192.0.2.1 -all",
}
const dns = (name: string, type: string): Promise<Array<Array<string>>> => {
  const record = zone[`${type} ${name}`]
  const isSilent = name.endsWith("silent.example") || name.endsWith("mute.policy.example")
  if (record !== undefined && !isSilent) return Promise.resolve([[record]])
  const code = isSilent ? "ETIMEOUT" : "ENOTFOUND"
  return Promise.reject(Object.assign(new Error(code), { code }))
}

const raw = (from: string) =>
  Buffer.from(`${from}Subject: hello\r\nDate: Fri, 20 Nov 2026 12:00:00 +0000\r\n\r\nbody\r\n`)
interface Session {
  readonly ip?: string
  readonly mailFrom?: string
}
const arrivalOf = (options: Session) => ({
  ip: options.ip ?? "203.0.113.9",
  helo: "mx.example.net",
  mailFrom: options.mailFrom ?? "",
  host: "mail.localhost",
})
const verdict = async (message: Buffer, options: Session = {}) => (await judge(message, arrivalOf(options), dns)).origin
const signed = async (message: Buffer, domain: string, options: { fields?: string; length?: number } = {}) => {
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  const signer = {
    signingDomain: domain,
    selector: "s1",
    privateKey: pem,
    ...(options.length === undefined ? {} : { maxBodyLength: options.length }),
  }
  const list = options.fields === undefined ? {} : { headerList: options.fields }
  const { signatures } = await dkimSign(message, { ...signer, ...list, signatureData: [signer] })
  return Buffer.concat([Buffer.from(signatures), message])
}

describe("The origin verdict", () => {
  it("is verified when DMARC passes by SPF or by DKIM", async () => {
    const message = raw("From: a@strict.example\r\n")
    expect(await verdict(message, { ip: "192.0.2.1", mailFrom: "a@strict.example" })).toMatchObject({
      verdict: "verified",
      spf: "pass",
      dmarc: "pass",
      domain: "strict.example",
    })
    expect(await verdict(await signed(message, "strict.example"))).toMatchObject({
      verdict: "verified",
      dkim: "pass",
      dmarc: "pass",
    })
  })
  it("is failed when the domain publishes DMARC and the message does not pass", async () => {
    expect(await verdict(raw("From: a@strict.example\r\n"), { mailFrom: "a@strict.example" })).toMatchObject({
      verdict: "failed",
    })
    const altered = await signed(raw("From: a@strict.example\r\n"), "strict.example")
    expect(await verdict(Buffer.from(altered.toString().replace("body", "evil")))).toMatchObject({ verdict: "failed" })
  })
  it("is failed without a From field or with several", async () => {
    expect((await verdict(raw(""))).verdict).toBe("failed")
    expect((await verdict(raw("From: a@strict.example\r\nFrom: b@lenient.example\r\n"))).verdict).toBe("failed")
  })
  it("is verified without DMARC if SPF or DKIM passes for the From domain", async () => {
    expect(
      await verdict(raw("From: a@lenient.example\r\n"), { ip: "192.0.2.1", mailFrom: "b@lenient.example" }),
    ).toMatchObject({ verdict: "verified", dmarc: "none" })
    expect(await verdict(await signed(raw("From: a@signed.example\r\n"), "signed.example"))).toMatchObject({
      verdict: "verified",
    })
  })
  it("is unverified if no domain authenticates the author, even if an unrelated domain passes", async () => {
    expect((await verdict(raw("From: a@nowhere.example\r\n"))).verdict).toBe("unverified")
    const stranger = { ip: "192.0.2.1", mailFrom: "b@other.example" }
    expect((await verdict(raw("From: a@nowhere.example\r\n"), stranger)).verdict).toBe("unverified")
  })
  it("is error when DNS does not respond", async () => {
    expect((await verdict(raw("From: a@silent.example\r\n"), { mailFrom: "a@silent.example" })).verdict).toBe("error")
  })
})

/** Returns the stored message without the service's own fields. */
const storedMessage = async (message: Buffer) => {
  const { cuts } = await judge(message, arrivalOf({}), dns)
  return Buffer.concat(stamp([], message, cuts)).toString()
}

describe("Alignment", () => {
  it("compares registered domains and does not match public suffixes", async () => {
    // Domains below a shared public suffix belong to different owners.
    const neighbour = await signed(raw("From: support@github.io\r\n"), "attacker.github.io")
    expect((await verdict(neighbour, { ip: "192.0.2.1", mailFrom: "a@attacker.github.io" })).verdict).toBe("failed")
    const victim = await signed(raw("From: a@victim.github.io\r\n"), "attacker.github.io")
    expect((await verdict(victim)).verdict).toBe("failed")
    const suffix = await signed(raw("From: a@strict.example\r\n"), "evilstrict.example")
    expect((await verdict(suffix)).verdict).toBe("failed")
    expect((await verdict(await signed(raw("From: a@news.strict.example\r\n"), "strict.example"))).verdict).toBe(
      "verified",
    )
  })
  // Full-width letters, another full stop, an invisible character, a letter whose lower case is ASCII, the root dot.
  it.each([
    "\uff53trict.example",
    "strict\u3002example",
    "str\u00adict.example",
    "stric\u200bt.example",
    "\u017ftrict.example",
    "STRICT.example.",
  ])("normalizes the spelling %j before querying DNS", async (spelling) => {
    const {
      verdict: stated,
      dmarc,
      domain,
    } = await verdict(await signed(raw(`From: a@${spelling}\r\n`), "other.example"))
    expect({ said: stated, dmarc, domain }).toEqual({ said: "failed", dmarc: "fail", domain: "strict.example" })
  })
})

describe("A DKIM signature", () => {
  const message = raw("From: a@strict.example\r\nReply-To: b@strict.example\r\n")

  it("is skipped if it contains excessive white space", async () => {
    for (const gap of [" ".repeat(7_000), " \t\r\n".repeat(200), "\r\n ".repeat(200)]) {
      const field = `DKIM-Signature: v=1; a=rsa-sha256; d${gap}x; s=s1; h=from; bh=A; b=A\r\n`
      expect(await verdict(Buffer.concat([Buffer.from(field), message]))).toMatchObject({ dkim: "none" })
    }
  })
  it.each([
    ["200 names", 200, (n: number) => ({ h: `from${":a".repeat(n - 1)}` })],
    ["a domain of 255 characters", 255, (n: number) => ({ d: "d".repeat(n) })],
    ["a selector of 255 characters", 255, (n: number) => ({ s: "s".repeat(n) })],
  ])("is verified with %s, and skipped with one more", async (_, most, tags) => {
    const resultOf = async (n: number) => {
      const { d, s, h } = { d: "strict.example", s: "s1", h: "from", ...tags(n) }
      const field = `DKIM-Signature: v=1; a=rsa-sha256; d=${d}; s=${s}; h=${h}; bh=QQ==; b=QQ==\r\n`
      return (await verdict(Buffer.concat([Buffer.from(field), message]))).dkim
    }
    expect(await resultOf(most)).not.toBe("none")
    expect(await resultOf(most + 1)).toBe("none")
  })
  it("is not looked for behind ten others", async () => {
    const others = (n: number) =>
      Buffer.from("DKIM-Signature: v=1; a=rsa-sha256; d=no.example; s=s1; h=from; bh=QQ==; b=QQ==\r\n".repeat(n))
    const own = await signed(message, "strict.example")
    expect((await verdict(Buffer.concat([others(9), own]))).verdict).toBe("verified")
    expect((await verdict(Buffer.concat([others(10), own]))).verdict).toBe("failed")
  })
  it("does not count if the domain is testing DKIM", async () => {
    const tried = await signed(raw("From: a@trying.example\r\n"), "trying.example")
    expect(await verdict(tried)).toMatchObject({ verdict: "unverified", dkim: "policy" })
  })
  it("does not count if it covers only part of the body", async () => {
    const partly = await signed(message, "strict.example", { length: 3 })
    expect(await verdict(partly)).toMatchObject({ verdict: "failed", dkim: "policy", dmarc: "fail" })
    const more = Buffer.concat([await signed(message, "strict.example", { length: 6 }), Buffer.from("more\r\n")])
    expect((await verdict(more)).verdict).toBe("failed")
    const whole = await signed(message, "strict.example", { length: 6 })
    const both = [await signed(partly, "strict.example"), await signed(whole, "strict.example", { length: 3 })]
    // One of the whole body counts beside it, whichever comes first.
    for (const one of [whole, ...both]) expect((await verdict(one)).verdict).toBe("verified")
  })
  it("does not count if it omits a displayed field", async () => {
    const some = await signed(message, "strict.example", { fields: "From:Subject:Date" })
    expect(await verdict(some)).toMatchObject({ verdict: "failed", dkim: "policy" })
    const all = await signed(message, "strict.example", { fields: "From:Subject:Reply-To" })
    expect((await verdict(all)).verdict).toBe("verified")
    // The signature does not cover the missing Subject, so anybody could have removed it.
    const bare = Buffer.from("From: a@strict.example\r\n\r\nbody\r\n")
    expect((await verdict(await signed(bare, "strict.example", { fields: "From" }))).verdict).toBe("failed")
    // `policy` means a valid signature that covers too little; this one is invalid.
    const wrong = Buffer.from(some.toString().replace("body", "evil"))
    expect((await verdict(wrong)).dkim).not.toMatch(/policy|pass/)
  })
  it("may omit the content fields if the body can be read in only one way", async () => {
    const fields = { fields: "From:Subject" }
    const of = (type: string, body: string) =>
      Buffer.from(`From: a@strict.example\r\nSubject: x\r\n${type}\r\n\r\n${body}`)
    const alternative = "--b\r\n\r\ntext\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>text\r\n--b--\r\n"
    for (const [type, body, expected] of [
      ['Content-Type: text/plain; charset="UTF-8"', "text\r\n", "verified"],
      ["Content-Type: multipart/alternative; boundary=b", alternative, "verified"],
      ["Content-Type: multipart/alternative; boundary=b", `before\r\n${alternative}`, "failed"],
      ["Content-Type: text/html", "text\r\n", "failed"],
      ["Content-Type: text/plain; charset=utf-7", "text\r\n", "failed"],
      ["Content-Type: text/plain (; charset=utf-7)", "text\r\n", "failed"],
      ["Content-Type: (text/html;) text/plain", "text\r\n", "failed"],
      ['Content-Type: text/plain; charset="utf-8" x; charset=utf-8', "text\r\n", "failed"],
      ["Content-Type: text/plain; charset=utf-7; charset=utf-8", "text\r\n", "failed"],
      ["Content-Type: text/plain; charset*=''utf-8", "text\r\n", "failed"],
      ["Content-Type: multipart/alternative; boundary=a; boundary=b", alternative, "failed"],
      ['Content-Type: multipart/alternative;\r\n boundary="b"; type="text/html"', alternative, "verified"],
      ["Content-Type:TEXT/PLAIN;charset=us-ascii;\r\nContent-Transfer-Encoding: 7BIT", "text\r\n", "verified"],
      ["Content-Transfer-Encoding: (base64) 7bit", "dGV4dA==\r\n", "failed"],
      ["Content-Transfer-Encoding: base64", "dGV4dA==\r\n", "failed"],
      ["Content-Type: text/plain; CHARSET=utf-8; charset=utf-8", "text\r\n", "failed"],
      ["Content-Type: text/plain; charset=utf-8; format=flowed", "text\r\n", "failed"],
      ["Content-Type: multipart/mixed; boundary=b", alternative, "verified"],
      ["Content-Type: multipart/digest; boundary=b", alternative, "failed"],
      ["Content-Type: multipart/alternative; boundary=b", `${alternative}after\r\n`, "failed"],
      ["Content-Type: multipart/alternative; boundary=b", alternative.replace("text/html", "text/plain"), "failed"],
      [
        "Content-Type: multipart/alternative; boundary=b",
        alternative.replace("--b\r\n", "--b\r\n\r\n\r\n--b\r\n"),
        "failed",
      ],
    ] as const) {
      expect((await verdict(await signed(of(type, body), "strict.example", fields))).verdict).toBe(expected)
    }
  })
})

describe("A message with ambiguous fields", () => {
  const from = "From: a@strict.example\r\n"
  it.each(["Subject: hello", "subject : other", "Date: Fri, 20 Nov 2026 12:00:00 +0000", "Subject\r\n : other"])(
    "is never verified with a second %j",
    async (field) => {
      const message = Buffer.from(`${field}\r\n${(await signed(raw(from), "strict.example")).toString()}`)
      expect((await verdict(message, { ip: "192.0.2.1", mailFrom: "a@strict.example" })).verdict).toBe("failed")
      const { parsed } = await judge(message, arrivalOf({}), dns)
      // The displayed value is the signed one.
      expect(parsed.subject).toBe("hello")
    },
  )
  it.each([
    "a@strict.example, b@strict.example",
    "a@strict.example, b@other.example",
    "b@other.example <a@strict.example>",
    "<@other.example:a@strict.example>",
    "a@other.example@strict.example",
    "a@strict.example (",
    "=?utf-8?b?Y2VvQG90aGVyLmV4YW1wbGU=?=@strict.example",
    "=?utf-8?q?ceo=40other.example=2C?=a@strict.example",
    "a@=?utf-8?q?strict.example?=",
    // Readers that allow white space and comments in a domain (RFC 5322 section 4.4) join what follows.
    "a@strict.example .other.example",
    "a@strict.example other",
    "a@strict.example(x).other.example",
    'a@other.example"".strict.example',
    "a@strict.example other <",
    "a@strict.example .other.example <a@strict.example>",
    'a@strict.example"b@other.example"',
    "a@strict.example\u00a0.other.example",
    "a@strict.example\v.other.example",
    "a@.strict.example",
    "a@strict\uff0e.example",
  ])("fails with From: %s", async (value) => {
    const session = { ip: "192.0.2.1", mailFrom: "a@strict.example" }
    expect((await verdict(raw(`From: ${value}\r\n`), session)).verdict).toBe("failed")
  })
  it.each([
    '"b@other.example" <a@strict.example>',
    "a@strict.example (b@other.example)",
    "Staff: a@strict.example;",
    "a@strict.example <a@strict.example>",
    "a@strict.example,",
    "<a@strict.example> Ada",
  ])("is verified with From: %s", async (value) => {
    const session = { ip: "192.0.2.1", mailFrom: "a@strict.example" }
    expect((await verdict(raw(`From: ${value}\r\n`), session)).verdict).toBe("verified")
  })
})

describe("A DNS outage", () => {
  it("yields error if an answer could have proved the origin, otherwise failed", async () => {
    const message = raw("From: a@policy.example\r\n")
    expect((await verdict(message, { mailFrom: "a@policy.example" })).verdict).toBe("error")
    expect((await verdict(message, { mailFrom: "a@silent.example" })).verdict).toBe("failed")
    expect((await verdict(await signed(message, "sub.silent.example"))).verdict).toBe("failed")
    const mute = raw("From: a@silent.policy.example\r\nReply-To: b@policy.example\r\n")
    expect((await verdict(await signed(mute, "mute.policy.example"))).verdict).toBe("error")
    const open = await signed(mute, "mute.policy.example", { fields: "From:Subject" })
    expect((await verdict(open)).verdict).toBe("failed")
  })
})

describe("Authentication-Results of the service", () => {
  it.each([
    ['"x dmarc=pass (y"@lenient.example', "From: a@strict.example\r\n", "dmarc=fail"],
    ['"; dmarc=pass"@other.example', "From: a@strict.example, b@strict.example\r\n", "dmarc=none"],
    ['"\tdmarc=pass"@other.example', "", "dmarc=none"],
  ])("states the DMARC result before anything that quotes the sender: %s", async (mailFrom, from, first) => {
    const { header } = await judge(raw(from), arrivalOf({ ip: "192.0.2.1", mailFrom }), dns)
    expect(header).toMatch(/^Authentication-Results: mail\.localhost;\r\n dmarc=/)
    expect(/dmarc=\w+/.exec(header ?? "")?.[0]).toBe(first)
  })
})

describe("Forged Authentication-Results", () => {
  it.each([
    "Authentication-Results: mail.localhost; dmarc=pass",
    "Authentication-Results: MAIL.localhost. 1; dmarc=pass",
    "Authentication-Results : mail.localhost; dmarc=pass",
    "authentication-results:mail.localhost;dmarc=pass",
    "Authentication-Results: (a (nested \\) one)) mail.localhost (b); dmarc=pass",
    'Authentication-Results: "mail.localhost" 1; dmarc=pass',
    'Authentication-Results: "mail.\\local\\host"; dmarc=pass',
    "Authentication-Results:\r\n\tmail.localhost\r\n\t1; dmarc=pass",
    "Authentication-Results\r\n : mail.localhost; dmarc=pass",
    "Authentication-Results: mail.localhost/1; dmarc=pass",
    "Authentication-Results: mail.localhost..; dmarc=pass",
    "Authentication-Results: =?utf-8?q?mail=2Elocalhost?=; dmarc=pass",
    "Authentication-Results: mail . (x) localhost; dmarc=pass",
    'Authentication-Results: "mail"."localhost" 1; dmarc=pass',
    "Authentication-Results: mail\u0001.localhost; dmarc=pass",
    "Authentication-Results: (never closed mail.localhost; dmarc=pass",
  ])("are removed when written as %j", async (field) => {
    const rest = "Subject: x\r\n\r\nbody\r\n"
    expect(await storedMessage(Buffer.from(`X-Before: a\r\n${field}\r\n${rest}`))).toBe(`X-Before: a\r\n${rest}`)
  })
  it.each([
    "Authentication-Results: mail.localhost.example; dmarc=pass",
    "Authentication-Results: other.example; x=mail.localhost",
    "X-Authentication-Results: mail.localhost; dmarc=pass",
  ])("do not include %j", async (field) => {
    const message = `${field}\r\n\r\nbody\r\n`
    expect(await storedMessage(Buffer.from(message))).toBe(message)
  })

  it("are removed from incoming mail while other fields are kept", async () => {
    const message = Buffer.from(
      "Authentication-Results: mail.localhost;\r\n dmarc=pass\r\nAuthentication-Results: other.example; spf=pass\r\nSubject: Authentication-Results: mail.localhost;\r\n\r\nAuthentication-Results: mail.localhost; x\r\n",
    )
    expect(await storedMessage(message)).toBe(
      "Authentication-Results: other.example; spf=pass\r\nSubject: Authentication-Results: mail.localhost;\r\n\r\nAuthentication-Results: mail.localhost; x\r\n",
    )
  })
})
