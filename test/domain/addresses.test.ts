/** Display names of addresses, and addresses for the list of Allowed Recipients. */
import { EmailAddress } from "@svc/domain/account/Account"
import { AllowedAddress } from "@svc/domain/mail/AllowedAddress"
import * as AddrSpec from "@svc/domain/mail/AddrSpec"
import * as PersonName from "@svc/domain/mail/PersonName"
import { Option, Schema } from "effect"
import { describe, expect, it } from "vitest"

describe("a display name", () => {
  it("is one line of at most 200 characters without bidirectional overrides", () => {
    expect(PersonName.shown("Ada Lovelace, Ph.D.")).toBe("Ada Lovelace, Ph.D.")
    expect(PersonName.shown("  عايدة ")).toBe("عايدة")
    expect(PersonName.shown("Ada\r\nBcc: eve\u2028x\u0000y\u0085z")).toBe("Ada Bcc: eve x y z")
    expect(PersonName.shown("\u202eknaB\u202c \u2066a\u2069\u200f\u061c")).toBe("knaB a")
    expect(PersonName.shown(`${"a".repeat(199)}\u{1f600}`)).toBe(`${"a".repeat(199)}\ufffd`)
  })

  it("is omitted if it is empty or contains an address", () => {
    for (const name of [null, "", " \t", "\u202e", "bank@example.org", "bank\uff20example.org", "x \u202e@\u202c y"]) {
      expect([name, PersonName.shown(name)]).toEqual([name, null])
    }
  })
})

describe("an address in a list", () => {
  const normalized = (text: string) => Option.getOrUndefined(Schema.decodeUnknownOption(AllowedAddress)(text))

  it("is normalized to A-labels and lower case", () => {
    const same = [
      "info@Bücher.example",
      "INFO@xn--bcher-kva.example",
      " info@BÜCHER.example ",
      "info@bu\u0308cher.example",
    ]
    for (const typed of same) expect([typed, normalized(typed)]).toEqual([typed, "info@xn--bcher-kva.example"])
    expect(normalized("Grace.Hopper+x@Navy.Example")).toBe("grace.hopper+x@navy.example")
    // Mail cannot be sent to it, but has been received from such addresses.
    expect(normalized("A..b@docomo.example")).toBe("a..b@docomo.example")
  })

  it("is rejected unless it is exactly one address", () => {
    for (const text of [
      "",
      "info",
      "@bücher.example",
      "info@",
      "a@b.example, c@d.example",
      "Ada <a@bücher.example>",
      "bücher@example.org",
      "a@bücher.example/x",
      "a@bü cher.example",
      "a@b\u200bü.example",
      "a@bücher.example\0",
      `a@${"ü".repeat(300)}.example`,
    ]) {
      expect([text, normalized(text)]).toEqual([text, undefined])
    }
  })
})

describe("The address of a recipient", () => {
  /** A domain of this length. */
  const domainOf = (length: number) => `${"a.".repeat(200).slice(0, length - 2)}aa`.slice(-length)

  it.each([
    ["Grace.Hopper+x@Navy.Example", "Grace.Hopper+x@navy.example"],
    [" a@BÜCHER.example ", "a@xn--bcher-kva.example"],
    [`${"a".repeat(64)}@example.org`, `${"a".repeat(64)}@example.org`],
    [`a@${domainOf(252)}`, `a@${domainOf(252)}`],
  ])("%s is read as %s", (text, address) => {
    const domain = address.slice(address.indexOf("@") + 1)
    expect(AddrSpec.parse(text)).toEqual({ _tag: "Address", address, domain })
    expect(AddrSpec.domainOf(text.trim().toUpperCase())).toBe(text.trim().toLowerCase().split("@")[1])
  })

  it.each([
    ["ada", /^Expected one address/],
    ["@example.org", /^Expected exactly one address/],
    [`${"a".repeat(65)}@example.org`, /^Expected exactly one address/],
    ["a@b@c.example", /^Expected exactly one address/],
    ["a@b.example, c@d.example", /^Expected exactly one address/],
    ["Ada <a@b.example>", /^Expected exactly one address/],
    ['"a"@b.example', /^Expected exactly one address/],
    ["a@", /^The part after the @ is not a domain/],
    ["a@b..example", /^The part after the @ is not a domain/],
    ["a@192.0.2.1", /^The part after the @ is not a domain/],
    ["a@7", /^The part after the @ is not a domain/],
    [`a@${"b".repeat(64)}.example`, /^The part after the @ is not a domain/],
    [`a@${domainOf(253)}`, /^The address is too long/],
    [`${"a,".repeat(200)}@example.org`, /^The address is too long/],
  ])("%s is rejected with a reason", (text, message) =>
    expect(AddrSpec.parse(text)).toEqual({ _tag: "Invalid", message: expect.stringMatching(message) }),
  )
})

describe("The address of an account", () => {
  const isValid = Schema.is(EmailAddress)
  const domainOf = (length: number) =>
    `${Array.from({ length: 200 }, () => "a.a")
      .join(".")
      .slice(0, length - 1)}a`

  it("has at most 64 octets before the @ and 254 in all", () => {
    expect([64, 65].map((length) => isValid(`${"a".repeat(length)}@example.org`))).toEqual([true, false])
    const rest = 254 - "ada@".length
    expect([rest, rest + 1].map((length) => isValid(`ada@${domainOf(length)}`))).toEqual([true, false])
  })

  it.each([
    "",
    "ada",
    "@example.org",
    "ada@",
    "ada@-example.org",
    "ada@example-.org",
    "ada@example..org",
    "ada@.org",
    "a b@x.org",
    "a@b@c",
    "ada@example.org\n",
    "ada@[127.0.0.1]",
    '"a"@example.org',
  ])("is not %j", (address) => expect(isValid(address)).toBe(false))
})
