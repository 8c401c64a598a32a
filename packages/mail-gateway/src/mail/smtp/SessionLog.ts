/** What each SMTP session did, for its line in the log. */
import { sessionEnded } from "@svc/cluster/observe/SessionLog"
import type { Effect } from "effect"
import type { SMTPServerSession } from "smtp-server"
import { Timing } from "../../Timing.ts"
import type { Reply } from "./Replies.ts"

/** Why we ended a session; `left` where the other side did. */
export type Ending = "left" | "idle" | "too_long" | "data_too_slow" | "too_large" | "bare_line_break" | "shutdown"

type Answers = Record<"accepted" | "deferred" | "refused", number>

interface Told {
  readonly since: number
  heardAt: number
  ended: Ending
  readonly recipients: Answers
  readonly messages: Answers
}

const none = (): Answers => ({ accepted: 0, deferred: 0, refused: 0 })

const count = (answers: Answers, reply: Reply | null): void => {
  answers[reply === null ? "accepted" : reply.responseCode < 500 ? "deferred" : "refused"]++
}

export const make = (write: (line: Effect.Effect<void>) => void) => {
  const open = new Map<string, Told>()
  const heard = (session: SMTPServerSession): Told | undefined => {
    const told = open.get(session.id)
    if (told !== undefined) told.heardAt = Date.now()
    return told
  }
  return {
    begin: (session: SMTPServerSession): void => {
      const since = Date.now()
      open.set(session.id, { since, heardAt: since, ended: "left", recipients: none(), messages: none() })
    },
    recipient: (session: SMTPServerSession, reply: Reply | null): void => {
      const told = heard(session)
      if (told !== undefined) count(told.recipients, reply)
    },
    message: (session: SMTPServerSession, reply: Reply | null): void => {
      const told = heard(session)
      if (told !== undefined) count(told.messages, reply)
    },
    /** We are about to end it. */
    ending: (session: SMTPServerSession, why: Ending): void => {
      const told = open.get(session.id)
      if (told !== undefined) told.ended = why
    },
    /** We are about to end all of them. */
    leaving: (): void => {
      for (const told of open.values()) told.ended = "shutdown"
    },
    end: (session: SMTPServerSession): void => {
      const told = open.get(session.id)
      if (told === undefined) return
      open.delete(session.id)
      const { since, heardAt, recipients, messages } = told
      // The library ends who says nothing.
      const isIdle = told.ended === "left" && Date.now() - heardAt >= Timing.smtpIdleMillis
      write(
        sessionEnded({
          kind: "smtp session",
          ended: isIdle ? "idle" : told.ended,
          since,
          client: session.remoteAddress,
          told: { session: session.id, tls: session.secure, recipients, messages },
        }),
      )
    },
  }
}
