/** The content of bounces: standard ones, those that servers really send, and forged ones. */
import { index } from "@svc/mail-gateway/mail/mime/Part"
import { parse } from "@svc/mail-gateway/mail/ParsedMail"
import { read } from "@svc/mail-gateway/mail/sending/BounceReport"
import { recipientOf } from "@svc/mail-gateway/mail/sending/Bounces"
import { describe, expect, it } from "vitest"

const lines = (...all: ReadonlyArray<string>) => all.join("\r\n") + "\r\n"

const reported = (letter: string) => {
  const raw = Buffer.from(letter)
  const { subject, text } = parse(raw)
  return read(raw, index(raw), subject, text)
}

const report = (...blocks: ReadonlyArray<ReadonlyArray<string>>) =>
  lines(
    "From: MAILER-DAEMON@mx.example.org",
    "Subject: Undelivered Mail Returned to Sender",
    "MIME-Version: 1.0",
    "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
    "",
    "--b",
    "",
    "I'm sorry to have to inform you that your message could not be delivered.",
    "--b",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; mx.example.org",
    "",
    ...blocks.flatMap((block) => [...block, ""]),
    "--b",
    "Content-Type: message/rfc822",
    "",
    "From: ada@mail.example",
    "To: grace@example.org",
    "",
    "The original, 550 5.1.1 <victim@example.org>.",
    "--b--",
  )

describe("A delivery report", () => {
  it("yields the recipient, the status and the server's reply", () => {
    const block = [
      "Final-Recipient: rfc822; grace@internal.example",
      "Original-Recipient: rfc822;Grace+2Bone+2Btwo@example.org",
      "Action: failed",
      "Status: 5.1.1",
      "Diagnostic-Code: smtp; 550 5.1.1 <grace@internal.example>: Recipient",
      "    address rejected",
    ]
    expect(reported(report(block))).toEqual([
      {
        addresses: ["grace+2bone+2btwo@example.org", "grace+one+two@example.org", "grace@internal.example"],
        status: "5.1.1",
        diagnostic: "550 5.1.1 <grace@internal.example>: Recipient address rejected",
        hard: true,
      },
    ])
  })

  it.each([
    ["failed", "5.1.1", true],
    ["failed", "4.4.7", false],
    ["", "5.2.1", true],
    ["", "4.2.2", false],
  ])("with action %j and status %s is hard: %s", (action, status, hard) => {
    const block = [
      "Final-Recipient: rfc822;grace@example.org",
      ...(action === "" ? [] : [`Action: ${action}`]),
      `Status: ${status}`,
    ]
    expect(reported(report(block))).toMatchObject([{ status, hard }])
  })

  it.each(["delayed", "delivered", "relayed", "expanded"])("with action %s is not a bounce", (action) => {
    expect(reported(report(["Final-Recipient: rfc822;g@example.org", `Action: ${action}`, "Status: 5.0.0"]))).toEqual(
      [],
    )
  })

  it("with several recipients yields several failures, at most a hundred", () => {
    const block = (at: number) => [`Final-Recipient: rfc822;r${at}@example.org`, "Action: failed", "Status: 5.1.1"]
    expect(reported(report(block(0), block(1)))).toHaveLength(2)
    expect(reported(report(...Array.from({ length: 500 }, (_, at) => block(at))))).toHaveLength(100)
  })

  it("is not read from the returned message", () => {
    const inner = report(["Final-Recipient: rfc822;victim@example.org", "Action: failed", "Status: 5.1.1"])
    const outer = lines("From: a@example.org", "Subject: hello", "Content-Type: message/rfc822", "") + inner
    expect(reported(outer)).toEqual([])
  })
})

const plainly = (subject: string, text: ReadonlyArray<string>, ...head: ReadonlyArray<string>) =>
  lines("From: MAILER-DAEMON@example.org", `Subject: ${subject}`, ...head, "", ...text)

const autoReply = (text: string, ...head: ReadonlyArray<string>) =>
  plainly("Undeliverable: away until May", [text], ...head).replace("MAILER-DAEMON@", "grace@")

