/**
 * Flags and labels of a message, shared by the API and IMAP. `seen`, `flagged` and `answered` are the IMAP flags of
 * these names. A label is an IMAP keyword (RFC 9051 section 2.3.2) in lower case, since keywords ignore case. Labels
 * and keywords have the same syntax: atoms of RFC 9051 section 9.
 */
import { Schema, SchemaTransformation } from "effect"

export const limits = { labels: 64, labelLength: 100, messages: 1_000 }

/** Printable ASCII without `atom-specials`: no space, parenthesis, `{`, `%`, `*`, `"`, `\` or `]`. */
const atom = (letters: string) =>
  Schema.isPattern(new RegExp(`^[!#$&'+,./0-9:;<=>?@^_\`|}~\\u005b\\u002d${letters}]{1,${limits.labelLength}}$`, "u"), {
    expected: `1 to ${limits.labelLength} printable ASCII characters without spaces, parentheses and any of {%*"\\]`,
  })

/** A label in its stored form. */
export const Label = Schema.String.check(atom("a-z"))
/** A label in a request, in any case. */
export const AnyCaseLabel = Schema.String.check(atom("A-Za-z")).pipe(
  Schema.decodeTo(Schema.String, SchemaTransformation.toLowerCase()),
)

/** The labels of a message, without duplicates and sorted by bytes. */
const Labels = Schema.Array(Label).check(Schema.isMaxLength(limits.labels))

/**
 * A change of flags and labels. Omitted members stay unchanged. `labels` replaces all labels and cannot be combined
 * with `add_labels` and `remove_labels`.
 */
export const FlagChange = Schema.Struct({
  seen: Schema.optional(Schema.Boolean),
  flagged: Schema.optional(Schema.Boolean),
  answered: Schema.optional(Schema.Boolean),
  labels: Schema.optional(Labels),
  add_labels: Schema.optional(Labels),
  remove_labels: Schema.optional(Labels),
})
export type FlagChange = typeof FlagChange.Type

/** The flags and labels of a message after a change. */
export const Flagged = Schema.Struct({
  message_id: Schema.String,
  uid: Schema.Int,
  seen: Schema.Boolean,
  flagged: Schema.Boolean,
  answered: Schema.Boolean,
  labels: Schema.Array(Schema.String),
  /** The Mailbox's change counter at the latest change of the message (RFC 7162). */
  modseq: Schema.Int,
})
export type Flagged = typeof Flagged.Type
