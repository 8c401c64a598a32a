/**
 * Header fields that a sender may add: those of mailing lists (RFC 2369, RFC 8058) and names that start with `X-`. The
 * service sets all others: author, date, recipients, thread and AI disclosure.
 */
import type { Violation } from "../problems/Problem.ts"

/** Maximum number of added fields. */
const atMost = 20

const ownName = /^X-[A-Za-z0-9-]{1,60}$/i
/**
 * Fields that a relay could interpret as commands: to add recipients, to apply a template, to omit a signature.
 * (SendGrid, Mandrill, SparkPost, Mailgun, Mailjet, SES, Postmark, Brevo, SMTP2GO, Elastic Email, Mailtrap, MailerSend,
 * PowerMTA, Exchange.)
 */
const order =
  /^X-(?:SMTPAPI|SG|SendGrid|MC|Mandrill|MSYS|SparkPost|Mailgun|MG|MJ|Mailjet|SES|PM|Postmark|SIB|Mailin|Brevo|SMTP2GO|ElasticEmail|MT|MailerSend|Virtual-MTA|DKIM-Options|MS-Exchange|Bcc|Rcpt-To|Envelope-To)(?:-|$)/i
const places = /^<(?:https:\/\/|mailto:)[^<>\s,]{1,500}>(?:\s*,\s*<(?:https:\/\/|mailto:)[^<>\s,]{1,500}>){0,4}$/i
const oneClick = "List-Unsubscribe=One-Click"

const judge = (name: string, value: string, all: ReadonlyMap<string, string>): string | undefined => {
  switch (name.toLowerCase()) {
    case "list-unsubscribe":
      return places.test(value) ? undefined : "Expected <https://…> or <mailto:…>, or several separated by commas"
    case "list-unsubscribe-post":
      if (value !== oneClick) return `Expected ${oneClick}`
      return /<https:\/\//i.test(all.get("list-unsubscribe") ?? "")
        ? undefined
        : "Expected a List-Unsubscribe field with an https address as well"
    default:
      if (order.test(name)) return "Expected no field that mail servers interpret as a command"
      return ownName.test(name)
        ? undefined
        : "Expected List-Unsubscribe, List-Unsubscribe-Post or a name that starts with X-"
  }
}

/** Returns the violations in the fields. */
export const violations = (headers: Readonly<Record<string, string>>): ReadonlyArray<Violation> => {
  const entries = Object.entries(headers)
  if (entries.length > atMost) return [{ path: "/headers", message: `Expected at most ${atMost} fields` }]
  const all = new Map(entries.map(([name, value]) => [name.toLowerCase(), value]))
  if (all.size !== entries.length) return [{ path: "/headers", message: "Expected each field once, in one spelling" }]
  return entries.flatMap(([name, value]) => {
    const message = judge(name, value, all)
    const path = `/headers/${name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1")}`
    return message === undefined ? [] : [{ path, message }]
  })
}
