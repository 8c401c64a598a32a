import { judge } from "@svc/mail-gateway/mail/judging/Judgement"
import { stamp } from "@svc/mail-gateway/mail/smtp/Trace"
import { generateKeyPairSync } from "node:crypto"
import { dkimSign } from "mailauth/lib/dkim/sign.js"
import { describe, expect, it } from "vitest"

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
const key = publicKey.export({ type: "spki", format: "der" }).toString("base64")

/** Public DNS is out of reach of tests; this is all of it that they need. */
const zone: Record<string, string> = {
  "TXT strict.example": "v=spf1 ip4:192.0.2.1 -all",
  "TXT _dmarc.strict.example": "v=DMARC1; p=reject",
  "TXT s1._domainkey.strict.example": `v=DKIM1; k=rsa; p=${key}`,
  "TXT lenient.example": "v=spf1 ip4:192.0.2.1 -all",
  "TXT s1._domainkey.signed.example": `v=DKIM1; k=rsa; p=${key}`,
  "TXT other.example": "v=spf1 ip4:192.0.2.1 -all",
}
const dns = (name: string, type: string): Promise<Array<Array<string>>> => {
  const record = zone[`${type} ${name}`]
  if (record !== undefined && !name.endsWith("silent.example")) return Promise.resolve([[record]])
  const code = name.endsWith("silent.example") ? "ETIMEOUT" : "ENOTFOUND"
  return Promise.reject(Object.assign(new Error(code), { code }))
}

const raw = (from: string) =>
  Buffer.from(`${from}Subject: hello\r\nDate: Fri, 20 Nov 2026 12:00:00 +0000\r\n\r\nbody\r\n`)
const verdict = async (message: Buffer, options: { ip?: string; mailFrom?: string } = {}) => {
  const arrival = {
    ip: options.ip ?? "203.0.113.9",
    helo: "mx.example.net",
    mailFrom: options.mailFrom ?? "",
    host: "mail.localhost",
  }
  return (await judge(message, arrival, dns)).origin
}
const signed = async (message: Buffer, domain: string) => {
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString()
  const signer = { signingDomain: domain, selector: "s1", privateKey: pem }
  const { signatures } = await dkimSign(message, { ...signer, signatureData: [signer] })
  return Buffer.concat([Buffer.from(signatures), message])
}

describe("the origin verdict", () => {
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
  it("is failed without a From, or with several", async () => {
    expect((await verdict(raw(""))).verdict).toBe("failed")
    expect((await verdict(raw("From: a@strict.example\r\nFrom: b@lenient.example\r\n"))).verdict).toBe("failed")
  })
  it("is verified without DMARC where SPF or DKIM passes for the From domain", async () => {
    expect(
      await verdict(raw("From: a@lenient.example\r\n"), { ip: "192.0.2.1", mailFrom: "b@lenient.example" }),
    ).toMatchObject({ verdict: "verified", dmarc: "none" })
    expect(await verdict(await signed(raw("From: a@signed.example\r\n"), "signed.example"))).toMatchObject({
      verdict: "verified",
    })
  })
  it("is unverified where there is nothing to go by, a stranger's pass included", async () => {
    expect((await verdict(raw("From: a@nowhere.example\r\n"))).verdict).toBe("unverified")
    const stranger = { ip: "192.0.2.1", mailFrom: "b@other.example" }
    expect((await verdict(raw("From: a@nowhere.example\r\n"), stranger)).verdict).toBe("unverified")
  })
  it("is error when DNS does not answer", async () => {
    expect((await verdict(raw("From: a@silent.example\r\n"), { mailFrom: "a@silent.example" })).verdict).toBe("error")
  })
})

/** What is kept of a message, without the fields we put on top. */
const kept = async (message: Buffer) => {
  const { cuts } = await judge(message, { ip: "203.0.113.9", helo: "h", mailFrom: "", host: "mail.localhost" }, dns)
  return stamp([], message, cuts).toString()
}

describe("Authentication-Results in our name", () => {
  it("are taken out of what comes in, others stay", async () => {
    const message = Buffer.from(
      "Authentication-Results: mail.localhost;\r\n dmarc=pass\r\nAuthentication-Results: other.example; spf=pass\r\nSubject: Authentication-Results: mail.localhost;\r\n\r\nAuthentication-Results: mail.localhost; x\r\n",
    )
    expect(await kept(message)).toBe(
      "Authentication-Results: other.example; spf=pass\r\nSubject: Authentication-Results: mail.localhost;\r\n\r\nAuthentication-Results: mail.localhost; x\r\n",
    )
  })
})
