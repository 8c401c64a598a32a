import { now } from "../client/Clock.ts"
import { ago, dateTime, moment } from "../texts/Texts.ts"

/** When something was, as people say it; the exact time stands behind it. */
export const Time = ({ at, form = "ago" }: { readonly at: string; readonly form?: "ago" | "moment" | "full" }) => {
  const date = new Date(at)
  const exact = dateTime(date)
  return (
    <time dateTime={at} title={exact}>
      {form === "full"
        ? exact
        : form === "moment"
          ? moment(date, new Date(now.value))
          : // What was this very moment is not in the future of a clock that ticks every ten seconds.
            ago(date, Math.max(now.value, Math.min(date.getTime(), Date.now())))}
    </time>
  )
}
