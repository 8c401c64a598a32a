/** Bounces whose text alone says what failed: which words belong to which recipient, and which words count. */
import { index } from "@svc/mail-gateway/mail/mime/Part"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { read } from "@svc/mail-gateway/mail/sending/BounceReport"
import { describe, expect, it } from "vitest"

const reported = (fields: ReadonlyArray<string>, ...text: ReadonlyArray<string>) => {
  const has = (name: string) => fields.some((field) => field.startsWith(`${name}:`))
  const raw = Buffer.from(
    [
      ...(has("From") ? [] : ["From: MAILER-DAEMON@mx.example.org"]),
      ...(has("Subject") ? [] : ["Subject: failure notice"]),
      ...fields,
      "",
      ...text,
      "",
    ].join("\r\n"),
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
      "",
      "<ada@example.org>:",
      "User unknown",
    )
    expect(found).toEqual([
      { addresses: ["grace@example.org"], status: null, diagnostic: "550 No such user", hard: true },
      { addresses: ["alan@example.org"], status: null, diagnostic: "552 Over quota", hard: false },
      // If the text says nothing about this recipient, its first reason counts.
      { addresses: ["kurt@example.org"], status: null, diagnostic: "550 No such user", hard: true },
      { addresses: ["ada@example.org"], status: null, diagnostic: "User unknown", hard: true },
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

  it("says of each recipient that the header names what stands below its address", () => {
    const fields = ["X-Failed-Recipients: alan@example.org, grace@example.org"]
    const sections = ["<grace@example.org>:", "550 No such user", "", "<alan@example.org>:", "552 Over quota"]
    expect(reported(fields, ...sections)).toMatchObject([
      { addresses: ["alan@example.org"], diagnostic: "552 Over quota", hard: false },
      { addresses: ["grace@example.org"], diagnostic: "550 No such user", hard: true },
    ])
  })

  it("counts instead of a report within the returned message", () => {
    const returned = ["Content-Type: multipart/report; boundary=c", "", "--c", "Content-Type: message/delivery-status"]
    const victim = ["", "Final-Recipient: rfc822; victim@example.org", "Status: 5.1.1", "--c--"]
    const parts = [
      "--b",
      "",
      "Delivery failed.",
      "--b",
      "Content-Type: message/rfc822",
      "",
      ...returned,
      ...victim,
      "--b--",
    ]
    expect(reported(["Content-Type: multipart/mixed; boundary=b"], ...parts)).toMatchObject([{ addresses: [] }])
  })

  it("names an address without the full stop that ends its sentence", () => {
    expect(reported([], "Your message could not be delivered to Grace@example.org.")).toMatchObject([
      { addresses: ["grace@example.org"] },
    ])
  })

  it("does not count in a quotation", () => {
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

  it("counts if its author is a mail server or it has X-Failed-Recipients, and only for a failure", () => {
    const grace = "From: Grace <grace@example.org>"
    const failed = "X-Failed-Recipients: alan@example.org"
    const hello = "Subject: hello"
    const text = "550 5.1.1 No such user"
    expect(reported([grace], text)).toEqual([])
    expect(reported([grace, hello, failed], text)).toMatchObject([{ addresses: ["alan@example.org"], hard: true }])
    expect(reported([hello], text)).toEqual([])
    expect(reported([hello], "Delivery failed:", text)).toHaveLength(1)
    // The server tries again, whatever the subject says.
    expect(reported([], text, "The server will keep trying.")).toEqual([])
  })

  it("ends before the returned message, and may name addresses in capitals and reasons without a code", () => {
    const returned = ["Received: from x.example", "<victim@example.org>:", "550 5.1.1 No such user"]
    expect(reported([], "<Grace@Example.org>:", "User unknown", ...returned)).toEqual([
      { addresses: ["grace@example.org"], status: null, diagnostic: "User unknown", hard: false },
    ])
  })

  it("says which command was refused, since only a refusal of the recipient concerns its address", () => {
    const refused = (command: string) =>
      reported([], "Delivery failed.", `<grace@example.org>: host mx.example.org said: 550 No such user`, command)
    for (const command of ["(in reply to RCPT TO command)", "(in reply to nothing)"]) {
      expect(refused(command), command).toMatchObject([{ hard: true }])
    }
    for (const command of ["MAIL FROM command", "end of DATA command", "sending message body"]) {
      expect(refused(`(in reply to ${command})`), command).toMatchObject([{ hard: false }])
    }
    const atMail = ["<grace@example.org>:", "550 5.1.1 No such user (in reply to MAIL FROM command)"]
    expect(reported([], ...atMail)).toMatchObject([{ status: "5.1.1", hard: false }])
    const atData = ["<grace@example.org>:", "550 5.1.1 No such user (in reply to end of DATA command)"]
    expect(reported([], ...atData)).toMatchObject([{ status: "5.1.1", hard: true }])
  })

  it("names addresses in its only section, not those before it", () => {
    expect(reported([], "Mail of ada@mail.example failed.", "<grace@example.org>:", "550 No such user")).toMatchObject([
      { addresses: ["grace@example.org"] },
    ])
  })

  it("counts up to 32 KiB, and a reason up to 500 characters", () => {
    const end = ["", "<grace@example.org>:", "550 No such user"]
    const after = (bytes: number) => reported([], "Delivery failed.", "x".repeat(bytes), ...end)
    const room = 32 * 1024 - ["Delivery failed.", "", ...end].join("\n").length
    expect(after(room)).toMatchObject([{ diagnostic: "550 No such user" }])
    expect(after(room + 1)).toMatchObject([{ diagnostic: "550 No such use" }])
    expect(after(32 * 1024)).toMatchObject([{ addresses: [], diagnostic: null }])
    const [long] = reported([], "<grace@example.org>:", `550 ${"x".repeat(497)}`)
    expect(long!.diagnostic).toBe(`550 ${"x".repeat(496)}`)
  })

  it("names at most 100 recipients, each with at most 200 addresses", () => {
    const named = (count: number) => Array.from({ length: count }, (_, n) => `<a${n}@x.example>:`)
    expect(reported([], ...named(100))).toHaveLength(100)
    expect(reported([], ...named(101))).toHaveLength(100)
    const [first] = reported([], "<first@x.example>:", `to ${named(200).join(" ")}`)
    expect(first!.addresses).toHaveLength(200)
  })
})

describe("The fields of a report", () => {
  const report = (...blocks: ReadonlyArray<ReadonlyArray<string>>) =>
    reported(
      ["Content-Type: multipart/report; report-type=delivery-status; boundary=b"],
      "--b",
      "Content-Type: message/delivery-status",
      "",
      "Reporting-MTA: dns; x.example",
      "",
      ...blocks.flatMap((block) => [...block, ""]),
      "--b--",
    )
  const named = (n: number) => [`Final-Recipient: rfc822; a${n}@x.example`, "Action: failed", "Status: 5.1.1"]

  it("may name the original recipient only, and count for a failure only", () => {
    const original = ["Original-Recipient: rfc822; grace@example.org", "Status: 5.1.1"]
    expect(report(original)).toMatchObject([{ addresses: ["grace@example.org"], hard: true }])
    expect(report(["Final-Recipient: rfc822; a@x.example", "Status: 2.1.5"], named(1))).toMatchObject([
      { addresses: ["a1@x.example"] },
    ])
  })

  it("count for at most 100 recipients", () => {
    expect(report(...Array.from({ length: 101 }, (_, n) => named(n)))).toHaveLength(100)
  })

  it("are read below several empty lines, up to 64 KiB, and in the first 100 parts only", () => {
    expect(report(["X-Note: x", "", "", ...named(1), "", ""], named(2))).toHaveLength(2)
    const padded = (bytes: number) => report([`X-Note: ${"x".repeat(bytes)}`, "", ...named(1)])
    expect(padded(60 * 1024)).toMatchObject([{ addresses: ["a1@x.example"] }])
    expect(padded(64 * 1024)).toMatchObject([{ addresses: [] }])
    // The whole message is one of the parts.
    const behind = (parts: number) =>
      reported(
        ["Content-Type: multipart/mixed; boundary=b"],
        ...Array.from({ length: parts }, () => ["--b", "", "x"]).flat(),
        "--b",
        "Content-Type: message/delivery-status",
        "",
        ...named(1),
        "--b--",
      )
    expect(behind(98)).toMatchObject([{ addresses: ["a1@x.example"] }])
    expect(behind(99)).toMatchObject([{ addresses: [] }])
  })

  it("do not count in a report about something else", () => {
    const about = (type: string) =>
      reported(
        ["Content-Type: multipart/report; boundary=b"],
        "--b",
        "",
        "550 5.1.1 No such user",
        "--b",
        `Content-Type: ${type}`,
        "",
        "x",
        "--b--",
      )
    expect(about("text/plain")).toHaveLength(1)
    expect(about("message/feedback-report")).toEqual([])
  })
})
