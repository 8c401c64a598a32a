/** The errors of the client. */

/** The service's advice: change the call, try again later, or give up and tell a person. */
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
  override readonly name: string = "ApiError"
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
  /** The headers of the response. */
  readonly headers: Headers

  constructor(status: number, problem: Problem, headers: Headers = new Headers()) {
    super(`${problem.code}: ${problem.detail}`)
    this.status = status
    this.problem = problem
    this.headers = headers
    this.code = problem.code
    this.agentHint = problem.agent_hint
    this.retryAfterSeconds = problem.retry_after_seconds
    this.errors = problem.errors ?? []
    this.requestId = problem.instance
  }
}

/** The request is wrong: status 400 and others without their own class. */
export class InvalidRequestError extends ApiError {
  override readonly name = "InvalidRequestError"
}
/** The key is missing, unknown, revoked or expired (401). */
export class AuthenticationError extends ApiError {
  override readonly name = "AuthenticationError"
}
/** The key may not do this (403). */
export class PermissionDeniedError extends ApiError {
  override readonly name = "PermissionDeniedError"
}
/** The resource does not exist (404). */
export class NotFoundError extends ApiError {
  override readonly name = "NotFoundError"
}
/** The state does not allow it, the resource has changed, or an `Idempotency-Key` was used for another request (409, 412, 422). */
export class ConflictError extends ApiError {
  override readonly name = "ConflictError"
}
/** A limit is reached (429). */
export class RateLimitError extends ApiError {
  override readonly name = "RateLimitError"
}
/** The service failed (500 and above). */
export class ServiceError extends ApiError {
  override readonly name = "ServiceError"
}

const ofStatus: Readonly<Record<number, typeof ApiError>> = {
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  412: ConflictError,
  422: ConflictError,
  429: RateLimitError,
}

/** Returns the error of a refused call, in the class of its status. */
export const apiErrorOf = (status: number, problem: Problem, headers?: Headers): ApiError =>
  new (ofStatus[status] ?? (status >= 500 ? ServiceError : InvalidRequestError))(status, problem, headers)

/** No response arrived: the service is unreachable, or a call took longer than `timeout`. `cause` has the reason. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError"
}

/** A webhook delivery is not authentic, or too old. */
export class InvalidSignature extends Error {
  override readonly name = "InvalidSignature"
}
