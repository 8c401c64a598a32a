/** The small changes that `npm run changes` makes. */
import { stripTypeScriptTypes } from "node:module"
import { afterEach, expect, it } from "vitest"
import { type Change, changesOf, hook, planted } from "./SmallChanges.ts"

let active: number | undefined
Object.assign(globalThis, { [hook]: (change: number) => change === active })
afterEach(() => (active = undefined))

/** Evaluates the source with each change in turn: what the function `it` returns without one, and with each. */
const results = (source: string) => {
  const all: Array<readonly [string, unknown]> = []
  let open: ReadonlyArray<Change> = changesOf(source)
  let first = 0
  while (open.length > 0) {
    const { text, taken, others } = planted(source, open, first)
    // The changed source defines the function `it`.
    const it = new Function("sql", "Effect", `${stripTypeScriptTypes(text)}\nreturn it`)(
      (parts: ReadonlyArray<string>, ...values: ReadonlyArray<unknown>) =>
        parts.reduce((whole, part, at) => `${whole}${values[at - 1]}${part}`),
      { retry: (times: number) => (value: string) => `${value}, retried ${times} times` },
    ) as () => unknown
    active = undefined
    if (first === 0) all.push(["", it()])
    taken.forEach((change, at) => {
      active = first + at
      all.push([`${change.line}: ${change.what}`, it()])
    })
    first += taken.length
    open = others
  }
  return Object.fromEntries(all)
}

it("changes operators, limits, conditions and steps, each alone", () => {
  const source = `
const top = 7
const it = () => [1, 5].filter((n: number): boolean => n < top - 2).map((n) => n.valueOf())`
  expect(results(source)).toEqual({
    "": [1],
    "3: without .filter": [1, 5],
    "3: < -> <=": [1, 5],
    "3: - -> +": [1, 5],
    "3: 1 -> 2": [2],
    "3: 5 -> 6": [1],
    "3: 2 -> 3": [1],
  })
})

it("leaves out statements, also before an else, and the sides of conditions", () => {
  const source = `
const it = () => {
  let text = ""
  if (!text && true) text += "a"
  else text += "b"
  return Math.max(text.length, 0) === 1 ? text : null
}`
  expect(results(source)).toEqual({
    "": "a",
    "4: if (true)": "a",
    "4: if (false)": "b",
    "4: without the right side of &&": "a",
    "4: without the left side of &&": "a",
    "4: without !": "b",
    "4: true -> false": "b",
    "4: without the statement": null,
    "5: without the statement": "a",
    "6: === -> !==": null,
    "6: 1 -> 2": null,
    "6: 0 -> 1": "a",
    "6: max -> min": null,
    "6: always the first": "a",
    "6: always the second": null,
  })
})

it("leaves out conditions and locks of SQL, and stages of a pipe", () => {
  const source = `
const pipe = (value, step) => step(value)
const it = () => pipe(sql\`select a from b where c = \${"d"}
  and e > 5 for update\`, Effect.retry(3))`
  const whole = "select a from b where c = d\n  and e > 5 for update"
  expect(results(source)).toEqual({
    "": `${whole}, retried 3 times`,
    '4: without "and e > 5 for update"': "select a from b where c = d, retried 3 times",
    "4: > -> >=": `${whole.replace(">", ">=")}, retried 3 times`,
    '4: without "for update"': `${whole.replace(" for update", "")}, retried 3 times`,
    "4: without Effect.retry": whole,
    "4: 3 -> 4": `${whole}, retried 4 times`,
  })
})

it("leaves out each condition of one line of SQL", () => {
  const source = 'const it = () => sql`select a from b where c = ${"d"} and not e and f`'
  const changed = Object.values(results(source))
  expect(changed).toEqual([
    "select a from b where c = d and not e and f",
    "select a from b where not e and f",
    "select a from b where c = d and f",
    "select a from b where c = d and not e",
  ])
})

it("changes nothing that is evaluated when the module is loaded, and no types", () => {
  expect(changesOf("const limit = 5 * 2\nconst it = (n: 1 | 2): n is 1 => limit.at(n)?.filter((m) => m)")).toEqual([])
})
