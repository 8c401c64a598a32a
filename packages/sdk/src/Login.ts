/** Signing in a program: the account holder approves a code in the browser, and the program receives an Admin Key. */
import { ApiError, ConnectionError } from "./Errors.ts"
import type { Calls } from "./generated.ts"
import { type ClientOptions, makeTransport, pause } from "./Transport.ts"

type Started = Calls["deviceLogin"]["start"]["output"]
type Granted = Calls["deviceLogin"]["poll"]["output"]

export interface LoginOptions extends Omit<ClientOptions, "key"> {
  /** The name of the new key. */
  readonly name: string
  /** Shows the account holder where to approve which code. */
  readonly onCode: (code: { readonly url: string; readonly code: string }) => void
  /** The scopes of the key; by default all that the account holder has. */
  readonly scopes?: ReadonlyArray<string>
  readonly expiresInDays?: number
  readonly signal?: AbortSignal
}

/** The longest interval in milliseconds between polls while the service is unreachable. */
const slowestPoll = 60_000

/**
 * Returns the approved key. Throws an `ApiError` if the account holder denies it or the code expires. A failed connection and a
 * busy service are no denial, so polling continues more slowly until the code expires (RFC 8628 section 3.5).
 */
export const login = async ({
  name,
  onCode,
  scopes,
  expiresInDays,
  signal,
  ...settings
}: LoginOptions): Promise<Granted> => {
  const transport = makeTransport({ ...settings, key: "" })
  const abort = signal === undefined ? {} : { signal }
  const begin = {
    name,
    ...(scopes === undefined ? {} : { scopes }),
    ...(expiresInDays === undefined ? {} : { expires_in_days: expiresInDays }),
  }
  const started = (await (
    await transport.send({ method: "POST", path: "/api/auth/device", body: begin }, abort)
  ).json()) as Started
  onCode({ url: started.verification_uri_complete, code: started.user_code })
  let interval = started.interval_seconds * 1000
  const isExpired = () => Date.now() > Date.parse(started.expires_at)
  while (true) {
    await pause(interval, signal)
    try {
      const body = { device_code: started.device_code }
      const response = await transport.send({ method: "POST", path: "/api/auth/device/token", body }, abort)
      return (await response.json()) as Granted
    } catch (error) {
      const code = error instanceof ApiError ? error.code : undefined
      const isPassing = error instanceof ApiError ? error.agentHint === "wait" : error instanceof ConnectionError
      if (code === "slow_down") interval += 5_000
      else if (code !== "authorization_pending") {
        if (!isPassing || isExpired()) throw error
        interval = Math.min(interval * 2, slowestPoll)
      }
    }
  }
}
