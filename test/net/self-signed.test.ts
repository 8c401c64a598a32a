import { createPrivateKey, X509Certificate } from "node:crypto"
import { createSecureContext } from "node:tls"
import { selfSigned } from "@svc/cluster/net/SelfSigned"
import { expect, it } from "vitest"

it("a self-signed certificate is valid DER for any length of its signature", () => {
  for (let at = 0; at < 200; at++) {
    const { cert, key } = selfSigned(["localhost", `${"n".repeat(at % 60)}.example`], new Date())
    createSecureContext({ cert, key })
    const read = new X509Certificate(cert)
    expect(read.checkPrivateKey(createPrivateKey(key))).toBe(true)
    expect(read.checkHost("localhost")).toBe("localhost")
    expect(read.verify(read.publicKey)).toBe(true)
  }
})

it("a self-signed certificate is valid for a year, and a day before for clocks that are behind", () => {
  const now = new Date("2026-11-20T12:00:00Z")
  const { validFrom, validTo } = new X509Certificate(selfSigned(["localhost"], now).cert)
  expect([Date.parse(validFrom), Date.parse(validTo)]).toEqual([
    Date.parse("2026-11-19T12:00:00Z"),
    Date.parse("2027-11-20T12:00:00Z"),
  ])
})
