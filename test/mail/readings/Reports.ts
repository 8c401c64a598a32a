/** Reports of failed delivery, and messages that look like some. */
import { lines, mixed, plain } from "./Letters.ts"

const daemon = ["From: MAILER-DAEMON@x.example", "Subject: Undelivered Mail Returned to Sender"]
const report = (...fields: ReadonlyArray<string>) =>
  mixed(
    [...daemon, "Content-Type: multipart/report; report-type=delivery-status; boundary=b"],
    plain("It failed."),
    ["Content-Type: message/delivery-status", "", "Reporting-MTA: dns; x.example", "", ...fields],
    ["Content-Type: message/rfc822", "", "From: us@x.example", "", "original"],
  )
const told = (...text: ReadonlyArray<string>) => lines(...daemon, "", ...text)
export const reports: Readonly<Record<string, Buffer>> = {
  "a failure": report(
    "Final-Recipient: rfc822; Ada@X.example",
    "Action: failed",
    "Status: 5.1.1",
    "Diagnostic-Code: smtp; 550 5.1.1 no such user",
  ),
  "two failures and a delay": report(
    "Original-Recipient: rfc822;a+2Bb@x.example",
    "Final-Recipient: rfc822; <c@x.example>",
    "Action: failed (x)",
    "Status: 5.0.0",
    "",
    "Final-Recipient: rfc822; d@x.example",
    "Action: delayed",
    "Status: 4.4.1",
    "",
    "",
    "Final-Recipient: rfc822; e@x.example",
    "Action: failed",
    "Status: 4.2.2 (full)",
  ),
  "a delivery": report("Final-Recipient: rfc822; a@x.example", "Action: delivered", "Status: 2.0.0"),
  "relayed, expanded, and success that calls itself failed": report(
    "Final-Recipient: rfc822; a@x.example",
    "Action: relayed",
    "",
    "Final-Recipient: rfc822; b@x.example",
    "Action: expanded",
    "",
    "Final-Recipient: rfc822; c@x.example",
    "Action: failed",
    "Status: 2.1.5",
  ),
  "a report without recipients": report("Action: failed", "Status: 5.1.1"),
  "a report of a rejected content": report(
    "Final-Recipient: rfc822; a@x.example",
    "Action: failed",
    "Status: 5.7.1",
    "Diagnostic-Code: smtp; 554 5.7.1 spam",
  ),
  "a receipt": mixed(
    [...daemon, "Content-Type: multipart/report; report-type=disposition-notification; boundary=b"],
    plain("<a@x.example>: user unknown, undeliverable"),
  ),
  "a report of abuse": mixed(
    [...daemon, "Content-Type: multipart/report; boundary=b"],
    plain("<a@x.example>: user unknown, undeliverable"),
    ["Content-Type: message/feedback-report", "", "x"],
  ),
  "a report without its status part": mixed(
    [...daemon, "Content-Type: multipart/report; boundary=b"],
    plain("Undeliverable:\r\n<a@x.example>: 550 5.1.1 user unknown"),
  ),
  "a report without its status part, of an automatic reply": mixed(
    [
      "From: a@x.example",
      "Subject: Undeliverable",
      "Auto-Submitted: auto-replied",
      "Content-Type: multipart/report; boundary=b",
    ],
    plain("<a@x.example>: 550 5.1.1 user unknown"),
  ),
  "qmail's text": told(
    "Hi. I wasn't able to deliver. Delivery failed.",
    "",
    "<a@x.example>:",
    "550 5.1.1 no such user",
    "",
    "<b@x.example>:",
    "452 4.2.2 mailbox full",
    "",
    "--- Below this line is a copy of the message.",
    "<c@x.example>: 550",
  ),
  "a text with quoted lines": told(
    "Delivery has failed",
    "> <q@x.example>: 550 x",
    "<a@x.example>",
    "does not exist",
    "Received: from x",
    "<b@x.example>:",
  ),
  "a text of a delay": told("Your message will be retried", "<a@x.example>: 450 4.2.0 later"),
  "a text without a failure": told("Hello <a@x.example>: 550 5.1.1"),
  "a text without addresses": told("Undeliverable", "550 5.1.1 user unknown"),
  "a text of a rejected content": told("Undeliverable", "<a@x.example>: 550 5.1.1 x (in reply to end of DATA command)"),
  "Exim's field": lines(
    "From: x@x.example",
    "X-Failed-Recipients: a@x.example, b@x.example.",
    "Subject: x",
    "",
    "something",
    "",
    "  a@x.example",
    "    550 5.1.1 unknown user",
    "  c@x.example",
    "    no such",
  ),
  "a text by a person": lines(
    "From: ada@x.example",
    "Subject: Undeliverable",
    "",
    "<a@x.example>: 550 5.1.1 user unknown",
  ),
}
