/**
 * Translates API problems into SMTP replies: the reply code, the enhanced code of RFC 3463, and the problem's title.
 */
import type { Code } from "@svc/domain/problems/Table"
import { table } from "@svc/domain/problems/Table"
import type { Problem } from "@svc/domain/problems/Problem"
import { Reply } from "../smtp/Replies.ts"

/** 4yz for what the program may retry, 5yz for what a person must resolve. */
const codes: Readonly<Partial<Record<Code, readonly [number, string]>>> = {
  recipient_not_allowed: [550, "5.7.1"],
  mail_paused: [550, "5.7.1"],
  message_invalid: [554, "5.6.0"],
  message_too_large: [552, "5.3.4"],
  rate_limited: [452, "4.7.1"],
  // The only conflict a message can meet: its sent copy exceeds the Mailbox's quota.
  conflict: [452, "4.2.2"],
  identity_not_ready: [450, "4.2.1"],
  not_found: [550, "5.7.1"],
}
const failed = [451, "4.3.0"] as const

/** Error paths that concern the sender or the recipients. */
const places: ReadonlyArray<readonly [RegExp, readonly [number, string]]> = [
  [/^\/(?:from|reply_to)/, [550, "5.7.1"]],
  [/^\/(?:to|cc|bcc)/, [550, "5.1.3"]],
]

const codeOf = (problem: Problem): readonly [number, string] => {
  if (problem._tag === "identity_not_ready" && problem.agent_hint === "stop") return [550, "5.7.1"]
  if (problem._tag === "message_invalid") {
    const path = problem.errors?.[0]?.path ?? ""
    const found = places.find(([pattern]) => pattern.test(path))
    if (found !== undefined) return found[1]
  }
  return codes[problem._tag] ?? failed
}

/** A reply line has at most 512 bytes of ASCII (RFC 5321 section 4.5.3.1.5). */
const maxText = 460
// oxlint-disable-next-line no-control-regex -- control characters are removed
const plain = (text: string) => text.replace(/[\u0000-\u001f\u007f]+/g, " ").replace(/[^\u0020-\u007e]/g, "?")

export const of = (problem: Problem): Reply => {
  const [code, enhanced] = codeOf(problem)
  const wait = problem._tag === "rate_limited" ? ` Try again in ${problem.retry_after_seconds ?? 60} s.` : ""
  const text = plain(`${table[problem._tag].title}: ${problem.detail}`)
  return new Reply(code, `${enhanced} ${text.length > maxText ? `${text.slice(0, maxText)}...` : text}${wait}`)
}

export const replies = {
  later: new Reply(451, "4.3.0 Temporary failure, try again later"),
  credentials: new Reply(535, "5.7.8 Wrong user or password"),
  tooManyTries: new Reply(421, "4.7.0 Too many failed logins"),
  tooManySessions: new Reply(454, "4.7.0 This Mailbox has too many sessions, try again in a moment"),
  unavailable: new Reply(454, "4.7.0 The service is temporarily unavailable, try again"),
  encrypt: new Reply(530, "5.7.0 STARTTLS is required before login"),
  logIn: new Reply(530, "5.7.0 Log in first"),
  ended: new Reply(421, "4.7.0 The credential of this session was revoked"),
  parameter: new Reply(555, "5.5.4 Unknown parameter of RCPT"),
  busy: new Reply(421, "4.7.0 Too many connections, try again in a moment"),
}
