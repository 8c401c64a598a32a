/** What the replies of a mail server mean for each recipient (RFC 5321 section 4.2.1). */
import type { Outcome, SmtpReply, Transmission } from "@svc/cluster/mail/sending/MailTransport"
import type * as Conversation from "./smtp/Conversation.ts"

/** They say that the server wants something else of us: ours to mend, and no fault of the recipient. */
const ofOurs = new Set([530, 534, 535, 538])

const stateOf = ({ code }: SmtpReply): Outcome["state"] => {
  if (code === null || ofOurs.has(code)) return "deferred"
  if (code >= 200 && code < 300) return "sent"
  return code >= 500 ? "refused" : "deferred"
}

export const judged = (recipient: string, reply: SmtpReply): Outcome => ({ recipient, state: stateOf(reply), reply })

/** The same for every recipient; a `deferred` whatever the code. */
export const deferred = ({ recipients }: Transmission, reply: SmtpReply): ReadonlyArray<Outcome> =>
  recipients.map((recipient) => ({ recipient, state: "deferred", reply }))

export const refused = ({ recipients }: Transmission, reply: SmtpReply): ReadonlyArray<Outcome> =>
  recipients.map((recipient) => ({ recipient, state: "refused", reply }))

export const held = ({ recipients }: Transmission): ReadonlyArray<Outcome> =>
  recipients.map((recipient) => ({ recipient, state: "held", reply: null }))

/** Nobody answered. */
export const unheard = (text: string, host: string | null): SmtpReply => ({
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
      return transmission.recipients.map((recipient, at) => judged(recipient, outcome.replies[at]!))
    case "Held":
      return held(transmission)
    case "Broken":
      return deferred(transmission, unheard(outcome.message, host))
    case "Unknown":
      return deferred(transmission, unheard(`${outcome.message}, before it answered the message`, host))
  }
}
