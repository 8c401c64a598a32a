/** Bounces whose text alone says what failed: which words belong to which recipient, and which words count. */
import { index } from "@svc/mail-gateway/mail/mime/Part"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { read } from "@svc/mail-gateway/mail/sending/BounceReport"
import { describe, expect, it } from "vitest"

const reported = (fields: ReadonlyArray<string>, ...text: ReadonlyArray<string>) => {
  const raw = Buffer.from(
    ["From: MAILER-DAEMON@mx.example.org", "Subject: failure notice", ...fields, "", ...text, ""].join("\r\n"),
  )
  const parsed = parse(raw)
  return read(raw, index(raw), parsed.subject, parsed.text)
}

describe("The text of a bounce", () => {
  it("says of each recipient what stands below its address", () => {
    const found = reported(
      [],
      "Your message could not be delivered.",
      "",
      "<grace@example.org>:",
      "550 No such user",
      "",
      "<alan@example.org>:",
      "552 Over quota",
      "",
      "<kurt@example.org>:",
      "I tried for too long.",
    )
    expect(found).toEqual([
      { addresses: ["grace@example.org"], status: null, diagnostic: "550 No such user", hard: true },
      { addresses: ["alan@example.org"], status: null, diagnostic: "552 Over quota", hard: false },
      // Without words about this recipient, the first reason of the text counts.
      { addresses: ["kurt@example.org"], status: null, diagnostic: "550 No such user", hard: true },
    ])
  })

  it("says what failed for a recipient that only the header names", () => {
    const fields = ["X-Failed-Recipients: grace@example.org, alan@example.org"]
    expect(reported(fields, "Sorry.", "550 5.1.1 No such user")).toEqual(
      ["grace@example.org", "alan@example.org"].map((address) => ({
        addresses: [address],
        status: "5.1.1",
        diagnostic: "550 5.1.1 No such user",
        hard: true,
      })),
    )
  })

  it("does not count where it is quoted", () => {
    const found = reported([], "Delivery failed.", "> 550 5.1.1 No such user", "552 5.2.2 Over quota")
    expect(found).toMatchObject([{ status: "5.2.2", hard: false }])
  })

  it("does not count in a report that an automatic reply imitates", () => {
    const fields = ["From: Grace <grace@example.org>", "Content-Type: multipart/report; boundary=b"]
    const body = ["--b", "", "Your message could not be delivered: 550 5.1.1", "--b--"]
    const imitated = (...more: ReadonlyArray<string>) => {
      const raw = Buffer.from([...fields, ...more, "Subject: failure notice", "", ...body, ""].join("\r\n"))
      return read(raw, index(raw), "failure notice", parse(raw).text)
    }
    expect(imitated()).toMatchObject([{ status: "5.1.1" }])
    expect(imitated("Auto-Submitted: auto-replied")).toEqual([])
  })
})
