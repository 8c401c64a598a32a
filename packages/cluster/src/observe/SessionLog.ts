/**
 * Writes one log entry per session: its duration, its activity and why it ended. The client's address is only included
 * if the operator allows it (`SVC_LOG_ADDRESSES`).
 */
import { Effect } from "effect"

/** Whether logs include the addresses and names of clients. */
export const showsAddresses = process.env["SVC_LOG_ADDRESSES"] === "true"

interface Session {
  /** The kind of session, such as `smtp session` or `tunnel link`. */
  readonly kind: string
  readonly ended: string
  /** Start time in milliseconds, by the clock of `Date.now`. */
  readonly since: number
  readonly client?: string | undefined
  readonly details: Readonly<Record<string, unknown>>
}

export const sessionEnded = ({ kind, ended, since, client, details }: Session): Effect.Effect<void> =>
  Effect.logInfo(kind).pipe(
    Effect.annotateLogs({
      ...details,
      ended,
      duration_ms: Math.max(0, Date.now() - since),
      ...(showsAddresses && client !== undefined ? { client } : {}),
    }),
  )
