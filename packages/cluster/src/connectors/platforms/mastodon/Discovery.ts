/**
 * Which server carries an account, and what it says of itself: of `user@host` the one that WebFinger names, of a host that
 * host. What a server says of its limits is kept for an hour, of so many servers.
 */
import { Clock, Effect, Schema } from "effect"
import { InputRefused, type PlatformFailure } from "../Failure.ts"
import type { PlatformHttp } from "../PlatformHttp.ts"
import * as Answers from "./Responses.ts"
import { calling, document } from "./Client.ts"

/** `@user@host`, `user@host`, `host`, or the address of the server or of the profile. */
const parts = (account: string): { readonly user: string | undefined; readonly host: string } | undefined => {
  const text = account.trim().replace(/^acct:/i, "")
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  if (url !== null) return { user: undefined, host: url.host }
  const found = /^(?:@?([\w.+-]{1,100})@)?([a-z0-9.:[\]-]{1,255})$/i.exec(text.normalize("NFKC"))
  return found === null ? undefined : { user: found[1], host: found[2]!.toLowerCase() }
}

/** http only where the account says so, which the guarded client takes in Development alone. */
const originOf = (account: string, host: string): string | undefined =>
  URL.parse(`${/^\s*http:\/\//i.test(account) ? "http" : "https"}://${host}`)?.origin

const refused = new InputRefused({
  message: "The account is `user@host`, or the host of a Mastodon server.",
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
const readFinger = Schema.decodeUnknownOption(Schema.fromJsonString(WebFinger))

/** A host may send on to the server that carries its accounts (RFC 7033 section 4.2), so often at most. */
const redirects = 3

const finger = Effect.fnUntraced(function* (reach: PlatformHttp, origin: string, user: string) {
  const host = new URL(origin).host
  let url = new URL(`/.well-known/webfinger?resource=${encodeURIComponent(`acct:${user}@${host}`)}`, origin)
  for (let hop = 0; hop <= redirects; hop++) {
    const answer = yield* reach.request(url, {
      headers: { accept: "application/jrd+json, application/json" },
      atMost: 64 * 1024,
    })
    const location = answer.headers.get("location")
    if (answer.status >= 300 && answer.status < 400 && location !== null) {
      const next = URL.parse(location, url)
      if (next === null) return undefined
      url = next
      continue
    }
    if (answer.status !== 200) return undefined
    const found = readFinger(new TextDecoder().decode(answer.body))
    if (found._tag === "None") return undefined
    const self = found.value.links.find(({ rel, type }) => rel === "self" && (type ?? "").includes("activity"))
    const at = self?.href === undefined ? null : URL.parse(self.href)
    return at === null ? undefined : at.origin
  }
  return undefined
})

/** The origin of the server that carries the account. */
export const serviceOf = Effect.fnUntraced(function* (
  reach: PlatformHttp,
  account: string | undefined,
): Effect.fn.Return<string, PlatformFailure> {
  const named = account === undefined ? undefined : parts(account)
  const origin = named === undefined || account === undefined ? undefined : originOf(account, named.host)
  if (named === undefined || origin === undefined) return yield* refused
  if (named.user === undefined) return origin
  // A host that answers no WebFinger is asked as the server itself; what is wrong with it shows then.
  const found = yield* Effect.catchTag(finger(reach, origin, named.user), "PlatformUnreachable", () =>
    Effect.succeed(undefined),
  )
  return found ?? origin
})

/** What a server lets one post. */
export interface Limits {
  /** The domain of its accounts. */
  readonly domain: string
  readonly characters: number
  readonly perUrl: number
  readonly attachments: number
  readonly imageBytes: number
  readonly mimeTypes: ReadonlySet<string> | undefined
  /** It takes `Idempotency-Key`: Mastodon, Pleroma and Akkoma do. Others say in their version that they are others. */
  readonly idempotent: boolean
  /** Where it says at once what is said, as an http address; undefined where it does not. */
  readonly streaming: string | undefined
}

const between = (least: number, most: number, value: number): number =>
  Math.min(most, Math.max(least, Math.floor(value)))

const keptMillis = 60 * 60 * 1000
const keptAtMost = 500

const domainOf = (instance: typeof Answers.Instance.Type, service: string): string => {
  const said = instance.domain ?? instance.uri
  const host =
    said == null ? undefined : (URL.parse(said.includes("://") ? said : `https://${said}`)?.host ?? undefined)
  return host ?? new URL(service).host
}

/** Named as a WebSocket's or as a plain one; a server that speaks https has no stream in the clear. */
const streamingOf = (instance: typeof Answers.Instance.Type, service: string): string | undefined => {
  const said = instance.configuration?.urls?.streaming ?? instance.urls?.streaming_api
  const url = said == null ? null : URL.parse(said.replace(/^ws/i, "http"))
  if (url === null || (url.protocol !== "https:" && url.protocol !== new URL(service).protocol)) return undefined
  return url.origin
}

const limitsOf = (instance: typeof Answers.Instance.Type, service: string): Limits => {
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
  const known = new Map<string, { readonly limits: Limits; readonly at: number }>()
  return {
    limits: Effect.fnUntraced(function* (
      reach: PlatformHttp,
      service: string,
    ): Effect.fn.Return<Limits, PlatformFailure> {
      const now = yield* Clock.currentTimeMillis
      const found = known.get(service)
      if (found !== undefined && now - found.at < keptMillis) return found.limits
      const answer = yield* calling(reach, service, undefined, ({ api }) => api.v2.instance.fetch()).pipe(
        // Before version 4 of Mastodon's, and at some others.
        Effect.catchTag("PlatformRefused", () =>
          calling<unknown>(reach, service, undefined, ({ api }) => api.v1.instance.fetch()),
        ),
      )
      const limits = limitsOf(yield* Answers.as(Answers.Instance)(answer), service)
      known.delete(service)
      if (known.size >= keptAtMost) known.delete(known.keys().next().value!)
      known.set(service, { limits, at: now })
      return limits
    }),
    /** What who joins it accepts; a server without rules has none to show. */
    rules: (reach: PlatformHttp, service: string) =>
      Effect.map(document(reach, service, "/api/v1/instance/rules"), (answer) =>
        Answers.each(Answers.Rule)(answer).map(({ id, text, hint }) => ({
          id: id.slice(0, 100),
          text: text.slice(0, 2000),
          hint: hint == null || hint === "" ? null : hint.slice(0, 2000),
        })),
      ),
  }
}

export type Instances = ReturnType<typeof makeInstances>
