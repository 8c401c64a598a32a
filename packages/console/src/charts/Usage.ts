/** Reads the activity of a period. The service lists only steps with activity; charts have every step. */
import type { Answer } from "../client/Client.ts"
import { useCall } from "../client/Queries.ts"
import { query } from "../router/Router.ts"
import { clock, utcDay } from "../texts/Texts.ts"

type Usage = Answer<"GET /api/usage">
type UsageSeries = Usage["series"][number]
export type Metric = UsageSeries["metric"]

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

/** Returns the values of a series at these times; null where it has none. */
export const valuesAt = (
  starts: ReadonlyArray<number>,
  series: Pick<UsageSeries, "points"> | undefined,
): ReadonlyArray<number | null> => {
  const values = new Map(series?.points.map(({ at, value }) => [Date.parse(at), value]))
  return starts.map((at) => values.get(at) ?? null)
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
  return {
    usage,
    times: starts.map((at) => timeText(step, at)),
    /** Returns the value of each step, of a Webhook if one is named; null for a step without one. */
    values: (metric: Metric, webhook?: string) =>
      valuesAt(
        starts,
        usage.data?.series.find((one) => one.metric === metric && one.webhook_id === webhook),
      ),
  }
}

/** Days of the activity in lists. */
const activityDays = 30

/** Returns the activity per day of each Identity; undefined until it has loaded. */
export const useActivity = () => {
  const { data } = useCall("GET /api/usage", { query: { step: "day", by: "identity" } }, { every: () => 60_000 })
  if (data === undefined) return undefined
  const starts = startsOf("day", activityDays, data)
  const found = new Map(data.series.flatMap((one) => (one.metric === "activity" ? [[one.identity, one]] : [])))
  return (handle: string) => valuesAt(starts, found.get(handle)).map((value) => value ?? 0)
}
