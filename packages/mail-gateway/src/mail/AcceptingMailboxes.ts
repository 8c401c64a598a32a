/**
 * Which Mailboxes take mail. That one does which is at most half full is known for a second, so that a busy one is not
 * looked up for each of its letters; anything else is asked anew, so one that was just made is found at once. What has
 * changed meanwhile is for its actor to say, as where it changes between RCPT and the end of DATA.
 */
import { monotonicOf } from "@svc/domain/MonotonicTime"
import { Clock, Effect } from "effect"
import { Timing } from "../Timing.ts"

export type RecipientStatus = "accept" | "unknown" | "not_yet" | "full"

/** What the store says of a Mailbox; undefined where there is none. */
export type Standing = { readonly status: string; readonly used: "little" | "much" | "all" | null } | undefined

/** Of more than so many all are forgotten at once. */
const most = 10_000

const statusOf = (standing: Standing): RecipientStatus => {
  if (standing === undefined || standing.status === "deleting") return "unknown"
  if (standing.status !== "ready") return "not_yet"
  return standing.used === "all" ? "full" : "accept"
}

const accept: Effect.Effect<RecipientStatus> = Effect.succeed("accept")

export const make = <E>(lookUp: (mailbox: string) => Effect.Effect<Standing, E>) =>
  Effect.map(Clock.Clock, (clock) => {
    const known = new Map<string, number>()
    return (mailbox: string): Effect.Effect<RecipientStatus, E> =>
      Effect.suspend(() => {
        const since = monotonicOf(clock)
        if ((known.get(mailbox) ?? 0) > since) return accept
        return Effect.map(lookUp(mailbox), (standing) => {
          const status = statusOf(standing)
          if (known.size >= most) known.clear()
          if (status === "accept" && standing?.used === "little")
            known.set(mailbox, since + Timing.recipientKnownMillis)
          return status
        })
      })
  })
