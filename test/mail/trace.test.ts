/** The trace fields of a session, whatever the client calls itself. */
import { received, stamp } from "@svc/mail-gateway/mail/smtp/Trace"
import { describe, expect, it } from "vitest"

const session = {
  helo: "mx.example.org",
  ip: "192.0.2.1",
  host: "mail.localhost",
  secure: false,
  isExtended: true,
  isUtf8: false,
  id: "1",
  at: new Date(0),
}

describe("The Received field", () => {
  it.each([
    [{ isExtended: false }, "SMTP"],
    [{}, "ESMTP"],
    [{ secure: true }, "ESMTPS"],
    [{ isUtf8: true }, "UTF8SMTP"],
    [{ isUtf8: true, secure: true }, "UTF8SMTPS"],
  ])("of %j names the protocol %s", (part, protocol) => {
    expect(received({ ...session, ...part })).toBe(
      "Received: from mx.example.org ([192.0.2.1])\r\n" +
        `\tby mail.localhost with ${protocol} id 1;\r\n\tThu, 01 Jan 1970 00:00:00 +0000`,
    )
  })

  it.each([
    ["[IPv6:2001:db8::1]", "[IPv6:2001:db8::1]"],
    ["bank.example([198.51.100.1])by", "bank.example[198.51.100.1]by"],
    ["a;b\r\nX: y", "abX:y"],
    ["ä(", "unknown"],
  ])("keeps only a valid name of %j", (helo, name) => {
    expect(received({ ...session, helo })).toContain(`Received: from ${name} ([192.0.2.1])\r\n`)
  })

  it("has the second in which the message arrived", () => {
    const dates = [999, 1_000, 1_999, 0].map((millis) => received({ ...session, at: new Date(millis) }).slice(-14))
    expect(dates).toEqual(["00:00:00 +0000", "00:00:01 +0000", "00:00:01 +0000", "00:00:00 +0000"])
  })
})

describe("A stamped message", () => {
  it("has the fields of the service on top, and not the fields that were cut out", () => {
    const pieces = stamp(["A: 1", "B: 2"], Buffer.from("0123456789"), [
      [0, 2],
      [4, 7],
    ])
    expect(Buffer.concat(pieces).toString()).toBe("A: 1\r\nB: 2\r\n23789")
  })
})
