/**
 * Runs calls of the library `masto` over {@link PlatformHttp}. The library builds paths, queries and bodies. Requests and
 * parsing are done here, because the library accepts no `fetch`: the values of a response are counted before it is
 * parsed, and the unconverted response is validated by a schema.
 */
import { Effect, Redacted } from "effect"
import type { mastodon } from "masto"
import { HttpActionDispatcherHookMastodon } from "masto/adapters/action/dispatcher-http-hook-mastodon.js"
import { HttpActionDispatcher } from "masto/adapters/action/dispatcher-http.js"
import { createActionProxy } from "masto/adapters/action/proxy.js"
import { HttpConfigImpl } from "masto/adapters/config/http-config.js"
import { BaseHttp } from "masto/adapters/http/base-http.js"
import { SerializerNativeImpl } from "masto/adapters/serializers/serializer-native-impl.js"
import type { Serializer } from "masto/interfaces/serializer.js"
import { boundedWords, hasMoreValues } from "../ResponseBounds.ts"
import { CredentialRefused, isFailure, type PlatformFailure, PlatformRefused, PlatformUnreachable } from "../Failure.ts"
import type { PlatformResponse, PlatformHttp } from "../PlatformHttp.ts"

/** Limits for the bytes and the JSON values of a response, so that parsing it does not block the event loop. */
const responseBytes = 1024 * 1024
const responseValues = 60_000

const parseJson = (host: string, { body }: PlatformResponse): unknown => {
  if (hasMoreValues(body, responseValues))
    throw new PlatformUnreachable({ message: `The response of ${host} is too large.` })
  if (body.length === 0) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw new PlatformUnreachable({ message: `The response of ${host} is not JSON.` })
  }
}

const text = (data: unknown, member: string): string | undefined => {
  if (typeof data !== "object" || data === null) return undefined
  const value = (data as Readonly<Record<string, unknown>>)[member]
  return typeof value === "string" && value !== "" ? boundedWords(value) : undefined
}

/** Messages of Mastodon for accounts that are locked or not yet approved. */
const lockedOut = /login is currently (disabled|suspended)|missing a confirmed e-mail|pending approval|suspended/i

const failureOf = (host: string, response: PlatformResponse): PlatformFailure => {
  let data: unknown
  try {
    data = parseJson(host, response)
  } catch {
    data = undefined
  }
  const reason = text(data, "error_description") ?? text(data, "error")
  const message = reason ?? `${host} responded with ${response.status}.`
  const { status } = response
  if (status === 401 || (status === 403 && lockedOut.test(message))) return new CredentialRefused({ message })
  if (status === 404 || status === 410) return new PlatformRefused({ message, missing: true })
  if (status >= 400 && status < 500) return new PlatformRefused({ message })
  return new PlatformUnreachable({ message })
}

class GuardedHttp extends BaseHttp {
  private readonly serializer = new SerializerNativeImpl()
  private readonly config: HttpConfigImpl
  private readonly service: string
  private readonly send: (url: URL, options: Parameters<PlatformHttp["request"]>[1]) => Promise<PlatformResponse>

  constructor(
    service: string,
    token: string | undefined,
    send: (url: URL, options: Parameters<PlatformHttp["request"]>[1]) => Promise<PlatformResponse>,
  ) {
    super()
    this.service = service
    this.send = send
    this.config = new HttpConfigImpl(
      { url: service, ...(token === undefined ? {} : { accessToken: token }) },
      this.serializer,
    )
  }

  override async request<T>(params: Parameters<BaseHttp["request"]>[0]): Promise<{ headers: Headers; data: T }> {
    const url = this.config.resolvePath(params.path, params.search)
    if (url.origin !== this.service) {
      throw new PlatformUnreachable({ message: "The call was blocked because it leads to another server." })
    }
    const headers = new Headers(this.config.mergeRequestInitWithDefaults(params.requestInit ?? {}).headers)
    let body: Uint8Array | string | undefined
    if (params.body !== undefined && params.method !== "GET") {
      // Multipart forms change line breaks in texts, so only files are sent that way.
      const hasFile = Object.values(params.body).some((value) => value instanceof Blob)
      // OAuth (RFC 6749 section 4.1.3) and profile updates are sent as forms, because several servers accept only those.
      const isForm = params.path.startsWith("/oauth/") || params.method === "PATCH"
      const way = hasFile ? "multipart-form" : isForm ? "querystring" : "json"
      const packed = (this.serializer as Serializer).serialize(way, params.body)
      if (typeof packed === "string") {
        headers.set("content-type", isForm ? "application/x-www-form-urlencoded" : "application/json")
        body = packed
      } else {
        // `Response` serializes the form, with its boundary in the content type.
        const form = new Response(packed)
        headers.set("content-type", form.headers.get("content-type") ?? "multipart/form-data")
        body = new Uint8Array(await form.arrayBuffer())
      }
    }
    const response = await this.send(url, {
      method: params.method,
      headers: Object.fromEntries(headers),
      body,
      atMost: responseBytes,
    })
    if (response.status < 200 || response.status >= 300) throw failureOf(url.host, response)
    // A schema validates the data later; the library's types describe its own converted form.
    return { headers: response.headers, data: parseJson(url.host, response) as T }
  }
}

/** Requests a document that is not part of the API. Returns undefined if the server does not have it. */
export const document = (
  http: PlatformHttp,
  service: string,
  path: string,
): Effect.Effect<unknown, PlatformFailure> => {
  const url = new URL(path, service)
  return Effect.flatMap(http.request(url, { atMost: 256 * 1024 }), (response) =>
    response.status === 200
      ? Effect.try({
          try: () => parseJson(url.host, response),
          catch: () => new PlatformUnreachable({ message: `The response of ${url.host} is not JSON.` }),
        })
      : response.status < 500
        ? Effect.succeed(undefined)
        : Effect.fail(failureOf(url.host, response)),
  )
}

/** The library's clients for the REST API and the OAuth endpoints. */
export interface Clients {
  readonly api: mastodon.rest.Client
  readonly oauth: mastodon.oauth.Client
}

/** Runs calls with or without a token. Errors become platform failures. */
export const calling = <A>(
  http: PlatformHttp,
  service: string,
  token: Redacted.Redacted<string> | undefined,
  call: (clients: Clients) => PromiseLike<A>,
): Effect.Effect<A, PlatformFailure> =>
  Effect.flatMap(Effect.context<never>(), (context) =>
    Effect.tryPromise({
      try: async (signal) => {
        const run = Effect.runPromiseWith(context)
        const client = new GuardedHttp(
          service,
          token === undefined ? undefined : Redacted.value(token),
          async (url, options) => {
            const response = await run(Effect.result(http.request(url, options)), { signal })
            if (response._tag === "Failure") throw response.failure
            return response.success
          },
        )
        const dispatcher = new HttpActionDispatcher(client, new HttpActionDispatcherHookMastodon(client))
        return await call({
          api: createActionProxy<mastodon.rest.Client>(dispatcher, { context: ["api"] }),
          oauth: createActionProxy<mastodon.oauth.Client>(dispatcher, { context: ["oauth"] }),
        })
      },
      catch: (thrown) =>
        isFailure(thrown)
          ? thrown
          : new PlatformUnreachable({ message: `The server's response is invalid: ${boundedWords(String(thrown))}` }),
    }),
  )
