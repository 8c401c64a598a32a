/** An API client as an integrator would write it. */
import { eventually } from "./Service.ts"

export interface ApiResponse<A = any> {
  readonly status: number
  readonly headers: Headers
  readonly body: A
}

export const call = async <A = any>(
  base: string,
  method: string,
  path: string,
  options: { readonly token?: string; readonly body?: unknown; readonly headers?: Record<string, string> } = {},
): Promise<ApiResponse<A>> => {
  const headers: Record<string, string> = { ...options.headers }
  if (options.token !== undefined) headers["authorization"] = `Bearer ${options.token}`
  if (options.body !== undefined) headers["content-type"] ??= "application/json"
  const response = await fetch(`${base}${path}`, {
    method,
    headers,
    redirect: "manual",
    ...(options.body === undefined
      ? {}
      : { body: typeof options.body === "string" ? options.body : JSON.stringify(options.body) }),
  })
  const text = await response.text()
  const json = /json\b/.test(response.headers.get("content-type") ?? "")
  return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text }
}

let people = 0

/** Creates an Org and returns its session token and address. */
export const signUp = async (base: string) => {
  const email = `person-${Date.now().toString(36)}-${people++}@example.org`
  const link = await call(base, "POST", "/api/auth/magic-link", { body: { email, tos_accepted: true } })
  const token = new URL(link.body.dev_magic_link).searchParams.get("token")
  const consumed = await call(base, "POST", "/api/auth/magic-link/consume", { body: { token } })
  return { email, session: consumed.body.session_token as string, org: consumed.body.org }
}

let names = 0
export const newHandle = (stem = "agent") => `${stem}x${Date.now().toString(36)}x${(names++).toString(36)}`

/** Creates an Identity, waits until it is ready, and returns it with its secrets. */
export const makeIdentity = async (base: string, token: string, handle = newHandle()) => {
  const headers = { "idempotency-key": `make-${handle}` }
  // A busy machine can answer 503 for a moment. As clients do, the call is repeated with its key.
  const created = await eventually(
    () => call(base, "POST", "/api/identities", { token, headers, body: { handle } }),
    ({ status }) => status !== 503,
  )
  if (created.status !== 202) throw new Error(`create answered ${created.status}: ${JSON.stringify(created.body)}`)
  const identity = await eventually(
    () => call(base, "GET", `/api/identities/${handle}`, { token }),
    ({ body }) => body.status === "ready",
  )
  const secrets = await call(base, "GET", `/api/identities/${handle}/identity-key`, { token })
  return { handle, identity: identity.body, secrets: secrets.body }
}
