import { now } from "../client/Clock.ts"
import { ago, dateTime, moment } from "../texts/Texts.ts"

/** A date or time; pointing at it shows the exact time. */
export const Time = ({ at, form = "ago" }: { readonly at: string; readonly form?: "ago" | "moment" | "full" }) => {
  const date = new Date(at)
  return (
    <time dateTime={at} onPointerEnter={({ currentTarget }) => (currentTarget.title = dateTime(date))}>
      {form === "full"
        ? dateTime(date)
        : form === "moment"
          ? moment(date, new Date(now.value))
          : // The clock ticks every ten seconds, so that a current time could seem to be in the future.
            ago(date, Math.max(now.value, Math.min(date.getTime(), Date.now())))}
    </time>
  )
}
