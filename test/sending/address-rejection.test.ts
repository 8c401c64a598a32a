/**
 * Rejections that suppress an address: the same reason has the same result in an SMTP session and in a delivery report.
 */
import { isAddressRejected } from "@svc/cluster/mail/sending/AddressRejection"
import { index } from "@svc/mail-gateway/mail/mime/Part"
import { read } from "@svc/mail-gateway/mail/sending/BounceReport"
import { describe, expect, it } from "vitest"

const reportOf = (status: string | null, diagnostic: string) =>
  [
    "From: MAILER-DAEMON@mx.example.org",
    "Content-Type: multipart/report; report-type=delivery-status; boundary=b",
    "",
    "--b",
    "Content-Type: message/delivery-status",
    "",
    "Reporting-MTA: dns; mx.example.org",
    "",
    "Final-Recipient: rfc822; grace@example.org",
    "Action: failed",
    `Status: ${status ?? "5.0.0"}`,
    `Diagnostic-Code: smtp; ${diagnostic}`,
    "",
    "--b--",
    "",
  ].join("\r\n")

const reported = (status: string | null, diagnostic: string) => {
  const raw = Buffer.from(reportOf(status, diagnostic))
  return read(raw, index(raw), "Undelivered Mail", null).map(({ hard }) => hard)
}

const reasons: ReadonlyArray<readonly [code: number, status: string | null, text: string, bad: boolean]> = [
  [550, "5.1.1", "User unknown", true],
  [550, "5.1.2", "No such domain", true],
  [553, "5.1.3", "Bad address syntax", true],
  [551, "5.1.6", "Moved", true],
  [556, "5.1.10", "Null MX", true],
  [550, "5.2.1", "Mailbox disabled", true],
  [550, null, "No such user here", true],
  [550, null, "<grace@example.org>: Recipient address rejected: User unknown in local recipient table", true],
  [553, null, "Sorry, no mailbox here by that name. (#5.1.1)", true],
  [550, null, "Sorry, I could not find that person. (#5.1.1)", true],
  [550, null, "User unknown (#5.7.1)", false],
  [551, null, "User not local", true],
  [550, null, "Unrouteable address", true],
  [550, "5.0.0", "Mailbox not found", true],
  [550, "5.1.0", "Sender address rejected: not owned by user", false],
  [550, "5.1.7", "Bad sender address", false],
  [550, "5.1.8", "Bad sender domain", false],
  [552, "5.2.2", "Over quota", false],
  [552, "5.3.4", "Message too large", false],
  [441, "4.4.1", "Connection timed out", false],
  [450, "4.4.7", "Delivery time expired", false],
  [550, "5.4.4", "Unable to route", false],
  [550, "5.7.1", "No such user here, or not for you", false],
  [550, "5.7.26", "Unauthenticated mail is not accepted", false],
  [550, "5.7.509", "Access denied, sending domain does not pass DMARC", false],
  [550, null, "Relaying denied", false],
  [550, null, "Rejected as spam", false],
  [550, null, "Bad header", false],
  [550, null, "Sender address unknown", false],
  [553, null, "Sorry, that domain is not in my list of allowed recipient hosts (#5.7.1)", false],
  [550, null, "Mailbox full, invalid recipient for now", false],
  [554, null, "No such user here", false],
]

describe("a rejection", () => {
  it.each(reasons)("%i %s %s: suppresses the address: %s", (code, status, text, bad) => {
    expect(isAddressRejected({ code, status, text, command: "RCPT" })).toBe(bad)
    const diagnostic = `${code}${status === null ? "" : ` ${status}`} ${text}`
    expect(reported(status, diagnostic)).toEqual([bad])
  })

  it("suppresses no address at MAIL or for a reply shared by several recipients", () => {
    const rejected = { code: 550, status: "5.1.1", text: "No such user" }
    expect(isAddressRejected({ ...rejected, command: "MAIL" })).toBe(false)
    expect(isAddressRejected({ ...rejected, command: "DATA", shared: true })).toBe(false)
    expect(isAddressRejected({ ...rejected, command: "DATA" })).toBe(true)
  })

  it("without an enhanced status suppresses an address only at RCPT", () => {
    const rejected = { code: 550, status: null, text: "No such user" }
    expect(isAddressRejected({ ...rejected, command: "RCPT" })).toBe(true)
    expect(isAddressRejected({ ...rejected, command: "DATA" })).toBe(false)
    expect(isAddressRejected(rejected)).toBe(false)
  })

  it("suppresses no address in a report that quotes a reply to MAIL or to the content", () => {
    const text = (after: string) =>
      Buffer.from(
        `From: MAILER-DAEMON@example.org\r\nSubject: failure notice\r\n\r\nCould not be delivered.\r\n\r\n<grace@example.org>:\r\n    SMTP error after ${after}:\r\n    550 No such user\r\n`,
      )
    const hard = (after: string) => {
      const raw = text(after)
      const body = raw.toString().split("\r\n\r\n").slice(1).join("\n\n").replaceAll("\r", "")
      return read(raw, index(raw), "failure notice", body).map((failure) => failure.hard)
    }
    expect(hard("RCPT TO:<grace@example.org>")).toEqual([true])
    expect(hard("MAIL FROM:<ada@mail.example>")).toEqual([false])
    expect(hard("end of data")).toEqual([false])
  })
})
