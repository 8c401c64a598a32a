/** Text that every part of the service can hold: no NUL and no half of a surrogate pair, which PostgreSQL refuses. */
import { Schema } from "effect"

export const Text = Schema.String.check(
  Schema.makeFilter((text: string) => !text.includes("\0") && text.isWellFormed(), {
    expected: "text without NUL and lone surrogates",
  }),
)
