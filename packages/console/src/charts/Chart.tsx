/**
 * Charts as SVG without a library: stacked bars or lines over equal steps of time. Every chart names its values to a screen
 * reader step by step (arrow keys), shows those of the step under the pointer in its legend, and has the same data as a table.
 */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { Table } from "../ui/Table.tsx"
import { say } from "./texts.ts"
import "./charts.css"

export interface Series {
  readonly label: string
  readonly tone: "main" | "second" | "bad"
  /** One value per step; null where nothing was measured. */
  readonly values: ReadonlyArray<number | null>
  /** The value of the whole period, as text. */
  readonly whole: string
}

interface ChartProps {
  readonly title: string
  readonly kind: "bars" | "lines"
  /** The time of each step, as text. */
  readonly times: ReadonlyArray<string>
  readonly series: ReadonlyArray<Series>
  readonly format: (value: number) => string
  /** Rounds the highest value up to the top of the scale. */
  readonly roundUp?: (value: number) => number
  /** A horizontal line with its name. */
  readonly limit?: { readonly value: number; readonly label: string } | undefined
  /** Whether the data has arrived. */
  readonly isReady: boolean
}

/** Height of the drawing in its own units; the browser stretches it to the size of its box. */
const height = 100

/** Returns the next round number: 1, 2 or 5 times a power of ten. */
const roundedUp = (value: number) => {
  if (value <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5].find((step) => step * power >= value) ?? 10) * power
}

/** Returns the next round number of B, KiB, MiB or a larger unit. */
export const roundedUpBytes = (value: number) => {
  const unit = value < 1024 ? 1 : 1024 ** Math.floor(Math.log2(value) / 10)
  return unit * Math.min(1024, roundedUp(value / unit))
}

const topOf = ({ kind, series, times, limit, roundUp = roundedUp }: ChartProps) => {
  const heights = times.map((_, index) => {
    const values = series.map(({ values }) => values[index] ?? 0)
    return kind === "bars" ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values)
  })
  return roundUp(Math.max(limit?.value ?? 0, ...heights))
}

/** Returns the path of a line with gaps where values are missing; a value between two gaps is a short dash. */
export const linePath = (values: ReadonlyArray<number | null>, top: number) => {
  let path = ""
  values.forEach((value, index) => {
    if (value === null) return
    const y = Math.round(height * (1 - value / top) * 100) / 100
    const isFirst = (values[index - 1] ?? null) === null
    const isLast = (values[index + 1] ?? null) === null
    path += isFirst && isLast ? `M${index + 0.2} ${y}H${index + 0.8}` : `${isFirst ? "M" : "L"}${index + 0.5} ${y}`
  })
  return path
}

interface Drawn {
  readonly series: ReadonlyArray<Series>
  readonly steps: number
  readonly top: number
}

const Bars = ({ series, steps, top }: Drawn) => {
  const ends = Array.from({ length: steps }, () => height)
  return (
    <>
      {series.map(({ label, tone, values }) => (
        <path
          key={label}
          data-tone={tone}
          d={values
            .map((value, index) => {
              const size = ((value ?? 0) / top) * height
              if (size === 0) return ""
              ends[index]! -= size
              return `M${index + 0.14} ${ends[index]}h.72v${size}h-.72z`
            })
            .join("")}
        />
      ))}
    </>
  )
}

const Lines = ({ series, top }: Drawn) => (
  <>
    {series.map(({ label, tone, values }) => (
      <path key={label} class="line" data-tone={tone} d={linePath(values, top)} />
    ))}
  </>
)

const Legend = ({ children }: { readonly children: ComponentChildren }) => <ul class="legend">{children}</ul>

export const Chart = (props: ChartProps) => {
  const { title, kind, times, series, format, limit, isReady } = props
  const steps = times.length
  const [chosen, choose] = useState<number>()
  const [isTable, setTable] = useState(false)
  const at = chosen === undefined || chosen >= steps ? undefined : chosen
  const top = topOf(props)
  const textOf = ({ values }: Series, index: number) => {
    const value = values[index] ?? null
    return value === null ? "–" : format(value)
  }
  const isEmpty = isReady && series.every(({ values }) => values.every((value) => value === null || value === 0))
  const spoken = at ?? steps - 1

  const move = (event: KeyboardEvent) => {
    const next = { ArrowLeft: spoken - 1, ArrowRight: spoken + 1, Home: 0, End: steps - 1 }[event.key]
    if (event.key === "Escape") choose(undefined)
    if (next === undefined) return
    event.preventDefault()
    choose(Math.max(0, Math.min(steps - 1, next)))
  }
  const point = ({ currentTarget, clientX }: PointerEvent & { readonly currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    choose(Math.max(0, Math.min(steps - 1, Math.floor(((clientX - left) / width) * steps))))
  }

  return (
    <div class="chart">
      <div class="bar spread">
        <h3>{title}</h3>
        <span class="muted small number">{at === undefined ? null : times[at]}</span>
      </div>
      <div class="scale muted small number" aria-hidden="true">
        {format(top)}
      </div>
      <div
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={title}
        aria-readonly="true"
        aria-valuemin={1}
        aria-valuemax={steps}
        aria-valuenow={spoken + 1}
        aria-valuetext={`${times[spoken] ?? ""}: ${series.map((one) => `${one.label} ${textOf(one, spoken)}`).join(", ")}`}
        onKeyDown={move}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => choose(undefined)}
        onBlur={() => choose(undefined)}
      >
        <svg viewBox={`0 0 ${steps} ${height}`} preserveAspectRatio="none" aria-hidden="true">
          <path class="grid" d={`M0 0H${steps}M0 ${height / 2}H${steps}M0 ${height}H${steps}`} />
          {at === undefined ? null : <rect class="cursor" x={at} y={0} width={1} height={height} />}
          {kind === "bars" ? (
            <Bars series={series} steps={steps} top={top} />
          ) : (
            <Lines series={series} steps={steps} top={top} />
          )}
          {limit === undefined ? null : <path class="limit" d={`M0 ${height * (1 - limit.value / top)}H${steps}`} />}
        </svg>
        {isEmpty ? <span class="nothing muted small">{say("nothing")}</span> : null}
      </div>
      <div class="bar spread muted small number" aria-hidden="true">
        <span>{times[0]}</span>
        <span>{times[steps - 1]}</span>
      </div>
      <div class="bar spread">
        <Legend>
          {series.map((one) => (
            <li key={one.label}>
              <i data-tone={one.tone} />
              {one.label} <strong class="number">{at === undefined ? one.whole : textOf(one, at)}</strong>
            </li>
          ))}
          {limit === undefined ? null : (
            <li>
              <i data-tone="limit" />
              {limit.label} <strong class="number">{format(limit.value)}</strong>
            </li>
          )}
        </Legend>
        <button
          type="button"
          class="link"
          aria-expanded={isTable}
          aria-label={`${say(isTable ? "hide_table" : "as_table")}: ${title}`}
          onClick={() => setTable(!isTable)}
        >
          {say(isTable ? "hide_table" : "as_table")}
        </button>
      </div>
      {isTable ? (
        <Table label={title} heads={[say("time"), ...series.map(({ label }) => label)]}>
          {times
            .map((time, index) => (
              // When a clock is set back, two hours have the same text.
              <tr key={index}>
                <td>{time}</td>
                {series.map((one) => (
                  <td key={one.label} class="number">
                    {textOf(one, index)}
                  </td>
                ))}
              </tr>
            ))
            .toReversed()}
        </Table>
      ) : null}
    </div>
  )
}
