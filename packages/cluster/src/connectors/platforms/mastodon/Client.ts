/**
 * `masto` over the guarded way to the world. The library makes paths, queries and bodies of calls; the exchange itself is
 * ours, since its own takes no `fetch`, and so is what is made of an answer: it is counted before it is parsed, and comes
 * out as the server wrote it, for a schema to judge.
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
import { boundedWords } from "../ResponseBounds.ts"
import { CredentialRefused, isFailure, type PlatformFailure, PlatformRefused, PlatformUnreachable } from "../Failure.ts"
import type { PlatformResponse, PlatformHttp } from "../PlatformHttp.ts"

/** An answer of the server, before anything is made of it. */
export interface Raw {
  readonly data: unknown
  readonly headers: Headers
}

/** Bytes of an answer, and the values it may hold: parsing it must hold nothing else up. */
const answerBytes = 1024 * 1024
const answerValues = 60_000

const hasMoreValues = (bytes: Uint8Array): boolean => {
  let values = 0
  // `,`, `[` and `{`, wherever they stand: more than there are values never hurts.
  for (const byte of bytes)
    if ((byte === 0x2c || byte === 0x5b || byte === 0x7b) && ++values > answerValues) return true
  return false
}

const parsed = (host: string, { body }: PlatformResponse): unknown => {
  if (hasMoreValues(body)) throw new PlatformUnreachable({ message: `${host} gave an answer that is too long.` })
  if (body.length === 0) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw new PlatformUnreachable({ message: `${host} gave an answer that is no JSON.` })
  }
}

const text = (data: unknown, member: string): string | undefined => {
  if (typeof data !== "object" || data === null) return undefined
  const value = (data as Readonly<Record<string, unknown>>)[member]
  return typeof value === "string" && value !== "" ? boundedWords(value) : undefined
}

/** What Mastodon says to an account that may not do anything any more. */
const lockedOut = /login is currently (disabled|suspended)|missing a confirmed e-mail|pending approval|suspended/i

const refusal = (host: string, answer: PlatformResponse): PlatformFailure => {
  let data: unknown
  try {
    data = parsed(host, answer)
  } catch {
    data = undefined
  }
  const said = text(data, "error_description") ?? text(data, "error")
  const message = said ?? `${host} answered with ${answer.status}.`
  const { status } = answer
  if (status === 401 || (status === 403 && lockedOut.test(message))) return new CredentialRefused({ message })
  if (status === 404 || status === 410) return new PlatformRefused({ message, missing: true })
  if (status >= 400 && status < 500) return new PlatformRefused({ message })
  return new PlatformUnreachable({ message })
}

class GuardedHttp extends BaseHttp {
  private readonly serializer = new SerializerNativeImpl()
  private readonly config: HttpConfigImpl
  private readonly service: string
  private readonly ask: (url: URL, asked: Parameters<PlatformHttp["request"]>[1]) => Promise<PlatformResponse>

  constructor(
    service: string,
    token: string | undefined,
    ask: (url: URL, asked: Parameters<PlatformHttp["request"]>[1]) => Promise<PlatformResponse>,
  ) {
    super()
    this.service = service
    this.ask = ask
    this.config = new HttpConfigImpl(
      { url: service, ...(token === undefined ? {} : { accessToken: token }) },
      this.serializer,
    )
  }

  override async request<T>(params: Parameters<BaseHttp["request"]>[0]): Promise<{ headers: Headers; data: T }> {
    const url = this.config.resolvePath(params.path, params.search)
    if (url.origin !== this.service) throw new PlatformUnreachable({ message: "A call would lead to another server." })
    const headers = new Headers(this.config.mergeRequestInitWithDefaults(params.requestInit ?? {}).headers)
    let body: Uint8Array | string | undefined
    if (params.body !== undefined && params.method !== "GET") {
      // A form with parts makes other line breaks of a text's, so only a file goes by one.
      const hasFile = Object.values(params.body).some((value) => value instanceof Blob)
      // OAuth's own way (RFC 6749 section 4.1.3), and that of a profile: several servers take them no other way.
      const isForm = params.path.startsWith("/oauth/") || params.method === "PATCH"
      const way = hasFile ? "multipart-form" : isForm ? "querystring" : "json"
      const packed = (this.serializer as Serializer).serialize(way, params.body)
      if (typeof packed === "string") {
        headers.set("content-type", isForm ? "application/x-www-form-urlencoded" : "application/json")
        body = packed
      } else {
        // A form: the standard's own packing of it, with the boundary in the type.
        const form = new Response(packed)
        headers.set("content-type", form.headers.get("content-type") ?? "multipart/form-data")
        body = new Uint8Array(await form.arrayBuffer())
      }
    }
    const answer = await this.ask(url, {
      method: params.method,
      headers: Object.fromEntries(headers),
      body,
      atMost: answerBytes,
    })
    if (answer.status < 200 || answer.status >= 300) throw refusal(url.host, answer)
    // What it is is judged by a schema; the library's types are of what it would have made of it.
    return { headers: answer.headers, data: parsed(url.host, answer) as T }
  }
}

/** A document of the server that no call of the API is for; undefined where there is none. */
export const document = (
  reach: PlatformHttp,
  service: string,
  path: string,
): Effect.Effect<unknown, PlatformFailure> => {
  const url = new URL(path, service)
  return Effect.flatMap(reach.request(url, { atMost: 256 * 1024 }), (answer) =>
    answer.status === 200
      ? Effect.try({
          try: () => parsed(url.host, answer),
          catch: () => new PlatformUnreachable({ message: `${url.host} gave an answer that is no JSON.` }),
        })
      : answer.status < 500
        ? Effect.succeed(undefined)
        : Effect.fail(refusal(url.host, answer)),
  )
}

/** What the platform's calls are made with: `api` of the REST API, `oauth` of the OAuth endpoints. */
export interface Clients {
  readonly api: mastodon.rest.Client
  readonly oauth: mastodon.oauth.Client
}

/** One call or a few, with a token or without one. What it throws becomes a failure of the platform. */
export const calling = <A>(
  reach: PlatformHttp,
  service: string,
  token: Redacted.Redacted<string> | undefined,
  call: (clients: Clients) => PromiseLike<A>,
): Effect.Effect<A, PlatformFailure> =>
  Effect.flatMap(Effect.context<never>(), (context) =>
    Effect.tryPromise({
      try: async (signal) => {
        const run = Effect.runPromiseWith(context)
        const http = new GuardedHttp(
          service,
          token === undefined ? undefined : Redacted.value(token),
          async (url, asked) => {
            const answer = await run(Effect.result(reach.request(url, asked)), { signal })
            if (answer._tag === "Failure") throw answer.failure
            return answer.success
          },
        )
        const dispatcher = new HttpActionDispatcher(http, new HttpActionDispatcherHookMastodon(http))
        return await call({
          api: createActionProxy<mastodon.rest.Client>(dispatcher, { context: ["api"] }),
          oauth: createActionProxy<mastodon.oauth.Client>(dispatcher, { context: ["oauth"] }),
        })
      },
      catch: (thrown) =>
        isFailure(thrown)
          ? thrown
          : new PlatformUnreachable({ message: `The server's answer made no sense: ${boundedWords(String(thrown))}` }),
    }),
  )
