/**
 * `Content-Type` and `Content-Disposition` of the parts of one message, and the names of its files, decoded. What a part
 * may say is little; a thousand parts may say it, so what is read and what is decoded of all of them is bounded as well:
 * whoever takes one attachment out of a message reads the fields of every part.
 */
import libmime from "libmime"
import { withoutRemarks } from "./Parameters.ts"
import * as EncodedWords from "./EncodedWords.ts"

/**
 * Characters that are read of one field; of all fields of a message, and of each where that is used up; and that are
 * decoded of all, each value counting for `least` at least, since to find its character set costs as much.
 */
export const limits = { field: 2_048, all: 128 * 1024, beyond: 120, decoded: 64 * 1024, least: 64 }

/** The library, that leaves encoded values as they stand once the message has had its share. */
class Bounded extends libmime.Libmime {
  #left = limits.decoded

  isWithin(text: string): boolean {
    this.#left -= Math.max(text.length, limits.least)
    return this.#left >= 0
  }

  /**
   * An extended parameter, whose percent signs the library made to equals signs, by the sets that the rest of a message is
   * read by. One that encodes nothing stands for itself.
   */
  override decodeWord(charset: string, encoding: string, text: string): string {
    return this.isWithin(text) ? EncodedWords.word(charset, encoding, text.replace(/=(?![\da-f]{2})/gi, "=25")) : text
  }

  override decodeWords(text: string): string {
    return this.isWithin(text) ? EncodedWords.decode(text) : text
  }
}

/** A value in pieces, the first of which is encoded; and those that are not, whose names end with a number. */
const pieces = { encoded: /\*0\*\s*=/, plain: /\*\d+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^";]*)/g }

/** A value with a parameter right behind it, or a comma between: some programs leave out the semicolon. */
const undivided = /^(\s*[\w.+/-]+)(?:\s*,\s*|\s+)(?=[\w*-]+\s*=)/

/** The library decodes every piece of such a value; in a plain one a percent sign is one (RFC 2231 section 4.1). */
const asMeant = (field: string): string => {
  const tidy = (/[("]/.test(field) ? withoutRemarks(field) : field).replace(undivided, "$1; ")
  return pieces.encoded.test(tidy) ? tidy.replace(pieces.plain, (piece) => piece.replaceAll("%", "%25")) : tidy
}

export interface Structured {
  readonly value: string
  readonly params: Readonly<Record<string, string>>
}

const nothing: Structured = { value: "", params: {} }

/** For one message. */
export const make = () => {
  const bounded = new Bounded()
  let left = limits.all
  return {
    structured: (value: string | undefined): Structured => {
      if (value === undefined) return nothing
      const read = value.slice(0, left > 0 ? limits.field : limits.beyond)
      left -= read.length
      try {
        return bounded.parseHeaderValue(asMeant(read))
      } catch {
        return nothing
      }
    },
    /** Some programs write encoded words into a parameter, where they have no place. */
    filename: (name: string): string =>
      name.includes("=?") && bounded.isWithin(name) ? EncodedWords.decode(name) : name,
  }
}

export type ContentFields = ReturnType<typeof make>
