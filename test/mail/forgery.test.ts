import { judge } from "@svc/mail-gateway/mail/judging/Verdict"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { dns, forgery, isHonestHost, owners, sign, modifications, forgedMessage } from "./Forgery.ts"

/** Signatures do not cover the amount of white space (RFC 6376 section 3.4). */
const fold = (text: string | null) => text?.replace(/\s+/g, " ").trim() ?? null

/** Returns what a reader sees of a message. */
const shown = (mail: ReturnType<typeof parse>) => ({
  from: mail.from,
  reply_to: mail.reply_to,
  subject: mail.subject,
  text: fold(mail.text),
  html: fold(mail.html),
  attachments: mail.attachments.map(({ filename, content_type }) => ({ filename, content_type })),
})

const judged = (raw: Buffer, options: { readonly ip?: string; readonly sender?: string } = {}, lookup = dns) =>
  judge(
    raw,
    {
      ip: options.ip ?? "203.0.113.9",
      helo: "mx.example.net",
      mailFrom: options.sender === undefined || options.sender === "" ? "" : `b@${options.sender}`,
      host: "mail.localhost",
    },
    lookup,
  )

describe("A verified message", () => {
  it("shows one address, whose organisation authenticated exactly what is shown", async () => {
    const seen = { verified: 0, not: 0 }
    await fc.assert(
      fc.asyncProperty(forgery, async (one) => {
        const { before, sent } = await forgedMessage(one)
        const { origin, parsed } = await judged(sent, { ip: one.ip, sender: one.sender })
        if (origin.verdict !== "verified") {
          seen.not++
          return
        }
        seen.verified++
        const domain = parsed.from?.address.split("@").at(-1) ?? ""
        const owner = owners[domain]
        expect(owner).toBeDefined()
        const byHost = isHonestHost(one.ip) && owners[one.sender] === owner
        const bySignature =
          one.signer !== undefined &&
          owners[one.signer] === owner &&
          JSON.stringify(shown(parsed)) === JSON.stringify(shown(parse(before)))
        expect(byHost || bySignature).toBe(true)
        // No evidence excuses repeated fields.
        for (const name of ["from", "subject", "date", "to", "content-type", "reply-to"]) {
          expect(parsed.headers.filter((header) => header.name.toLowerCase() === name).length).toBeLessThanOrEqual(1)
        }
      }),
      { numRuns: 1_500 },
    )
    // The generator produces both kinds.
    expect(Math.min(seen.verified, seen.not)).toBeGreaterThan(50)
  })

  it("is verified by a signature alone, whatever invisible content is added", async () => {
    const raw = Buffer.from(
      "From: Ada <a@mail.bank.example>\r\nTo: b@mail.localhost\r\nSubject: invoice\r\n\r\nhello\r\n",
    )
    for (const domain of ["bank.example", "mail.bank.example"]) {
      const signed = await sign(raw, { domain, fields: "From:Subject:To", canonicalization: "relaxed/relaxed" })
      for (const name of ["nothing", "X-Other: y on top", "X-Other: y below", "empty lines"]) {
        const { apply } = modifications.find((one) => one.name === name)!
        expect((await judged(Buffer.from(apply(signed.toString("latin1")), "latin1"))).origin.verdict).toBe("verified")
      }
    }
  })
})

describe("The DKIM result of several signatures", () => {
  const message = Buffer.from("From: a@bank.example\r\nSubject: hello\r\n\r\nbody\r\n")
  const signature = async (domain: string, of = message) => {
    const whole = await sign(of, { domain, fields: "From:Subject", canonicalization: "relaxed/relaxed" })
    return whole.subarray(0, whole.length - of.length)
  }

  it("is pass, or else a temporary error, or else that of the first one", async () => {
    const mute = (name: string, type: string) =>
      name === "s._domainkey.evil.co.uk"
        ? Promise.reject(Object.assign(new Error("ETIMEOUT"), { code: "ETIMEOUT" }))
        : dns(name, type)
    const changed = await signature("bank.example", Buffer.from(message.toString().replace("body", "other")))
    const [valid, unread] = [await signature("bank.example"), await signature("evil.co.uk")]
    const result = async (...signatures: ReadonlyArray<Buffer>) =>
      (await judged(Buffer.concat([...signatures, message]), {}, mute)).origin.dkim
    expect(await result(changed)).toBe("fail")
    expect(await result(changed, unread)).toBe("temperror")
    expect(await result(changed, unread, valid)).toBe("pass")
  })
})
