/**
 * Measures alternatives in turn, in slices of about one second, because the speed of a machine drifts by more than the
 * differences of interest. Interference only adds CPU time, so the minimum is reported next to the median.
 */
import { Record } from "effect"
import { type Goal, percentile, round } from "../harness/Report.ts"
import type { Drive } from "./Load.ts"
import { family, measurable, meter } from "./Processes.ts"

export interface Subject {
  readonly drive: Drive
  /** Prepares each slice; its time is not measured. */
  readonly prepare?: () => Promise<unknown>
  /** The process whose CPU time is measured. */
  readonly pid?: number
  /** The PostgreSQL server behind it. */
  readonly postmaster?: number
}

interface Slice {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly wrong: number
  readonly done: number
  /** Microseconds per call. */
  readonly cpu: number
  readonly postgres: number
}

export interface Figure {
  readonly least: number
  readonly median: number
  /** Spread of the slices: the maximum divided by the minimum, minus one. */
  readonly spread: number
}

export interface Measured {
  readonly perSecond: Figure
  readonly p50: number
  readonly p99: number
  readonly wrong: number
  readonly done: number
  /** Undefined if it cannot be measured, without /proc or a separate process. */
  readonly cpu: Figure | undefined
  readonly postgres: Figure | undefined
}

const slice = async ({ drive, prepare, pid, postmaster }: Subject, seconds: number): Promise<Slice> => {
  await prepare?.()
  const service = measurable && pid !== undefined ? meter(() => [pid]) : undefined
  const store = measurable && postmaster !== undefined ? meter(() => family(postmaster)) : undefined
  const load = await drive(seconds)
  if (load.wrong > load.done / 2)
    throw new Error(`${load.wrong} of ${load.done} answers were wrong: nothing is measured`)
  const each = (nanos: number | undefined) => (nanos ?? Number.NaN) / 1000 / Math.max(1, load.done)
  return {
    perSecond: load.done / load.seconds,
    p50: load.p50,
    p99: load.p99,
    wrong: load.wrong,
    done: load.done,
    cpu: each(service?.()),
    postgres: each(store?.()),
  }
}

const agree = (one: number, other: number) => Math.abs(one - other) <= 0.1 * Math.max(one, other)

/** Repeats slices until two successive ones agree, or a maximum number of times. */
const warm = async (subject: Subject, seconds: number) => {
  let last = Number.NaN
  for (let i = 0; i < 4; i++) {
    const { perSecond } = await slice(subject, seconds)
    if (agree(perSecond, last)) return
    last = perSecond
  }
}

const figure = (values: ReadonlyArray<number>): Figure => ({
  least: Math.min(...values),
  median: percentile(values, 0.5),
  spread: Math.max(...values) / Math.min(...values) - 1,
})

const summed = (slices: ReadonlyArray<Slice>): Measured => {
  const all = (name: keyof Slice) => slices.map((one) => one[name])
  const known = (name: keyof Slice) => (slices.some((one) => Number.isNaN(one[name])) ? undefined : figure(all(name)))
  return {
    perSecond: figure(all("perSecond")),
    p50: round(percentile(all("p50"), 0.5)),
    p99: round(percentile(all("p99"), 0.5)),
    wrong: all("wrong").reduce((sum, n) => sum + n, 0),
    done: all("done").reduce((sum, n) => sum + n, 0),
    cpu: known("cpu"),
    postgres: known("postgres"),
  }
}

/** Warms up each subject, then measures them in turn, round after round. */
export const inTurn = async <Name extends string>(
  subjects: Record.ReadonlyRecord<Name, Subject>,
  { rounds = 6, seconds = 1 }: { readonly rounds?: number; readonly seconds?: number } = {},
): Promise<Record.ReadonlyRecord<Name, Measured>> => {
  const slices = Record.map(subjects, () => Array<Slice>())
  for (const subject of Object.values<Subject>(subjects)) await warm(subject, seconds)
  for (let i = 0; i < rounds; i++) {
    for (const name in subjects) slices[name].push(await slice(subjects[name], seconds))
  }
  return Record.map(slices, summed)
}

/** Spread of a reference's slices above which a comparison with it is unreliable. */
const steady = 0.15

/** Returns why a comparison with these references is unreliable; empty if it is reliable. */
export const drift = (references: {
  readonly cpu?: Record.ReadonlyRecord<string, Measured>
  readonly rate?: Record.ReadonlyRecord<string, Measured>
}): ReadonlyArray<string> => {
  const spreads = [
    ...Object.entries(references.cpu ?? {}).map(([name, { cpu }]) => [name, "CPU", cpu?.spread ?? 0] as const),
    ...Object.entries(references.rate ?? {}).map(
      ([name, { perSecond }]) => [name, "calls/s", perSecond.spread] as const,
    ),
  ]
  return spreads
    .filter(([, , spread]) => spread > steady)
    .map(([name, what, spread]) => `the slices of ${name} spread by ${Math.round(spread * 100)} % (${what})`)
}

/** Returns the CPU cost of a call in multiples of the reference's, by the minimum of both. */
export const costOf = (what: string, ours: Measured, reference: Measured, atMost: number): ReadonlyArray<Goal> =>
  ours.cpu === undefined || reference.cpu === undefined
    ? []
    : [{ what, value: round(ours.cpu.least / reference.cpu.least), atMost }]

/** Returns the throughput relative to the reference, by the medians. */
export const shareOf = (ours: Measured, reference: Measured, digits = 2) =>
  round(ours.perSecond.median / reference.perSecond.median, digits)

/** Returns the figures of a subject: calls per second, and CPU time if known. */
export const figuresOf = (
  name: string,
  { perSecond, cpu, postgres }: Measured,
): Record.ReadonlyRecord<string, number> => ({
  [`${name}/s`]: Math.round(perSecond.median),
  ...(cpu === undefined
    ? {}
    : { [`${name} CPU us`]: Math.round(cpu.least), [`${name} CPU us median`]: Math.round(cpu.median) }),
  ...(postgres === undefined
    ? {}
    : {
        [`${name} PostgreSQL us`]: Math.round(postgres.least),
        [`${name} PostgreSQL us median`]: Math.round(postgres.median),
      }),
})
