/** What `npm run bench` and `npm run faults` print: a table for people, and a line of JSON per row for machines. */

export interface Row {
  readonly id: string
  readonly ok: boolean
  /** What was done, or what was measured against what. */
  readonly what: string
  readonly figures: Readonly<Record<string, string | number | boolean>>
}

export const print = (rows: ReadonlyArray<Row>) => {
  const width = Math.max(...rows.map(({ id }) => id.length))
  console.log("")
  for (const row of rows) {
    console.log(`${row.ok ? "  " : "! "}${row.id.padEnd(width)}  ${row.what}`)
    console.log(
      `${" ".repeat(width + 4)}${Object.entries(row.figures)
        .map(([name, value]) => `${name} ${value}`)
        .join(" · ")}`,
    )
  }
  console.log("")
  for (const row of rows) console.log(JSON.stringify(row))
}

/** Runs the rows named on the command line, or all; leaves with 1 when one of them was not ok. */
export const run = async (rows: Readonly<Record<string, () => Promise<Row>>>) => {
  const wanted = process.argv.slice(2)
  const done: Array<Row> = []
  for (const [id, row] of Object.entries(rows)) {
    if (wanted.length > 0 && !wanted.some((name) => id === name || id.startsWith(`${name}-`))) continue
    process.stderr.write(`${id} ...\n`)
    done.push(
      await row().catch((error: unknown): Row => ({
        id,
        ok: false,
        what: "could not be run",
        figures: { error: String(error) },
      })),
    )
  }
  print(done)
  process.exit(done.every(({ ok }) => ok) ? 0 : 1)
}

export const percentile = (values: ReadonlyArray<number>, share: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const round = (value: number, digits = 2) => Number(value.toFixed(digits))
