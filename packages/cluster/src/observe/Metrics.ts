/**
 * Metrics of the process. A series is a plain object that its owner updates in tens of nanoseconds; an update through the
 * library costs a microsecond. Each series is registered in the library's registry, from which scrapes read it. Labels have
 * few values (route patterns, outcomes) and never values from callers, so no metric is per Identity, Org or address.
 */
import { Context, Effect, Metric, type Scope } from "effect"

/** Largest number of series in a family. Further ones are counted as `other`. */
const mostSeries = 500
const other = "other"

interface Family {
  readonly name: string
  readonly help: string
  readonly type: "counter" | "gauge" | "histogram" | "summary"
  readonly labels: ReadonlyArray<string>
}

const declared = new Map<string, Family>()

/** Returns all families that the loaded modules have declared. */
export const families = (): ReadonlyArray<Family> => [...declared.values()]

const declare = (family: Family): Family => {
  declared.set(family.name, family)
  return family
}

/** The registry of the process, independent of the fiber's context. */
const registry = Context.empty()

type Attributes = Record<string, string>
const attributesOf = ({ labels }: Family, values: ReadonlyArray<string>): Attributes =>
  Object.fromEntries(labels.map((label, at) => [label, values[at] ?? ""]))

/** Returns a lookup of a family's series by label values, which creates missing ones. */
const seriesOf = <A>(family: Family, make: (attributes: Attributes) => A) => {
  const root = new Map<string, unknown>()
  const depth = family.labels.length
  let size = 0
  const find = (values: ReadonlyArray<string>): A => {
    let at = root
    for (let level = 0; level < depth - 1; level++) {
      let next = at.get(values[level]!) as Map<string, unknown> | undefined
      if (next === undefined) at.set(values[level]!, (next = new Map()))
      at = next
    }
    const last = values[depth - 1] ?? ""
    const known = at.get(last)
    if (known !== undefined) return known as A
    if (++size > mostSeries && last !== other) return find(values.map(() => other))
    const created = make(attributesOf(family, values))
    at.set(last, created)
    return created
  }
  return find
}

interface Count {
  n: number
}

interface Counter<Values extends ReadonlyArray<string>> {
  /** Returns the series of label values. Store it if the values are known beforehand. */
  readonly of: (...values: Values) => Count
}

const noHooks = { update: () => {}, modify: () => {} }

/** Declares a counter. `present` are label values that a scrape shows from the beginning, as 0. */
export const counter = <const Labels extends ReadonlyArray<string>>(
  name: string,
  help: string,
  labels: Labels,
  present: ReadonlyArray<{ readonly [K in keyof Labels]: string }> = [],
): Counter<{ readonly [K in keyof Labels]: string }> => {
  const family = declare({ name, help, type: "counter", labels })
  const find = seriesOf(family, (attributes): Count => {
    const count = { n: 0 }
    Metric.registerUnsafe(Metric.counter(name, { description: help, attributes, incremental: true }), registry, {
      get: () => ({ count: count.n, incremental: true }),
      ...noHooks,
    })
    return count
  })
  if (labels.length === 0) find([])
  for (const values of present) find(values as ReadonlyArray<string>)
  return { of: (...values) => find(values as ReadonlyArray<string>) }
}

/** Declares a counter that is maintained elsewhere, such as by the kernel, and read at each scrape while the scope is open. */
export const readCounter = (name: string, help: string) => {
  declare({ name, help, type: "counter", labels: [] })
  const metric = Metric.counter(name, { description: help, incremental: true })
  return (value: () => number): Effect.Effect<void, never, Scope.Scope> =>
    scopedAs(() =>
      Metric.registerUnsafe(metric, registry, { get: () => ({ count: value(), incremental: true }), ...noHooks }),
    )
}

