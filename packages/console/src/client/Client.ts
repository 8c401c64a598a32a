/**
 * A typed client of the API. Names, paths, bodies and responses are checked against `packages/domain` at compile time and
 * add nothing to the bundle (`import type`).
 */
import type { Api } from "@svc/domain/Api"
import type { Code } from "@svc/domain/problems/Table"
import type { Schema } from "effect"
import type { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"

type Groups = (typeof Api)["groups"][keyof (typeof Api)["groups"]]
type Endpoint = HttpApiGroup.Endpoints<Groups>

/** Every method and path, such as `GET /api/identities/:handle`. */
export type Route = Endpoint extends infer E
  ? E extends { method: infer M extends string; path: infer P extends string }
    ? `${M} ${P}`
    : never
  : never
export type Reading = Extract<Route, `GET ${string}`>

type At<R extends Route> = Endpoint extends infer E
  ? E extends { method: infer M extends string; path: infer P extends string }
    ? R extends `${M} ${P}`
      ? E
      : never
    : never
  : never

/** The body schema of a response that also declares headers. */
type Plain<S> = S extends { readonly schema: infer B; readonly headers: Schema.Top } ? B : S
/** The JSON encoding of a schema. */
type Inner<S> = S extends { readonly "~effect/Schema/toCodec": never }
  ? S
  : S extends Schema.toCodecJson<infer T>
    ? T
    : S extends Schema.toCodecStringTree<infer T>
      ? T
      : S
type Wire<S> = Inner<S> extends { readonly Encoded: infer T } ? T : never
type Part<Name extends string, S> = [S] extends [never]
  ? {}
  : {} extends Wire<S>
    ? { readonly [K in Name]?: Wire<S> }
    : { readonly [K in Name]: Wire<S> }

export type Input<R extends Route> = Part<"params", HttpApiEndpoint.Params<At<R>>> &
  Part<"query", HttpApiEndpoint.Query<At<R>>> &
  Part<"body", HttpApiEndpoint.Payload<At<R>>>
export type Answer<R extends Route> = Wire<Plain<HttpApiEndpoint.Success<At<R>>>>

export interface Problem {
  readonly code: Code
  readonly title: string
  readonly detail: string
  readonly status: number
  readonly agent_hint: "fix_call" | "wait" | "stop"
  /** The request id, for support. */
  readonly instance: string
  readonly errors?: ReadonlyArray<{ readonly path: string; readonly message: string }>
  readonly retry_after_seconds?: number
}

/** An error response with its problem document. */
export class Refused extends Error {
  readonly problem: Problem
  constructor(problem: Problem) {
    super(problem.detail)
    this.problem = problem
  }
}

/** No response from the service, or a response that is not from the service. */
export class Unreachable extends Error {}

export interface Manner {
  /** The `Idempotency-Key`: repeating a call with the same key has no second effect. */
  readonly key?: string
  /** The entity tag that the resource must still have. */
  readonly ifMatch?: string
  /** `*`: only create, never replace. */
  readonly ifNoneMatch?: "*"
  readonly signal?: AbortSignal
  /** Sends the request even if the page is closed. */
  readonly keepalive?: boolean
  /** Receives the share of the body that was sent. */
  readonly onSent?: (share: number) => void
}

/** A POST needs a key, so that a command that is repeated after a lost response has no second effect. */
type Arguments<R extends Route> = R extends `POST ${string}`
  ? [input: Input<R>, manner: Manner & { readonly key: string }]
  : {} extends Input<R>
    ? [input?: Input<R>, manner?: Manner]
    : [input: Input<R>, manner?: Manner]

/** Returns the method and the URL of a call. */
export const addressOf = (route: string, input: object | undefined) => {
  const { params = {}, query = {} } = (input ?? {}) as {
    params?: Record<string, string | number>
    query?: Record<string, unknown>
  }
  const [method, path] = route.split(" ") as [string, string]
  const search = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  ).toString()
  return {
    method,
    path:
      path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(String(params[name]))) +
      (search === "" ? "" : `?${search}`),
  }
}

/** Notified when a call finds that the session has ended. */
export const signedOut = { tell: () => {} }
/** Notified when a call gets no response. */
export const unreachable = { tell: () => {} }

/** Sends a request with a large body. `fetch` does not tell how much of a body was sent. */
const upload = (
  path: string,
  {
    method,
    headers,
    body,
    signal,
  }: { method: string; headers: Record<string, string>; body: string; signal?: AbortSignal },
  onSent: (share: number) => void,
) =>
  new Promise<Response>((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open(method, path)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => onSent(loaded / total)
    request.onload = () => {
      const received = new Headers()
      for (const name of ["content-type", "etag"]) {
        const value = request.getResponseHeader(name)
        if (value !== null) received.set(name, value)
      }
      const { status } = request
      resolve(new Response(status === 204 ? null : request.responseText, { status, headers: received }))
    }
    request.onerror = request.onabort = () => reject(new TypeError("not sent"))
    signal?.addEventListener("abort", () => request.abort())
    request.send(body)
  })

const send = async (route: string, input: object | undefined, manner: Manner) => {
  const { method, path } = addressOf(route, input)
  const body = (input as { body?: unknown } | undefined)?.body
  const headers: Record<string, string> = { "svc-console": "1" }
  if (body !== undefined) headers["content-type"] = "application/json"
  if (method === "POST") headers["idempotency-key"] = manner.key ?? crypto.randomUUID()
  if (manner.ifMatch !== undefined) headers["if-match"] = manner.ifMatch
  if (manner.ifNoneMatch !== undefined) headers["if-none-match"] = manner.ifNoneMatch
  let response: Response
  try {
    const request = {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(manner.signal === undefined ? {} : { signal: manner.signal }),
    }
    response =
      manner.onSent === undefined || request.body === undefined
        ? await fetch(path, { ...request, keepalive: manner.keepalive === true })
        : await upload(path, { ...request, body: request.body }, manner.onSent)
  } catch (cause) {
    if (manner.signal?.aborted === true) throw cause
    unreachable.tell()
    throw new Unreachable("no answer", { cause })
  }
  const isJson = /json/.test(response.headers.get("content-type") ?? "")
  const answer: unknown = response.status === 204 || !isJson ? undefined : await response.json()
  if (!response.ok) {
    if (response.status === 401) signedOut.tell()
    if (answer === undefined) throw new Unreachable(`not a response of the service: ${response.status}`)
    throw new Refused(answer as Problem)
  }
  return { answer, tag: response.headers.get("etag") ?? undefined }
}

export const call = async <R extends Route>(route: R, ...[input, manner]: Arguments<R>): Promise<Answer<R>> =>
  (await send(route, input, manner ?? {})).answer as Answer<R>

/** Calls a route and also returns the entity tag, for a later change with `ifMatch`. */
export const callTagged = async <R extends Route>(
  route: R,
  ...[input, manner]: Arguments<R>
): Promise<{ readonly answer: Answer<R>; readonly tag: string | undefined }> =>
  (await send(route, input, manner ?? {})) as { answer: Answer<R>; tag: string | undefined }
