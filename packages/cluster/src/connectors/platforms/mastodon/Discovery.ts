/**
 * Finds the server of an account, by WebFinger for `user@host`, and reads the server's limits and rules. Limits are cached
 * for an hour.
 */
import { BoundedMap } from "@svc/domain/BoundedMap"
import { Clock, Effect, Schema } from "effect"
import { InputRefused, type PlatformFailure } from "../Failure.ts"
import type { PlatformHttp } from "../PlatformHttp.ts"
import * as Responses from "./Responses.ts"
import { calling, document } from "./Client.ts"

/** Parses `@user@host`, `user@host`, `host`, or the address of a server or profile. */
const parseAccount = (account: string): { readonly user: string | undefined; readonly host: string } | undefined => {
  const text = account.trim().replace(/^acct:/i, "")
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (url !== null) return { user: undefined, host: url.host }
  const found = /^(?:@?([\w.+-]{1,100})@)?([a-z0-9.:[\]-]{1,255})$/i.exec(text.normalize("NFKC"))
  return found === null ? undefined : { user: found[1], host: found[2]!.toLowerCase() }
}

/** Returns the origin of a host. It uses http only if the input does, which the guarded client allows only in development. */
const originOf = (account: string, host: string): string | undefined =>
  URL.parse(`${/^\s*http:\/\//i.test(account) ? "http" : "https"}://${host}`)?.origin

const refused = new InputRefused({
  message: "The account must be `user@host` or the host of a Mastodon server.",
  path: "/account",
})

const WebFinger = Schema.Struct({
  links: Schema.Array(
    Schema.Struct({
      rel: Schema.String,
      href: Schema.optionalKey(Schema.String),
      type: Schema.optionalKey(Schema.NullOr(Schema.String)),
    }),
  ),
})
const readWebFinger = Schema.decodeUnknownOption(Schema.fromJsonString(WebFinger))

/** Largest number of redirects from a host to the server of its accounts (RFC 7033 section 4.2). */
const redirects = 3

const webFinger = Effect.fnUntraced(function* (http: PlatformHttp, origin: string, user: string) {
  const host = new URL(origin).host
  let url = new URL(`/.well-known/webfinger?resource=${encodeURIComponent(`acct:${user}@${host}`)}`, origin)
  for (let hop = 0; hop <= redirects; hop++) {
    const response = yield* http.request(url, {
      headers: { accept: "application/jrd+json, application/json" },
      atMost: 64 * 1024,
    })
    const location = response.headers.get("location")
    if (response.status >= 300 && response.status < 400 && location !== null) {
      const next = URL.parse(location, url)
      if (next === null) return undefined
      url = next
      continue
    }
    if (response.status !== 200) return undefined
    const found = readWebFinger(new TextDecoder().decode(response.body))
    if (found._tag === "None") return undefined
    const self = found.value.links.find(({ rel, type }) => rel === "self" && (type ?? "").includes("activity"))
    const at = self?.href === undefined ? null : URL.parse(self.href)
    return at === null ? undefined : at.origin
  }
  return undefined
})

/** Returns the origin of the account's server. */
export const serviceOf = Effect.fnUntraced(function* (
  http: PlatformHttp,
  account: string | undefined,
): Effect.fn.Return<string, PlatformFailure> {
  const parsed = account === undefined ? undefined : parseAccount(account)
  const origin = parsed === undefined || account === undefined ? undefined : originOf(account, parsed.host)
  if (parsed === undefined || origin === undefined) return yield* refused
  if (parsed.user === undefined) return origin
  // A host without WebFinger may be the server itself; later calls fail if it is not.
  const found = yield* Effect.catchTag(webFinger(http, origin, parsed.user), "PlatformUnreachable", () =>
    Effect.succeed(undefined),
  )
  return found ?? origin
})