describe("A bounce without a report", () => {
  it.each([
    [
      "qmail",
      plainly("failure notice", [
        "Hi. This is the qmail-send program at example.org.",
        "I'm afraid I wasn't able to deliver your message to the following addresses.",
        "This is a permanent error; I've given up. Sorry it didn't work out.",
        "",
        "<grace@example.org>:",
        "Sorry, no mailbox here by that name. (#5.1.1)",
        "",
        "--- Below this line is a copy of the message.",
        "",
        "To: victim@example.org",
      ]),
      { status: "5.1.1", hard: true },
    ],
    [
      "Exim",
      plainly(
        "Mail delivery failed: returning message to sender",
        [
          "This message was created automatically by mail delivery software.",
          "",
          "A message that you sent could not be delivered to one or more of its",
          "recipients. This is a permanent error. The following address(es) failed:",
          "",
          "  grace@example.org",
          "    host mx.example.org [192.0.2.1]",
          "    SMTP error from remote mail server after RCPT TO:<grace@example.org>:",
          "    550 No such user",
        ],
        "X-Failed-Recipients: grace@example.org",
        "Auto-Submitted: auto-replied",
      ),
      { status: null, hard: true, diagnostic: "550 No such user" },
    ],
    [
      "Exchange",
      plainly("Undeliverable: hello", [
        "Delivery has failed to these recipients or groups:",
        "",
        "grace@example.org",
        "The email address you entered couldn't be found.",
        "",
        "Remote Server returned '550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found'",
      ]),
      { status: "5.1.10", hard: true },
    ],
    [
      "a full mailbox",
      plainly("Undeliverable", ["Your message to grace@example.org could not be delivered.", "452 4.2.2 Mailbox full"]),
      { status: "4.2.2", hard: false },
    ],
  ])("of %s is recognized", (_, letter, expected) => {
    const found = reported(letter)
    expect(found).toMatchObject([expected])
    expect(found[0]!.addresses).toContain("grace@example.org")
    expect(found[0]!.addresses).not.toContain("victim@example.org")
  })

  it.each([
    [
      "a delay",
      plainly("Warning: could not send message for past 4 hours", [
        "grace@example.org ... will keep trying. 450 4.2.0",
      ]),
    ],
    [
      "a holiday",
      plainly("Out of office", ["I am away. Mail to grace@example.org is not read."], "Auto-Submitted: auto-replied"),
    ],
    ["a vacation reply that quotes a bounce", autoReply("> Undeliverable: 550 5.1.1")],
    ["a vacation reply that is marked as generated", autoReply("550 5.1.1", "Auto-Submitted: auto-generated")],
    ["an answer", plainly("Re: hello", ["Thank you, this was delivered. grace@example.org"])],
    [
      "a receipt",
      report(["Final-Recipient: rfc822;grace@example.org", "Disposition: manual-action; displayed"])
        .replace("delivery-status;", "disposition-notification;")
        .replace("message/delivery-status", "message/disposition-notification"),
    ],
  ])("is not recognized in %s", (_, letter) => expect(reported(letter)).toEqual([]))
})

describe("A bounce with several recipients", () => {
  const two = ["grace@example.org", "bob@example.org", "carl@example.org"]
  const failuresOf = (letter: string) =>
    reported(letter).map((failure) => ({
      about: recipientOf(failure, two),
      status: failure.status,
      hard: failure.hard,
    }))

  it("of qmail yields the reason for each, and nothing for quoted addresses", () => {
    const letter = plainly("failure notice", [
      "Hi. This is the qmail-send program at example.org.",
      "I'm afraid I wasn't able to deliver your message to the following addresses.",
      "This is a permanent error; I've given up. Sorry it didn't work out.",
      "",
      "<bob@example.org>:",
      "Sorry, no mailbox here by that name. (#5.1.1)",
      "",
      "<carl@example.org>:",
      "The user is over quota; I'm not going to try again. (#4.2.2)",
      "",
      "--- Below this line is a copy of the message.",
      "",
      "To: grace@example.org, bob@example.org, carl@example.org",
    ])
    expect(failuresOf(letter)).toEqual([
      { about: "bob@example.org", status: "5.1.1", hard: true },
      { about: "carl@example.org", status: "4.2.2", hard: false },
    ])
  })

  it("of Exim yields the reason for all failed recipients", () => {
    const letter = plainly(
      "Mail delivery failed: returning message to sender",
      [
        "A message that you sent could not be delivered to one or more of its",
        "recipients. This is a permanent error. The following address(es) failed:",
        "",
        "  bob@example.org",
        "    Unrouteable address",
        "  list@example.org",
        "    (generated from carl@example.org)",
        "    SMTP error from remote mail server after RCPT TO:<list@example.org>:",
        "    host mx.example.org [192.0.2.1]: 550 5.7.1 not for you",
        "",
        "------ This is a copy of the message, including all the headers. ------",
        "",
        "To: grace@example.org",
      ],
      "X-Failed-Recipients: bob@example.org,",
      "\tlist@example.org",
      "Auto-Submitted: auto-replied",
    )
    expect(failuresOf(letter)).toMatchObject([
      { about: "bob@example.org", hard: false },
      { about: "carl@example.org", status: "5.7.1", hard: false },
    ])
  })

  it("of sendmail ends where the returned message starts, even if indented", () => {
    const letter = plainly("Returned mail: see transcript for details", [
      "The original message was received at Mon, 23 Nov 2026 01:00:00 +0000",
      "",
      "   ----- The following addresses had permanent fatal errors -----",
      "<bob@example.org>",
      "    (reason: 550 5.1.1 <bob@example.org>... User unknown)",
      "",
      "   ----- Original message follows -----",
      "",
      "From: ada@mail.example",
      "To:",
      " grace@example.org,",
      " carl@example.org",
    ])
    expect(failuresOf(letter)).toEqual([{ about: "bob@example.org", status: "5.1.1", hard: true }])
  })
})

