/**
 * Lists with elements that are expensive to validate. Schema.Array validates the elements before the length, so that a
 * body could hold thousands of addresses where a hundred are allowed. This schema rejects a list that is too long
 * before it validates any element.
 */
import { Schema } from "effect"

export const boundedList = (
  element: Schema.Codec<string>,
  maximum: number,
  isOne: (text: string) => boolean,
  expected: string,
) =>
  Schema.Array(element).check(
    Schema.isMaxLength(maximum).abort(),
    Schema.makeFilter((all: ReadonlyArray<string>) =>
      all.flatMap((one, at) => (isOne(one) ? [] : [{ path: [at], issue: `Expected ${expected}` }])),
    ),
  )