/** Declares a summary whose quantiles, sum and count are computed elsewhere. */
export const readSummary = (name: string, help: string, quantiles: ReadonlyArray<number>) => {
  declare({ name, help, type: "summary", labels: ["quantile"] })
  const metric = Metric.summary(name, { description: help, maxAge: 0, maxSize: 1, quantiles })
  return (
    state: () => Pick<Metric.SummaryState, "quantiles" | "sum" | "count">,
  ): Effect.Effect<void, never, Scope.Scope> =>
    scopedAs(() => Metric.registerUnsafe(metric, registry, { get: () => ({ min: 0, max: 0, ...state() }), ...noHooks }))
}

const scopedAs = (register: () => { readonly remove: () => void }) =>
  Effect.asVoid(Effect.acquireRelease(Effect.sync(register), (registration) => Effect.sync(registration.remove)))

interface Observations {
  readonly observe: (value: number) => void
}

interface Histogram<Values extends ReadonlyArray<string>> {
  readonly of: (...values: Values) => Observations
}

/** Histogram bounds for response times in seconds. */
export const seconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

class Buckets implements Observations {
  n = 0
  sum = 0
  private readonly counts: Float64Array
  private readonly bounds: ReadonlyArray<number>

  constructor(bounds: ReadonlyArray<number>) {
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length)
  }

  observe(value: number): void {
    this.n++
    this.sum += value
    const { bounds, counts } = this
    for (let at = 0; at < bounds.length; at++) {
      if (value <= bounds[at]!) {
        counts[at]!++
        return
      }
    }
  }

  state() {
    let sum = 0
    const buckets = this.bounds.map((bound, at): [number, number] => [bound, (sum += this.counts[at]!)])
    return { buckets, count: this.n, sum: this.sum, min: 0, max: 0 }
  }
}

export const histogram = <const Labels extends ReadonlyArray<string>>(
  name: string,
  help: string,
  bounds: ReadonlyArray<number>,
  labels: Labels,
): Histogram<{ readonly [K in keyof Labels]: string }> => {
  const family = declare({ name, help, type: "histogram", labels })
  const find = seriesOf(family, (attributes) => {
    const buckets = new Buckets(bounds)
    Metric.registerUnsafe(Metric.histogram(name, { description: help, attributes, boundaries: bounds }), registry, {
      get: () => buckets.state(),
      ...noHooks,
    })
    return buckets
  })
  if (labels.length === 0) find([])
  return { of: (...values) => find(values as ReadonlyArray<string>) }
}

interface Gauge<Values extends ReadonlyArray<string>> {
  /** Reads the value at each scrape, until the registration is removed. */
  readonly read: (values: Values, value: () => number) => { readonly remove: () => void }
  /** Reads the value at each scrape, until the scope closes. */
  readonly scoped: (values: Values, value: () => number) => Effect.Effect<void, never, Scope.Scope>
  readonly set: (values: Values, value: number) => void
  /** Removes all series that were set, because another process reports them now. */
  readonly clear: () => void
}

/** Declares a gauge. */
export const gauge = <const Labels extends ReadonlyArray<string>>(
  name: string,
  help: string,
  labels: Labels,
): Gauge<{ readonly [K in keyof Labels]: string }> => {
  const family = declare({ name, help, type: "gauge", labels })
  const written = new Map<string, { value: number; readonly remove: () => void }>()
  const register = (values: ReadonlyArray<string>, value: () => number) =>
    Metric.registerUnsafe(
      Metric.gauge(name, { description: help, attributes: attributesOf(family, values) }),
      registry,
      {
        get: () => ({ value: value() }),
        ...noHooks,
      },
    )
  const read: Gauge<{ readonly [K in keyof Labels]: string }>["read"] = (values, value) =>
    register(values as ReadonlyArray<string>, value)
  return {
    read,
    scoped: (values, value) => scopedAs(() => read(values, value)),
    set: (values, value) => {
      const key = (values as ReadonlyArray<string>).join("\n")
      const known = written.get(key)
      if (known !== undefined) known.value = value
      else {
        const { remove } = register(values as ReadonlyArray<string>, () => written.get(key)?.value ?? Number.NaN)
        written.set(key, { value, remove })
      }
    },
    clear: () => {
      for (const { remove } of written.values()) remove()
      written.clear()
    },
  }
}
