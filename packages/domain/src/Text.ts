/** Text that every part of the service can hold: no NUL and no half of a surrogate pair, which PostgreSQL refuses. */
import { Schema } from "effect"

/** For text that no schema judges. */
export const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed()

const storable = Schema.makeFilter(isStorable, {
  expected: "text without NUL and lone surrogates",
})

export const Text = Schema.String.check(storable)

/** An absolute URL of one of the protocols, at most 2,048 characters. */
export const Url = (protocols: ReadonlyArray<"https:" | "http:">, expected: string) =>
  Schema.String.annotate({ format: "uri" }).check(
    storable,
    Schema.isMaxLength(2048),
    Schema.makeFilter(
      (text: string) => (protocols as ReadonlyArray<string>).includes(URL.parse(text)?.protocol ?? ""),
      {
        expected,
      },
    ),
  )

/** Addresses that we show: what they are, for readers of the document; nothing is checked. */
export const ShownUrl = Schema.String.annotate({ format: "uri" })
export const ShownEmail = Schema.String.annotate({ format: "email" })

/** One line of 1 to `maximum` UTF-16 code units, without control characters. */
export const Line = (maximum: number) =>
  Text.check(
    Schema.isMinLength(1),
    Schema.isMaxLength(maximum),
    // oxlint-disable-next-line no-control-regex -- they are what is refused; a class every regex dialect reads
    Schema.isPattern(/^[^\u0000-\u001f\u007f-\u009f]*$/, { expected: "one line without control characters" }),
  )
