/** Reads the activity of a period. The service lists only steps with activity; charts have every step. */
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { query } from "../router/Router.ts"
import { clock, utcDay } from "../texts/Texts.ts"

type Usage = Answer<"GET /api/usage">
export type Point = Usage["points"][number]

/** The charts of a page. */
export interface UsageOf {
  readonly of: "mail" | "deliveries" | "tunnel" | "limits"
  readonly handle?: string
  /** The Webhook of `deliveries`. */
  readonly webhook?: string
}

/** The periods that a person can choose, with the step of their charts. A week is the end of a month. */
export const spans = {
  day: { step: "hour", steps: 24 },
  week: { step: "day", steps: 7 },
  month: { step: "day", steps: 30 },
} as const
export type Span = keyof typeof spans

const millisOf = { hour: 3_600_000, day: 86_400_000 } as const

/** Counts are stored every few seconds, and nothing announces them. */
const refetchMillis = 15_000

export const spanShown = (): Span => {
  const name = query.value.get("span")
  return name === "day" || name === "week" ? name : "month"
}

export const timeText = (step: keyof typeof millisOf, at: number) =>
  step === "hour" ? clock(new Date(at)) : utcDay(new Date(at))

/** Returns the starts of the last `steps` steps of the period of a response, or of the current time without one. */
export const startsOf = (step: keyof typeof millisOf, steps: number, usage: Pick<Usage, "ends_at"> | undefined) => {
  const size = millisOf[step]
  const end = usage === undefined ? Math.ceil(Date.now() / size) * size : Date.parse(usage.ends_at)
  return Array.from({ length: steps }, (_, index) => end - (steps - index) * size)
}

/** Reads the activity of an Identity, or of the whole account. */
export const useUsage = (span: Span, handle: string | undefined) => {
  const { step, steps } = spans[span]
  const usage = useCall(
    "GET /api/usage",
    { query: { step, ...(handle === undefined ? {} : { identity: handle }) } },
    { every: () => refetchMillis },
  )
  const starts = startsOf(step, steps, usage.data)
  const points = new Map(usage.data?.points.map((point) => [Date.parse(point.at), point]))
  return {
    usage,
    starts,
    times: starts.map((at) => timeText(step, at)),
    /** The activity of each step; undefined for a step without any. */
    points: starts.map((at) => points.get(at)),
  }
}

/** Days of the activity in lists. */
const activityDays = 30

/** Returns the activity per day of each Identity; undefined until it has loaded. */
export const useActivity = () => {
  const { data } = useCall("GET /api/usage", { query: { step: "day", by: "identity" } }, { every: () => 60_000 })
  if (data === undefined) return undefined
  const starts = startsOf("day", activityDays, data)
  const found = new Map<string, Map<number, number>>()
  for (const { identity, at, activity } of data.identities) {
    const days = found.get(identity) ?? new Map<number, number>()
    days.set(Date.parse(at), activity)
    found.set(identity, days)
  }
  return (handle: string) => starts.map((at) => found.get(handle)?.get(at) ?? 0)
}
