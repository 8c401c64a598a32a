/**
 * The one line of a session that lasts: how long it was, what it did, and why it ended. Where it came from is told only
 * where the operator wants it (`SVC_LOG_ADDRESSES`).
 */
import { Effect } from "effect"

/** Whether logs say where a client was and in whose name it came. */
export const showsAddresses = process.env["SVC_LOG_ADDRESSES"] === "true"

export interface Session {
  /** `smtp session`, `tunnel link`. */
  readonly kind: string
  readonly ended: string
  /** Milliseconds, by the same clock as `Date.now`. */
  readonly since: number
  readonly client?: string | undefined
  readonly told: Readonly<Record<string, unknown>>
}

export const sessionEnded = ({ kind, ended, since, client, told }: Session): Effect.Effect<void> =>
  Effect.logInfo(kind).pipe(
    Effect.annotateLogs({
      ...told,
      ended,
      duration_ms: Math.max(0, Date.now() - since),
      ...(showsAddresses && client !== undefined ? { client } : {}),
    }),
  )
