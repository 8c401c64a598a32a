/** Forwarded mail has an ARC seal that others can verify. */
import { generateKeyPairSync } from "node:crypto"
import { expect, it } from "@effect/vitest"
import { seal } from "@svc/mail-gateway/mail/ArcSeal"
import { judge } from "@svc/mail-gateway/mail/judging/Verdict"
import { Effect, Redacted } from "effect"
import { authenticate } from "mailauth"
import { describe } from "vitest"

const body = "From: a@example.org\r\nTo: postmaster@mail.example\r\nSubject: s\r\n\r\nhello\r\n"
const results = "Authentication-Results: mail.example;\r\n dmarc=none;\r\n spf=pass smtp.mailfrom=a@example.org\r\n"
const raw = (text: string) => new Uint8Array(Buffer.from(text))

describe.each(["rsa", "ed25519"])("An ARC seal with a key of kind %s", (kind) => {
  const { privateKey, publicKey } =
    kind === "rsa" ? generateKeyPairSync("rsa", { modulusLength: 2048 }) : generateKeyPairSync("ed25519")
  const spki = publicKey.export({ type: "spki", format: "der" })
  const p = (kind === "rsa" ? spki : spki.subarray(-32)).toString("base64")
  const settings = {
    domain: "mail.example",
    selector: "arc",
    key: Redacted.make(privateKey.export({ type: "pkcs8", format: "pem" }).toString()),
  }
  const arrival = { ip: "192.0.2.1", helo: "relay.example" }
  /** The DNS of the next receiver, which has the public key. */
  const resolver = async (name: string) => {
    if (name === "arc._domainkey.mail.example") return [[`v=DKIM1; k=${kind}; p=${p}`]]
    throw Object.assign(new Error("ENOTFOUND"), { code: "ENOTFOUND" })
  }
  /** Returns the result of the next receiver. */
  const found = (message: Uint8Array) =>
    Effect.promise(() =>
      authenticate(Buffer.from(message), { ...arrival, sender: "a@example.org", disableBimi: true, resolver }),
    )

  it.effect("contains the authentication results, also after a second forwarding", () =>
    Effect.gen(function* () {
      const once = yield* seal(raw(results + body), settings)
      const text = Buffer.from(once).toString()
      expect(text.endsWith(results + body)).toBe(true)
      expect(text).toMatch(/^ARC-Seal: i=1;[^]*cv=none/i)
      expect(text).toMatch(/ARC-Authentication-Results: i=1; mail\.example;\s+dmarc=none;\s+spf=pass/i)
      const next = yield* found(once)
      expect(next.arc && next.arc.status.result).toBe("pass")
      // A service that forwards it again writes the result of the seals where the next seal looks for it.
      const { header } = yield* Effect.promise(() =>
        judge(Buffer.from(once), { ...arrival, mailFrom: "", host: "next.example" }, resolver),
      )
      expect(header).toMatch(/^Authentication-Results: next\.example;\r\n dmarc=none[^;]*;\r\n arc=pass/)
      const judged = results.replace("dmarc=none", "dmarc=none;\r\n arc=pass")
      const twice = yield* found(yield* seal(Buffer.concat([Buffer.from(judged), once]), settings))
      expect(twice.arc && [twice.arc.status.result, twice.arc.i]).toEqual(["pass", 2])
    }),
  )

  it.effect("is not verified in a chain of more than 30 fields, which would cost too many queries", () =>
    Effect.gen(function* () {
      const once = Buffer.from(yield* seal(raw(results + body), settings))
      for (const [fields, isVerified] of [
        [30, true],
        [31, false],
      ] as const) {
        const message = Buffer.concat([Buffer.from("ARC-Other: x\r\n".repeat(fields - 3)), once])
        const { header } = yield* Effect.promise(() =>
          judge(message, { ...arrival, mailFrom: "", host: "next.example" }, resolver),
        )
        expect([fields, /\barc=pass/.test(header ?? "")]).toEqual([fields, isVerified])
      }
    }),
  )

  it.effect("does not trust a sender's claim that earlier seals are valid", () =>
    Effect.gen(function* () {
      const once = yield* seal(raw(results + body), settings)
      const broken = Buffer.from(Buffer.from(once).toString().replace("hello", "HELLO"))
      for (const words of ['"a; arc=pass"@example.org', '"a;\r\n arc=pass"@example.org', "a (arc=pass)"]) {
        const judged = results.replace("a@example.org", words)
        const twice = Buffer.from(yield* seal(Buffer.concat([Buffer.from(judged), broken]), settings)).toString()
        expect(twice).not.toMatch(/^ARC-Seal: i=2;[^:]*cv=pass/i)
      }
    }),
  )

  it.effect("is not added to mail without results, with results of another server, or if sealing fails", () =>
    Effect.gen(function* () {
      const inBody = body.replace("hello", `x\r\n${results}`)
      for (const text of [body, inBody, results.replace("mail.example", "other.example") + body]) {
        expect(Buffer.from(yield* seal(raw(text), settings)).toString()).toBe(text)
      }
      const useless = { ...settings, key: Redacted.make("no key") }
      expect(Buffer.from(yield* seal(raw(results + body), useless)).toString()).toBe(results + body)
    }),
  )
})
