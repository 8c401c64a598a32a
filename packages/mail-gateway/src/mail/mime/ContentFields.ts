/**
 * Parses `Content-Type` and `Content-Disposition` of the parts of a message, and decodes file names. Extracting an
 * attachment reads the fields of every part, so the total that is read and decoded is limited as well as each field.
 */
import libmime from "libmime"
import { withoutRemarks } from "./Parameters.ts"
import * as EncodedWords from "./EncodedWords.ts"

/**
 * The maximum characters read of one field, of all fields of a message, of each field after that, and decoded in total.
 * Each decoded value counts for at least `least`, since finding its character set costs as much.
 */
export const limits = { field: 2_048, all: 128 * 1024, beyond: 120, decoded: 64 * 1024, least: 64 }

/** The library's parser, which leaves encoded values undecoded once the message's limit is used up. */
class Bounded extends libmime.Libmime {
  #left = limits.decoded

  isWithin(text: string): boolean {
    this.#left -= Math.max(text.length, limits.least)
    return this.#left >= 0
  }

  /**
   * Decodes an extended parameter, whose percent signs the library has replaced by equals signs, with the same
   * character sets as the rest of a message. An equals sign that encodes nothing is literal.
   */
  override decodeWord(charset: string, encoding: string, text: string): string {
    return this.isWithin(text) ? EncodedWords.word(charset, encoding, text.replace(/=(?![\da-f]{2})/gi, "=25")) : text
  }

  override decodeWords(text: string): string {
    return this.isWithin(text) ? EncodedWords.decode(text) : text
  }
}

/**
 * Continuations of a value whose first piece is encoded, and those that are not encoded, whose names end in a number.
 */
const pieces = { encoded: /\*0\*\s*=/, plain: /\*\d+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^";]*)/g }

/** A value followed by a parameter without a semicolon, or with a comma, as some programs write it. */
const missingSemicolon = /^(\s*[\w.+/-]+)(?:\s*,\s*|\s+)(?=[\w*-]+\s*=)/

/**
 * Escapes percent signs in unencoded pieces, in which they are literal (RFC 2231 section 4.1), since the library
 * decodes all pieces.
 */
const normalized = (field: string): string => {
  const tidy = (/[("]/.test(field) ? withoutRemarks(field) : field).replace(missingSemicolon, "$1; ")
  return pieces.encoded.test(tidy) ? tidy.replace(pieces.plain, (piece) => piece.replaceAll("%", "%25")) : tidy
}

interface Structured {
  readonly value: string
  readonly params: Readonly<Record<string, string>>
}

const noField: Structured = { value: "", params: {} }

/** Creates the parser of one message. */
export const make = () => {
  const bounded = new Bounded()
  let left = limits.all
  return {
    structured: (value: string | undefined): Structured => {
      if (value === undefined) return noField
      const read = value.slice(0, left > 0 ? limits.field : limits.beyond)
      left -= read.length
      try {
        return bounded.parseHeaderValue(normalized(read))
      } catch {
        return noField
      }
    },
    /** Some programs write encoded words in parameters, which the standard forbids. */
    filename: (name: string): string =>
      name.includes("=?") && bounded.isWithin(name) ? EncodedWords.decode(name) : name,
  }
}

export type ContentFields = ReturnType<typeof make>
