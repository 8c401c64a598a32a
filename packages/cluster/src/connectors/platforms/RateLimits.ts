/**
 * What a server says of its limits: `Retry-After` (RFC 9110 section 10.2.3), `X-RateLimit-Remaining` and `-Reset` as
 * Mastodon has them (a date), `RateLimit-Remaining` and `-Reset` as Bluesky has them (seconds of the epoch, or from now).
 */
const number = (text: string | null): number | undefined =>
  text !== null && /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : undefined

/** No server makes us wait longer than this at a time; then it is asked again. */
const longestMillis = 60 * 60 * 1000

const at = (text: string | null, now: number): number | undefined => {
  if (text === null) return undefined
  const seconds = number(text)
  // A number this large is a time; a small one counts from now.
  if (seconds !== undefined) return seconds > 1_000_000_000 ? seconds * 1000 : now + seconds * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : date
}

/** Until when no further call is wanted; undefined where one may be made now. */
export const quietUntil = (status: number, headers: Headers, now: number): Date | undefined => {
  const remaining = number(headers.get("x-ratelimit-remaining") ?? headers.get("ratelimit-remaining"))
  const refused = status === 429
  if (!refused && remaining !== 0 && !(status === 503 && headers.has("retry-after"))) return undefined
  const told =
    at(headers.get("retry-after"), now) ?? at(headers.get("x-ratelimit-reset") ?? headers.get("ratelimit-reset"), now)
  if (told === undefined) return refused ? new Date(now + 60_000) : undefined
  return told <= now ? undefined : new Date(Math.min(told, now + longestMillis))
}
