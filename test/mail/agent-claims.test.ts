/** The DID that a received message claims: stated once, and covered by a signature of the author's domain. */
import { judge } from "@svc/mail-gateway/mail/judging/Verdict"
import { describe, expect, it } from "vitest"
import { dns, sign } from "./Forgery.ts"

const did = "did:web:agents.example:%40ada"
const fields = "From:Subject:Date:Agent-Identity"
const claim = `Agent-Identity: ${did}\r\n`
const letter = (given = claim, author = "a@bank.example") =>
  Buffer.from(
    `${given}From: ${author}\r\nSubject: hello\r\nDate: Fri, 20 Nov 2026 12:00:00 +0000\r\n\r\nbody\r\n`,
    "latin1",
  )
const signed = (message: Buffer, domain = "bank.example", covered = fields) =>
  sign(message, { domain, fields: covered, canonicalization: "relaxed/relaxed" })

/** A session that makes the message itself verified (SPF), whatever its signatures are. */
const judged = (message: Buffer, lookup = dns) =>
  judge(message, { ip: "192.0.2.1", helo: "mx.example", mailFrom: "a@bank.example", host: "mail.localhost" }, lookup)

describe("The DID in Agent-Identity", () => {
  it("is claimed if an aligned signature covers it", async () => {
    expect((await judged(await signed(letter()))).claim).toEqual({ did, domain: "bank.example" })
    // The domain has no DMARC policy.
    const author = "a@evil.co.uk"
    expect((await judged(await signed(letter(claim, author), "evil.co.uk"))).claim).toEqual({
      did,
      domain: "evil.co.uk",
    })
  })

  it("is not claimed if anyone could have added or changed it", async () => {
    const uncovered = "From:Subject:Date"
    const changed = async (change: (text: string) => string) =>
      Buffer.from(change((await signed(letter())).toString("latin1")), "latin1")
    const messages: Readonly<Record<string, Buffer>> = {
      unsigned: letter(),
      uncovered: await signed(letter(), "bank.example", uncovered),
      added: Buffer.concat([Buffer.from(claim), await signed(letter(""), "bank.example", uncovered)]),
      "added to another": await changed((text) => `Agent-Identity: did:web:mallory.example\r\n${text}`),
      changed: await changed((text) => text.replace("%40ada", "%40eve")),
      "signed twice": await signed(letter(claim + claim), "bank.example", `${fields}:Agent-Identity`),
      "signed by a stranger": await signed(letter(), "evil.co.uk"),
    }
    for (const [name, message] of Object.entries(messages)) {
      const { origin, claim } = await judged(message)
      expect([name, origin.verdict, claim]).toEqual([name, "verified", undefined])
    }
  })

  it("is not claimed for a domain whose policy excludes the signing domain", async () => {
    const strict = (name: string, type: string) =>
      name === "_dmarc.bank.example" ? Promise.resolve([["v=DMARC1; p=reject; adkim=s"]]) : dns(name, type)
    const below = await signed(letter(), "mail.bank.example")
    expect((await judged(below)).claim).toEqual({ did, domain: "mail.bank.example" })
    const { origin, claim: none } = await judged(below, strict)
    expect([origin.verdict, none]).toEqual(["verified", undefined])
    expect((await judged(await signed(letter()), strict)).claim).toEqual({ did, domain: "bank.example" })
  })

  it("is not claimed if the policy of the author's domain could not be read", async () => {
    const outage = (name: string, type: string) =>
      name === "_dmarc.bank.example"
        ? Promise.reject(Object.assign(new Error("ETIMEOUT"), { code: "ETIMEOUT" }))
        : dns(name, type)
    const { origin, claim: none } = await judged(await signed(letter()), outage)
    expect([origin.verdict, origin.dkim, none]).toEqual(["error", "pass", undefined])
  })

  it.each([
    "did:web:",
    "did:key:z6Mk",
    "did:web:a.example:..",
    "did:web:a.example:%2F",
    `did:web:${"a".repeat(600)}`,
    "",
  ])("is not claimed if it has no document: %s", async (text) => {
    expect((await judged(await signed(letter(`Agent-Identity: ${text}\r\n`)))).claim).toBeUndefined()
  })
})
