/**
 * Reads rate-limit headers: `Retry-After` (RFC 9110 section 10.2.3), Mastodon's `X-RateLimit-Remaining` and `-Reset` (a
 * date), and Bluesky's `RateLimit-Remaining` and `-Reset` (epoch seconds or a delay in seconds).
 */
const number = (text: string | null): number | undefined =>
  text !== null && /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : undefined

/** Longest accepted delay. */
const longestMillis = 60 * 60 * 1000

const at = (text: string | null, now: number): number | undefined => {
  if (text === null) return undefined
  const seconds = number(text)
  // Large numbers are epoch seconds; small ones are delays.
  if (seconds !== undefined) return seconds > 1_000_000_000 ? seconds * 1000 : now + seconds * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : date
}

/** Returns the earliest time for the next request, or undefined if it may be sent now. */
export const quietUntil = (status: number, headers: Headers, now: number): Date | undefined => {
  const remaining = number(headers.get("x-ratelimit-remaining") ?? headers.get("ratelimit-remaining"))
  const refused = status === 429
  if (!refused && remaining !== 0 && !(status === 503 && headers.has("retry-after"))) return undefined
  const told =
    at(headers.get("retry-after"), now) ?? at(headers.get("x-ratelimit-reset") ?? headers.get("ratelimit-reset"), now)
  if (told === undefined) return refused ? new Date(now + 60_000) : undefined
  return told <= now ? undefined : new Date(Math.min(told, now + longestMillis))
}
