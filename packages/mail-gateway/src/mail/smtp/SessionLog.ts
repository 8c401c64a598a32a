/** Collects what each SMTP session did, for one log entry at its end. */
import { sessionEnded } from "@svc/cluster/observe/SessionLog"
import type { Effect } from "effect"
import type { SMTPServerSession } from "smtp-server"
import { Timing } from "../../Timing.ts"
import type { Reply } from "./Replies.ts"

/** Why the server ended a session; `left` if the client did. */
export type Ending = "left" | "idle" | "too_long" | "data_too_slow" | "too_large" | "bare_line_break" | "shutdown"

type ReplyCounts = Record<"accepted" | "deferred" | "refused", number>

interface SessionEntry {
  readonly session: SMTPServerSession
  readonly since: number
  lastReplyAt: number
  ended: Ending
  readonly recipients: ReplyCounts
  readonly messages: ReplyCounts
}

const noReplies = (): ReplyCounts => ({ accepted: 0, deferred: 0, refused: 0 })

const count = (counts: ReplyCounts, reply: Reply | null): void => {
  counts[reply === null ? "accepted" : reply.responseCode < 500 ? "deferred" : "refused"]++
}

export const make = (write: (line: Effect.Effect<void>) => void) => {
  const open = new Map<string, SessionEntry>()
  const touch = (session: SMTPServerSession): SessionEntry | undefined => {
    const entry = open.get(session.id)
    if (entry !== undefined) entry.lastReplyAt = Date.now()
    return entry
  }
  const end = (session: SMTPServerSession): void => {
    const entry = open.get(session.id)
    if (entry === undefined) return
    open.delete(session.id)
    const { since, lastReplyAt, recipients, messages } = entry
    // The library ends idle sessions itself.
    const isIdle = entry.ended === "left" && Date.now() - lastReplyAt >= Timing.smtpIdleMillis
    write(
      sessionEnded({
        kind: "smtp session",
        ended: isIdle ? "idle" : entry.ended,
        since,
        client: session.remoteAddress,
        details: { session: session.id, tls: session.secure, recipients, messages },
      }),
    )
  }
  return {
    begin: (session: SMTPServerSession): void => {
      const since = Date.now()
      open.set(session.id, {
        session,
        since,
        lastReplyAt: since,
        ended: "left",
        recipients: noReplies(),
        messages: noReplies(),
      })
    },
    recipient: (session: SMTPServerSession, reply: Reply | null): void => {
      const entry = touch(session)
      if (entry !== undefined) count(entry.recipients, reply)
    },
    message: (session: SMTPServerSession, reply: Reply | null): void => {
      const entry = touch(session)
      if (entry !== undefined) count(entry.messages, reply)
    },
    /** Notes why the server is about to end the session. */
    ending: (session: SMTPServerSession, why: Ending): void => {
      const entry = open.get(session.id)
      if (entry !== undefined) entry.ended = why
    },
    /** Notes that all sessions end with the shutdown. */
    leaving: (): void => {
      for (const entry of open.values()) entry.ended = "shutdown"
    },
    end,
    /** Ends the sessions that the shutdown disconnected. The library reports their end too late to be logged. */
    endAll: (): void => {
      for (const { session } of open.values()) end(session)
    },
  }
}
