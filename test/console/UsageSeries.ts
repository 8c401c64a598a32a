/** Series of activity as `GET /api/usage` responds with them. */

type Point = { readonly at: string } & { readonly [metric: string]: number | string }

/** Returns a series of each metric that these points have. Their other members belong to each series. */
export const seriesOf = (points: ReadonlyArray<Point>, of: object = {}): ReadonlyArray<object> => {
  const metrics = new Set(points.flatMap((point) => Object.keys(point)).filter((name) => name !== "at"))
  return [...metrics].map((metric) => ({
    metric,
    ...of,
    points: points.flatMap(({ at, [metric]: value }) => (value === undefined ? [] : [{ at, value }])),
  }))
}