describe("A malformed report", () => {
  const text = ["Your message was not delivered to", "", "<grace@example.org>:", "550 5.1.1 No such user"]
  const headed = (type: string, ...parts: ReadonlyArray<string>) =>
    lines(
      "From: MAILER-DAEMON@example.org",
      "Subject: Undeliverable",
      "Auto-Submitted: auto-replied",
      `Content-Type: ${type}`,
      "",
      "--b",
      "",
      ...text,
      ...parts,
      "--b--",
    )

  it.each([
    ["lacks its report", headed("multipart/report; report-type=delivery-status; boundary=b")],
    ["does not say of what it is one", headed("multipart/report; boundary=b")],
    [
      "names nobody in its report",
      headed(
        "multipart/report; report-type=delivery-status; boundary=b",
        "--b",
        "Content-Type: message/delivery-status",
        "",
        "Reporting-MTA: dns; mx.example.org",
        "",
      ),
    ],
  ])("with %s is read by its text", (_, letter) => {
    expect(reported(letter)).toMatchObject([{ addresses: ["grace@example.org"], status: "5.1.1", hard: true }])
  })

  it.each([
    ["failed (no such user)", 1],
    ["delayed (will retry)", 0],
    ["Relayed; to elsewhere", 0],
  ])("may have text after the action keyword: %s", (action, found) => {
    const block = ["Final-Recipient: rfc822;grace@example.org", `Action: ${action}`, "Status: 4.4.7"]
    expect(reported(report(block))).toHaveLength(found)
  })

  it("is ignored if it is a read receipt or a report of something else", () => {
    expect(reported(autoReply(text.join("\r\n"), "Auto-Submitted: auto-replied"))).toEqual([])
    expect(reported(headed("multipart/report; report-type=disposition-notification; boundary=b"))).toEqual([])
    expect(reported(headed("multipart/report; report-type=feedback-report; boundary=b"))).toEqual([])
  })
})

describe("The recipient of a bounce", () => {
  const ours = ["grace@example.org", "Bob@example.org"]
  const about = (...addresses: ReadonlyArray<string>) => ({ addresses, status: null, diagnostic: null, hard: true })
  it("is one of the message's own recipients, or none", () => {
    expect(recipientOf(about("bob@example.org"), ours)).toBe("Bob@example.org")
    expect(recipientOf(about("stranger@example.org"), ours)).toBeUndefined()
    expect(recipientOf(about(), ours)).toBeNull()
    // The original recipient takes precedence over the final one, though both are recipients.
    expect(recipientOf(about("bob@example.org", "grace@example.org"), ours)).toBe("Bob@example.org")
    expect(recipientOf(about("forwarded@elsewhere.example"), ["grace@example.org"])).toBe("grace@example.org")
  })
})

describe("Hostile input", () => {
  it.each([
    ["a field without an end", report(["Final-Recipient: rfc822;" + "a".repeat(3_000_000)])],
    ["blocks without a number", report(...Array.from({ length: 30_000 }, () => ["X: y"]))],
    ["a text of addresses", plainly("failure notice", [`permanent ${"a@b.c ".repeat(300_000)}`])],
    ["a text without a line break", plainly("failure notice", ["5.1.1 ".repeat(500_000)])],
    ["dashes", plainly("failure notice", ["-".repeat(2_000_000)])],
    ["a word that never ends", plainly("failure notice", ["a".repeat(2_000_000)])],
    [
      "parts in parts",
      lines(
        "Content-Type: multipart/mixed; boundary=b",
        "",
        ..."--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n".repeat(5_000).split("\r\n"),
      ),
    ],
  ])("%s is parsed quickly", (_, letter) => {
    const raw = Buffer.from(letter)
    const root = index(raw)
    const { subject, text } = parse(raw, root)
    const found = read(raw, root, subject, text)
    expect(found.length).toBeLessThanOrEqual(100)
  })
})
