/** Maps replies of mail servers to outcomes for recipients (RFC 5321 section 4.2.1). */
import type { Outcome, SmtpReply, Transmission } from "@svc/cluster/mail/sending/MailTransport"
import type * as Conversation from "./smtp/Conversation.ts"

/** Replies that ask for authentication or encryption: the operator must fix this, so the mail is deferred. */
const configurationErrors = new Set([530, 534, 535, 538])

const stateOf = ({ code }: SmtpReply): Outcome["state"] => {
  if (code === null || configurationErrors.has(code)) return "deferred"
  if (code >= 200 && code < 300) return "sent"
  return code >= 500 ? "refused" : "deferred"
}

export const ofReply = (recipient: string, reply: SmtpReply): Outcome => ({ recipient, state: stateOf(reply), reply })

/** Defers every recipient, whatever the reply code. */
export const deferred = ({ recipients }: Transmission, reply: SmtpReply): ReadonlyArray<Outcome> =>
  recipients.map((recipient) => ({ recipient, state: "deferred", reply }))

export const refused = ({ recipients }: Transmission, reply: SmtpReply): ReadonlyArray<Outcome> =>
  recipients.map((recipient) => ({ recipient, state: "refused", reply }))

export const held = ({ recipients }: Transmission): ReadonlyArray<Outcome> =>
  recipients.map((recipient) => ({ recipient, state: "held", reply: null }))

/** A reply for failures in which no server responded. */
export const withoutReply = (text: string, host: string | null): SmtpReply => ({
  code: null,
  status: null,
  text: text.slice(0, 500),
  host,
})

export const ofTransaction = (
  transmission: Transmission,
  outcome: Conversation.Outcome,
  host: string,
): ReadonlyArray<Outcome> => {
  switch (outcome._tag) {
    case "Answered":
      return transmission.recipients.map((recipient, at) => ofReply(recipient, outcome.replies[at]!))
    case "Held":
      return held(transmission)
    case "Broken":
      return deferred(transmission, withoutReply(outcome.message, host))
    case "Unknown":
      return deferred(transmission, withoutReply(`${outcome.message}, before it replied to the message`, host))
  }
}
