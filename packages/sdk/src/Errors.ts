/** The errors of the client. */

/** What the service advises: change the call, try again later, or give up and tell a person. */
export type AgentHint = "fix_call" | "wait" | "stop"

/** A problem body (RFC 9457) of the service. */
export interface Problem {
  readonly code: string
  readonly title: string
  readonly detail: string
  readonly agent_hint: AgentHint
  readonly doc_url?: string
  /** The id of the request. */
  readonly instance?: string
  readonly retry_after_seconds?: number
  readonly errors?: ReadonlyArray<{ readonly path: string; readonly message: string }>
}

/** The service refused the call. Branch on `code`; `agentHint` says what to do. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  /** The stable code, for example `not_found`. */
  readonly code: string
  readonly agentHint: AgentHint
  /** Seconds after which the call can be repeated, if the service named them. */
  readonly retryAfterSeconds: number | undefined
  /** The members of the input that are wrong. */
  readonly errors: NonNullable<Problem["errors"]>
  readonly requestId: string | undefined
  readonly problem: Problem

  constructor(status: number, problem: Problem) {
    super(`${problem.code}: ${problem.detail}`)
    this.status = status
    this.problem = problem
    this.code = problem.code
    this.agentHint = problem.agent_hint
    this.retryAfterSeconds = problem.retry_after_seconds
    this.errors = problem.errors ?? []
    this.requestId = problem.instance
  }
}

/** No response arrived: the service is unreachable, or a call took longer than `timeout`. `cause` has the reason. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError"
}

/** A webhook delivery is not authentic, or too old. */
export class InvalidSignature extends Error {
  override readonly name = "InvalidSignature"
}
