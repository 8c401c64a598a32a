/** A small line of activity in a row of a list. Its text says the same. */
import { number } from "../texts/Texts.ts"
import { say } from "./texts.ts"
import "./charts.css"

interface SparklineProps {
  /** One value per day, oldest first. */
  readonly values: ReadonlyArray<number>
}

export const Sparkline = ({ values }: SparklineProps) => {
  const total = values.reduce((sum, value) => sum + value, 0)
  const top = Math.max(1, ...values)
  const last = values.length - 1
  const text = say("activity", { total: number(total), days: values.length })
  return (
    <span class="sparkline" title={text}>
      <svg viewBox={`0 0 ${last} 20`} preserveAspectRatio="none" aria-hidden="true">
        <path d={values.map((value, day) => `${day === 0 ? "M" : "L"}${day} ${19 - (value / top) * 18}`).join("")} />
      </svg>
      <span class="hidden-text">{text}</span>
    </span>
  )
}