/** A server's limits for posts, and its features. */
export interface Limits {
  /** The domain of its accounts. */
  readonly domain: string
  readonly characters: number
  readonly perUrl: number
  readonly attachments: number
  readonly imageBytes: number
  readonly mimeTypes: ReadonlySet<string> | undefined
  /** Whether it supports `Idempotency-Key`: Mastodon, Pleroma and Akkoma do. Other servers have other version formats. */
  readonly idempotent: boolean
  /** The http address of its streaming API, or undefined if it has none. */
  readonly streaming: string | undefined
}

const between = (least: number, most: number, value: number): number =>
  Math.min(most, Math.max(least, Math.floor(value)))

const keptMillis = 60 * 60 * 1000
const keptAtMost = 500

const domainOf = (instance: typeof Responses.Instance.Type, service: string): string => {
  const stated = instance.domain ?? instance.uri
  const host =
    stated == null ? undefined : (URL.parse(stated.includes("://") ? stated : `https://${stated}`)?.host ?? undefined)
  return host ?? new URL(service).host
}

/** Returns the http address of the streaming API. An https server must not offer an unencrypted stream. */
const streamingOf = (instance: typeof Responses.Instance.Type, service: string): string | undefined => {
  const stated = instance.configuration?.urls?.streaming ?? instance.urls?.streaming_api
  const url = stated == null ? null : URL.parse(stated.replace(/^ws/i, "http"))
  if (url === null || (url.protocol !== "https:" && url.protocol !== new URL(service).protocol)) return undefined
  return url.origin
}

const limitsOf = (instance: typeof Responses.Instance.Type, service: string): Limits => {
  const statuses = instance.configuration?.statuses
  const media = instance.configuration?.media_attachments
  const types = media?.supported_mime_types
  return {
    domain: domainOf(instance, service),
    characters: between(1, 100_000, statuses?.max_characters ?? instance.max_toot_chars ?? 500),
    perUrl: between(0, 1_000, statuses?.characters_reserved_per_url ?? 23),
    attachments: between(0, 16, statuses?.max_media_attachments ?? 4),
    imageBytes: between(0, 2 ** 30, media?.image_size_limit ?? 16 * 1024 * 1024),
    mimeTypes: types == null || types.length === 0 ? undefined : new Set(types.slice(0, 100)),
    idempotent: /^[1-9]\d*\.\d+\.\d+[^\s(]*$|\b(?:Pleroma|Akkoma)\b/.test(instance.version ?? ""),
    streaming: streamingOf(instance, service),
  }
}

export const makeInstances = () => {
  const known = new BoundedMap<string, { readonly limits: Limits; readonly at: number }>(keptAtMost)
  return {
    limits: Effect.fnUntraced(function* (
      http: PlatformHttp,
      service: string,
    ): Effect.fn.Return<Limits, PlatformFailure> {
      const now = yield* Clock.currentTimeMillis
      const found = known.get(service)
      if (found !== undefined && now - found.at < keptMillis) return found.limits
      const response = yield* calling(http, service, undefined, ({ api }) => api.v2.instance.fetch()).pipe(
        // Mastodon before version 4, and some other servers, only have version 1.
        Effect.catchTag("PlatformRefused", () =>
          calling<unknown>(http, service, undefined, ({ api }) => api.v1.instance.fetch()),
        ),
      )
      const limits = limitsOf(yield* Responses.as(Responses.Instance)(response), service)
      known.set(service, { limits, at: now })
      return limits
    }),
    /** Returns the rules that members of the server accept. */
    rules: (http: PlatformHttp, service: string) =>
      Effect.map(document(http, service, "/api/v1/instance/rules"), (response) =>
        Responses.validEntries(Responses.Rule)(response).map(({ id, text, hint }) => ({
          id: id.slice(0, 100),
          text: text.slice(0, 2000),
          hint: hint == null || hint === "" ? null : hint.slice(0, 2000),
        })),
      ),
  }
}

export type Instances = ReturnType<typeof makeInstances>
