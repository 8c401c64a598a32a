/**
 * A short-lived cache of Mailboxes that accept mail. Only Mailboxes at most half full are cached, for a second, so that
 * a busy one is not looked up for each message and a new one is found immediately. A status that changes between RCPT
 * and the end of DATA is decided by the Mailbox's actor.
 */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { monotonicOf } from "@svc/domain/MonotonicTime"
import { Clock, Effect } from "effect"
import { Timing } from "../Timing.ts"

type RecipientStatus = "accept" | "unknown" | "not_yet" | "full"

/** The stored state of a Mailbox, or undefined if it does not exist. */
export type MailboxState = { readonly status: string; readonly used: "little" | "much" | "all" | null } | undefined

/** The maximum number of cached Mailboxes. */
const capacity = 10_000

const statusOf = (state: MailboxState): RecipientStatus => {
  if (state === undefined || state.status === "deleting") return "unknown"
  if (state.status !== "ready") return "not_yet"
  return state.used === "all" ? "full" : "accept"
}

const accept: Effect.Effect<RecipientStatus> = Effect.succeed("accept")

export const make = <E>(lookUp: (mailbox: string) => Effect.Effect<MailboxState, E>) =>
  Effect.map(Clock.Clock, (clock) => {
    const acceptedUntil = new BoundedMap<string, number>(capacity)
    return (mailbox: string): Effect.Effect<RecipientStatus, E> =>
      Effect.suspend(() => {
        const now = monotonicOf(clock)
        if ((acceptedUntil.get(mailbox) ?? 0) > now) return accept
        return Effect.map(lookUp(mailbox), (state) => {
          const status = statusOf(state)
          if (status === "accept" && state?.used === "little")
            acceptedUntil.set(mailbox, now + Timing.recipientKnownMillis)
          return status
        })
      })
  })
