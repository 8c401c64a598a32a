/** Counters of this process, for tests that judge what was counted. */
import { isDeepStrictEqual } from "node:util"
import { Effect, Metric } from "effect"
import { waitUntil } from "./Actors.ts"

/** Returns the values of a counter by the values of its labels, joined by a space. */
export const countsOf = (counter: string, ...labels: ReadonlyArray<string>) =>
  Effect.map(
    Metric.snapshot,
    (metrics) =>
      new Map(
        metrics.flatMap(({ id, attributes, state }) =>
          id === counter
            ? [
                [
                  labels.map((label) => attributes?.[label]).join(" "),
                  Number((state as { readonly count: number }).count),
                ],
              ]
            : [],
        ),
      ),
  )

/** Waits until these counts have grown by these numbers since `before`. */
export const countsGrow = (
  counts: ReturnType<typeof countsOf>,
  before: ReadonlyMap<string, number>,
  grown: Readonly<Record<string, number>>,
) =>
  waitUntil(
    Effect.map(counts, (now) =>
      Object.fromEntries(Object.keys(grown).map((key) => [key, (now.get(key) ?? 0) - (before.get(key) ?? 0)])),
    ),
    (found) => isDeepStrictEqual(found, grown),
    0,
  )
