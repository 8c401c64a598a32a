/** Metrics of mail: open sessions, outcomes of recipients and messages, and durations. */
import * as Metrics from "@svc/cluster/observe/Metrics"
import type { Reply } from "./smtp/Replies.ts"

export const sessions = Metrics.gauge("svc_smtp_sessions", "Open SMTP sessions", [])

const recipients = Metrics.counter(
  "svc_smtp_recipients_total",
  "Answers to RCPT",
  ["outcome"],
  [["accepted"], ["deferred"], ["refused"]],
)
const messages = Metrics.counter(
  "svc_smtp_messages_total",
  "Answers to DATA",
  ["outcome"],
  [["accepted"], ["deferred"], ["refused"]],
)
const verdicts = Metrics.counter("svc_smtp_verdicts_total", "Verdicts on the origin of messages", ["verdict"])
const sizes = Metrics.histogram(
  "svc_smtp_message_bytes",
  "Sizes of messages",
  [1, 4, 16, 64, 256, 1024, 4096, 16384].map((kibibytes) => kibibytes * 1024),
  [],
).of()
const durations = Metrics.histogram(
  "svc_smtp_accept_duration_seconds",
  "Time from the end of DATA to the reply",
  Metrics.seconds,
  [],
).of()
const lookups = Metrics.histogram(
  "svc_dns_duration_seconds",
  "Look-ups in DNS that the cache had no answer to",
  Metrics.seconds,
  ["outcome"],
)

export const submitters = Metrics.gauge("svc_submission_sessions", "Open sessions of mail programs that send", [])

const submissions = Metrics.counter(
  "svc_submission_messages_total",
  "Answers to messages of mail programs",
  ["outcome"],
  [["accepted"], ["deferred"], ["refused"]],
)
const logins = Metrics.counter(
  "svc_submission_logins_total",
  "Logins of mail programs that send",
  ["outcome"],
  [["accepted"], ["deferred"], ["refused"]],
)

const outcomeOf = (reply: Reply | null) =>
  reply === null ? "accepted" : reply.responseCode < 500 ? "deferred" : "refused"

export const recipient = (reply: Reply | null): void => void recipients.of(outcomeOf(reply)).n++

/** Counts the reply to a message. */
export const message = (reply: Reply | null): void => void messages.of(outcomeOf(reply)).n++

/** Observes a message whose form was accepted. */
export const judged = (bytes: number, since: number): void => {
  sizes.observe(bytes)
  durations.observe((performance.now() - since) / 1000)
}

export const submission = (reply: Reply | null): void => void submissions.of(outcomeOf(reply)).n++

export const login = (reply: Reply | null): void => void logins.of(outcomeOf(reply)).n++

export const verdict = (of: string): void => void verdicts.of(of).n++

export const lookup = (isAnswered: boolean, since: number): void =>
  lookups.of(isAnswered ? "answered" : "failed").observe((performance.now() - since) / 1000)
