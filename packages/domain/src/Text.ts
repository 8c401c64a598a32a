/** Text that every part of the service can hold: no NUL and no half of a surrogate pair, which PostgreSQL refuses. */
import { Schema } from "effect"

export const Text = Schema.String.check(
  Schema.makeFilter((text: string) => !text.includes("\0") && text.isWellFormed(), {
    expected: "text without NUL and lone surrogates",
  }),
)

/** One line of 1 to `maximum` UTF-16 code units, without control characters. */
export const Line = (maximum: number) =>
  Text.check(
    Schema.isMinLength(1),
    Schema.isMaxLength(maximum),
    // oxlint-disable-next-line no-control-regex -- they are what is refused; a class every regex dialect reads
    Schema.isPattern(/^[^\u0000-\u001f\u007f-\u009f]*$/, { expected: "one line without control characters" }),
  )
