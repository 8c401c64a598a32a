/** The keys by which a retry of a transaction is recognized. */
import { byMailbox, split } from "@svc/mail-gateway/mail/RecipientAddress"
import { keyOf, operator } from "@svc/mail-gateway/mail/Transactions"
import { describe, expect, it } from "vitest"

const mail = { sha256: new Uint8Array(32).fill(1), envelopeFrom: "grace@example.org" }
const key = (addresses: ReadonlyArray<string>, of = mail) =>
  Buffer.from(keyOf(of, byMailbox(addresses.map((one) => `${one}@mail.localhost`))[0]!)).toString("hex")

describe("The key of a transaction", () => {
  it("is the same for every order and spelling of the recipients", () => {
    expect(key(["ada+b", "ada", "ada+a"])).toBe(key(["ada", "ada+a", "ada+b"]))
    expect(key(["A-da+B", "ada+b"])).toBe(key(["ada+b"]))
  })

  it("differs for every other Mailbox, set of tags, sender and content", () => {
    const keys = [
      key(["ada"]),
      key(["grace"]),
      key(["ada+"]),
      key(["ada+a"]),
      key(["ada+b"]),
      key(["ada+a", "ada+b"]),
      key(["ada", "ada+a"]),
      key(["ada"], { ...mail, envelopeFrom: "" }),
      key(["ada"], { ...mail, sha256: new Uint8Array(32) }),
      Buffer.from(keyOf(mail, operator)).toString("hex"),
    ]
    expect(new Set(keys).size).toBe(keys.length)
  })
})

describe("An address", () => {
  it("has its domain after the last @, also behind a quoted local part", () => {
    expect(split('"ada@home"@Mail.localhost')).toEqual({ local: '"ada@home"', domain: "mail.localhost" })
    expect(split("postmaster")).toEqual({ local: "postmaster", domain: "" })
  })
})
