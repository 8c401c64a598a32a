/**
 * Sends one call: retries with one `Idempotency-Key`, so that a repeat has no second effect; waits as long as the service
 * asks; and turns problem bodies into errors.
 */
import { apiVersion } from "./generated.ts"
import { apiErrorOf, ConnectionError, type Problem } from "./Errors.ts"

export interface ClientOptions {
  /** An Admin Key, an Identity Key or a session token. Defaults to the environment variable `SVC_KEY`. */
  readonly key?: string
  /** The address of the service. Defaults to `SVC_API_URL`, then `http://localhost:8080`. */
  readonly baseUrl?: string
  /** How often a call is repeated that failed in passing. Default 3. */
  readonly retries?: number
  /** Milliseconds after which an attempt without a response fails. Default 30,000, and longer for calls that wait. */
  readonly timeout?: number
  readonly fetch?: typeof fetch
  /** The version of the API. Default: the one that the types of this package describe. */
  readonly apiVersion?: string
  /** The name and version of your program, for the logs of the service: `my-agent/1.2`. Browsers do not send it. */
  readonly appInfo?: string
  /** Is called after each attempt of a call, for logs and metrics. */
  readonly onAttempt?: (attempt: Attempt) => void
}

/** An attempt of a call. */
export interface Attempt {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  /** 1 for the first attempt, more for its retries. */
  readonly number: number
  readonly millis: number
  /** The response, whose body the client reads; undefined if none arrived. */
  readonly response: Response | undefined
  /** The id of the request, for questions to the operator of the service. */
  readonly requestId: string | undefined
  /** Why no response arrived. */
  readonly error: unknown
}

export interface CallOptions {
  /** A key for this call in place of that of the client. */
  readonly key?: string
  /** Is called after each attempt, with the status and the headers of its response. */
  readonly onAttempt?: (attempt: Attempt) => void
  readonly signal?: AbortSignal
  readonly timeout?: number
  readonly retries?: number
  /** Identifies the action. By default each call gets a new key, and its retries share that key. */
  readonly idempotencyKey?: string
  /** The `ETag` that the resource must still have, so that no other change is lost. */
  readonly ifMatch?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A request before authentication and retries. */
export interface Outgoing {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  readonly body?: unknown
  /** Whether the call takes an `Idempotency-Key`. */
  readonly takesKey?: boolean
  /** Seconds that the service may take on purpose, in addition to the timeout. */
  readonly waitSeconds?: number
}

export interface Transport {
  readonly baseUrl: string
  readonly request: typeof fetch
  readonly key: string | undefined
  readonly send: (outgoing: Outgoing, options?: CallOptions) => Promise<Response>
}

const environment = (name: string): string | undefined =>
  (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name]

/** Waits, and fails with the signal's reason when it is aborted. */
export const pause = (millis: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason as Error)
    const end = () => {
      clearTimeout(timer)
      reject(signal!.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end)
      resolve()
    }, millis)
    signal?.addEventListener("abort", end, { once: true })
  })

/** The status of a response that a repeat may change: the service or a proxy in front of it is busy or restarting. */
const isPassing = (status: number) => status === 429 || status === 502 || status === 503 || status === 504

const problemOf = async (response: Response): Promise<Problem> => {
  const text = await response.text()
  try {
    const body = JSON.parse(text) as Problem
    if (typeof body.code === "string") return body
  } catch {
    // A proxy answered, not the service.
  }
  const agent_hint = isPassing(response.status) ? "wait" : "stop"
  return {
    code: "unexpected_response",
    title: "Unexpected response",
    detail: `${response.status} ${text.slice(0, 200)}`.trim(),
    agent_hint,
  }
}

/** Milliseconds before repeat `n`: what the service asks, else 0.25 s doubling to 8 s, spread so that clients do not meet. */
const waitBefore = (n: number, response: Response | undefined): number => {
  const asked = Number(response?.headers.get("retry-after"))
  if (response?.headers.has("retry-after") === true && Number.isFinite(asked)) return asked * 1000
  return Math.min(250 * 2 ** n, 8_000) * (0.5 + Math.random() / 2)
}

/** The longest wait in milliseconds before a retry. If the service asks for a longer one, the call fails instead. */
const longestWait = 60_000

export const makeTransport = (settings: ClientOptions = {}): Transport => {
  const key = settings.key ?? environment("SVC_KEY")
  const baseUrl = (settings.baseUrl ?? environment("SVC_API_URL") ?? "http://localhost:8080").replace(/\/+$/, "")
  const request = settings.fetch ?? fetch
  return {
    baseUrl,
    request,
    key,
    send: async (outgoing, options = {}) => {
      const { method, path, body, takesKey = false, waitSeconds = 0 } = outgoing
      const retries = options.retries ?? settings.retries ?? 3
      const timeout = (options.timeout ?? settings.timeout ?? 30_000) + waitSeconds * 1000
      const headers: Record<string, string> = {
        accept: "application/json",
        "svc-version": settings.apiVersion ?? apiVersion,
        "user-agent": ["agent-identity-sdk", settings.appInfo].filter((one) => one !== undefined).join(" "),
        ...options.headers,
      }
      const credential = options.key ?? key
      if (credential !== undefined) headers["authorization"] = `Bearer ${credential}`
      if (body !== undefined) headers["content-type"] = "application/json"
      if (options.ifMatch !== undefined) headers["if-match"] = options.ifMatch
      if (takesKey) headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID()
      // Without a key a repeat could have a second effect.
      const isRepeatable = takesKey || method === "GET"
      for (let n = 0; ; n++) {
        const isLast = n >= retries
        const deadline = AbortSignal.timeout(timeout)
        let response: Response | undefined
        const began = performance.now()
        const tell = (error?: unknown) => {
          const millis = Math.round(performance.now() - began)
          const requestId = response?.headers.get("request-id") ?? undefined
          for (const one of [settings.onAttempt, options.onAttempt])
            one?.({ method, path, number: n + 1, millis, response, requestId, error })
        }
        try {
          response = await request(baseUrl + path, {
            method,
            headers,
            signal: options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]),
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          })
        } catch (cause) {
          tell(cause)
          if (options.signal?.aborted === true) throw options.signal.reason
          if (isLast || !isRepeatable) {
            const what = deadline.aborted ? `gave no response within ${timeout} ms` : "is unreachable"
            throw new ConnectionError(`${baseUrl} ${what}`, { cause })
          }
        }
        if (response !== undefined) tell()
        if (response?.ok === true) return response
        const millis = waitBefore(n, response)
        if (response !== undefined) {
          // A limit refuses before anything happens; after other failures the outcome is unknown.
          const mayRepeat = response.status === 429 || (isRepeatable && isPassing(response.status))
          if (isLast || millis > longestWait || !mayRepeat) {
            throw apiErrorOf(response.status, await problemOf(response), response.headers)
          }
        }
        await response?.body?.cancel()
        await pause(millis, options.signal)
      }
    },
  }
}
