/** Helpers that the command parsers share. */
import type { Messages } from "./Command.ts"
import * as MailboxName from "./MailboxName.ts"
import { Malformed, type Reader, textOf } from "./Reader.ts"
import * as Sets from "./Sets.ts"

export interface CommandInput {
  readonly reader: Reader
  readonly uid: boolean
  readonly mailbox: () => string
  readonly utf8: boolean
}

/**
 * Decodes a mailbox name. Text that is not valid modified UTF-7 is used unchanged, which accepts clients that send
 * UTF-8 without enabling it.
 */
export const mailboxOf = (bytes: Buffer, utf8: boolean): string => {
  const text = textOf(bytes)
  return MailboxName.canonical(utf8 ? text : (MailboxName.decode(text) ?? text))
}

export const messages = (reader: Reader): Messages => {
  if (reader.takes("$")) return "saved"
  const set = Sets.read(reader.upTo(/[ )]/))
  if (set === undefined) throw new Malformed("Invalid message set")
  return set
}

/** Bounds the length and wildcards of a pattern, which determine its cost. */
export const boundedPattern = (bytes: Buffer): Buffer => {
  if (bytes.length > 500 || bytes.filter((byte) => byte === 42 || byte === 37).length > 10) {
    throw new Malformed("The pattern is too long")
  }
  return bytes
}
