/**
 * A row of the problem table: the HTTP status, what the caller should do (`agent_hint`), the title, and the two
 * sentences on its page at `/problems/{code}`.
 *
 * `fix_call`: change the request. `wait`: the same request may succeed later. `stop`: repeating does not help.
 */
export type AgentHint = "fix_call" | "wait" | "stop"

export interface Row {
  readonly status: number
  readonly agent_hint: AgentHint
  readonly title: string
  readonly meaning: string
  readonly remedy: string
}

export const row = <const Status extends number>(
  status: Status,
  agent_hint: AgentHint,
  title: string,
  meaning: string,
  remedy: string,
) => ({ status, agent_hint, title, meaning, remedy })
