/** Text that every part of the service can store. PostgreSQL rejects NUL and unpaired surrogates. */
import { Schema } from "effect"

/** Returns whether text that no schema has validated can be stored. */
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

/** A URL in responses. The schema documents the format and does not validate it. */
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
