/**
 * The marks on a message that its Identity, its programs and IMAP clients share. `seen`, `flagged` and `answered` are the
 * IMAP flags of these names; a label is an IMAP keyword (RFC 9051 section 2.3.2), which has no case, in lower case. Each
 * keyword is expressible as a label and each label as a keyword: both are atoms of RFC 9051 section 9.
 */
import { Schema, SchemaTransformation } from "effect"

export const limits = { labels: 64, labelLength: 100, messages: 1_000 }

/** Printable ASCII without `atom-specials`: no space, parenthesis, `{`, `%`, `*`, `"`, `\` or `]`. */
const atom = (letters: string) =>
  Schema.isPattern(new RegExp(`^[!#$&'+,./0-9:;<=>?@^_\`|}~\\u005b\\u002d${letters}]{1,${limits.labelLength}}$`, "u"), {
    expected: `1 to ${limits.labelLength} printable ASCII characters without spaces, parentheses and any of {%*"\\]`,
  })

/** A stored label. */
export const Label = Schema.String.check(atom("a-z"))
/** A label as callers may write it: the case makes no difference. */
export const AnyCaseLabel = Schema.String.check(atom("A-Za-z")).pipe(
  Schema.decodeTo(Schema.String, SchemaTransformation.toLowerCase()),
)

/** The labels of one message; stored in the order of their bytes, each once. */
export const Labels = Schema.Array(Label).check(Schema.isMaxLength(limits.labels))

/**
 * A change of marks: what is left out stays as it is. `labels` replaces all of them; `add_labels` and `remove_labels`
 * change some, and stand in place of it.
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

/** The marks of one message after a change. */
export const Flagged = Schema.Struct({
  message_id: Schema.String,
  uid: Schema.Int,
  seen: Schema.Boolean,
  flagged: Schema.Boolean,
  answered: Schema.Boolean,
  labels: Schema.Array(Schema.String),
  /** The Mailbox's change counter as it was at the message's latest change (RFC 7162). */
  modseq: Schema.Int,
})
export type Flagged = typeof Flagged.Type
