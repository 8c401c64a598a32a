/**
 * One row of the table of refusals: the HTTP status, what the caller should do (`agent_hint`), the title, and the two
 * sentences its page at `/problems/{code}` shows.
 *
 * `fix_call`: the call is wrong, change it. `wait`: the same call may succeed later. `stop`: repeating does not help.
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
