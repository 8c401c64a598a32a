/** Prints the rows of `npm run bench` and `npm run faults` for people, and lines of JSON for machines. */

export interface Row {
  readonly id: string
  readonly ok: boolean
  /** The action, or the compared subjects. */
  readonly what: string
  readonly figures: Readonly<Record<string, string | number | boolean>>
  readonly goals?: ReadonlyArray<Goal>
  /** Why the figures are unreliable in this run; empty if they can be trusted. */
  readonly unreliable?: ReadonlyArray<string>
  /** Additional lines below the figures. */
  readonly details?: ReadonlyArray<string>
}

/** A target. Missing it is reported and does not fail the row. */
export interface Goal {
  readonly what: string
  readonly value: number
  readonly atMost?: number
  readonly atLeast?: number
}

const judged = ({ what, value, atMost, atLeast }: Goal) => {
  const reached = value <= (atMost ?? Number.POSITIVE_INFINITY) && value >= (atLeast ?? Number.NEGATIVE_INFINITY)
  const goal = atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`
  return { what, value, goal, verdict: reached ? "reached" : "missed" }
}

/** Wraps texts to lines of readable length. */
const wrapped = (texts: ReadonlyArray<string>) =>
  texts.reduce<Array<string>>((lines, text) => {
    const last = lines.at(-1)
    if (last === undefined || last.length + text.length > 116) lines.push(text)
    else lines[lines.length - 1] = `${last} · ${text}`
    return lines
  }, [])

export const print = (row: Row) => {
  const { unreliable = [], goals = [], details = [] } = row
  console.log(`${row.ok ? "  " : "! "}${row.id}: ${row.what}`)
  if (unreliable.length > 0) console.log(`    unreliable: ${unreliable.join(", ")}`)
  for (const { what, value, goal, verdict } of goals.map(judged)) {
    console.log(`    ${verdict}: ${what} ${value}, goal ${goal}`)
  }
  const figures = Object.entries(row.figures).map(([name, value]) => `${name} ${value}`)
  for (const line of wrapped(figures)) console.log(`    ${line}`)
  for (const detail of details) console.log(`      ${detail}`)
}

/** Runs the named rows, or all, prints each when it ends, and finally prints a line of JSON per row. */
export const perform = async (
  rows: Readonly<Record<string, () => Promise<Row>>>,
  wanted: ReadonlyArray<string>,
): Promise<boolean> => {
  const done: Array<Row> = []
  for (const [id, row] of Object.entries(rows)) {
    if (wanted.length > 0 && !wanted.some((name) => id === name || id.startsWith(`${name}-`))) continue
    process.stderr.write(`${id} ...\n`)
    const ended = await row().catch((error: unknown): Row => ({
      id,
      ok: false,
      what: "failed to run",
      figures: { error: String(error) },
    }))
    print(ended)
    done.push(ended)
  }
  console.log("")
  for (const { goals = [], ...row } of done) console.log(JSON.stringify({ ...row, goals: goals.map(judged) }))
  return done.every(({ ok }) => ok)
}

/** Runs the rows named on the command line, or all, and exits with 1 if one failed. */
export const run = async (rows: Readonly<Record<string, () => Promise<Row>>>) =>
  process.exit((await perform(rows, process.argv.slice(2))) ? 0 : 1)

export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const round = (value: number, digits = 2) => Number(value.toFixed(digits))
