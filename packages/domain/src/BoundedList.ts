/**
 * Lists of what is dear to judge. A list is judged element by element before its length is, so a body may hold thousands of
 * addresses where a hundred are allowed; here nothing of a list that is too long is looked at.
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
