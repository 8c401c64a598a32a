import { now } from "../client/Clock.ts"
import { ago, dateTime, moment } from "../texts/Texts.ts"

/** When something was, as people say it; the exact time is there for who points at it, and not worded before. */
export const Time = ({ at, form = "ago" }: { readonly at: string; readonly form?: "ago" | "moment" | "full" }) => {
  const date = new Date(at)
  return (
    <time dateTime={at} onPointerEnter={({ currentTarget }) => (currentTarget.title = dateTime(date))}>
      {form === "full"
        ? dateTime(date)
        : form === "moment"
          ? moment(date, new Date(now.value))
          : // What was this very moment is not in the future of a clock that ticks every ten seconds.
            ago(date, Math.max(now.value, Math.min(date.getTime(), Date.now())))}
    </time>
  )
}
