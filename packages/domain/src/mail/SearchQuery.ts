/**
 * Parses search queries: words, all of which must match; `"a phrase"`; `from:`, `to:`, `subject:`; `tag:`, `label:`;
 * `has:attachment`; `before:`, `after:`; `is:unread` and similar; and `-` before a term to exclude it. A value may be
 * in quotes. A word with an unknown operator (a time, a URL) is an ordinary word.
 */
import { parseDayOrTime } from "../Rfc3339.ts"
import { Result } from "effect"
import { fold } from "./SearchText.ts"

type Term =
  | { readonly kind: "text"; readonly in: "any" | "from" | "to" | "subject"; readonly text: string }
  | { readonly kind: "tag" | "label"; readonly text: string }
  | { readonly kind: "attachment" }
  | { readonly kind: "before" | "after"; readonly at: Date }
  | { readonly kind: "seen" | "flagged" | "answered"; readonly value: boolean }

export type SearchTerm = Term & { readonly negated: boolean }

export const limits = { terms: 20 }

const states: Readonly<Record<string, Term>> = {
  unread: { kind: "seen", value: false },
  unseen: { kind: "seen", value: false },
  read: { kind: "seen", value: true },
  seen: { kind: "seen", value: true },
  flagged: { kind: "flagged", value: true },
  starred: { kind: "flagged", value: true },
  unflagged: { kind: "flagged", value: false },
  answered: { kind: "answered", value: true },
  unanswered: { kind: "answered", value: false },
}

/**
 * Parses a day, which starts at midnight UTC, or an RFC 3339 time to milliseconds since 1970; returns NaN for anything
 * else.
 */
export const dateOf = (text: string): number => parseDayOrTime(text) ?? NaN

/** Why a query is invalid, as a sentence for its author. */
type Refusal = string

const operators: Readonly<Record<string, (value: string) => Term | Refusal>> = {
  from: (text) => ({ kind: "text", in: "from", text: fold(text) }),
  to: (text) => ({ kind: "text", in: "to", text: fold(text) }),
  subject: (text) => ({ kind: "text", in: "subject", text: fold(text) }),
  tag: (text) => ({ kind: "tag", text: text.toLowerCase() }),
  label: (text) => ({ kind: "label", text: text.toLowerCase() }),
  has: (text) =>
    ["attachment", "attachments"].includes(text.toLowerCase())
      ? { kind: "attachment" }
      : `has: knows "attachment" only, not "${text}".`,
  before: (text) => dated("before", text),
  after: (text) => dated("after", text),
  is: (text) =>
    Object.hasOwn(states, text.toLowerCase())
      ? states[text.toLowerCase()]!
      : `is: knows ${Object.keys(states).join(", ")}, not "${text}".`,
}

const dated = (kind: "before" | "after", text: string): Term | Refusal => {
  const at = dateOf(text)
  return Number.isNaN(at)
    ? `${kind}: expects a date such as 2026-11-20 or 2026-11-20T12:00:00Z, not "${text}".`
    : { kind, at: new Date(at) }
}

/** A term: `-`, the name of an operator, and a quoted or bare value. */
const token = /(-)?(?:([a-z]+):)?(?:"([^"]*)"|(\S+))?/iy

export const parse = (query: string): Result.Result<ReadonlyArray<SearchTerm>, Refusal> => {
  const terms: Array<SearchTerm> = []
  let at = 0
  while (true) {
    while (at < query.length && /\s/.test(query[at]!)) at++
    if (at >= query.length) return Result.succeed(terms)
    if (terms.length >= limits.terms) return Result.fail(`A query can have at most ${limits.terms} terms.`)
    token.lastIndex = at
    const [whole, minus, name, phrase, bare] = token.exec(query)!
    at = token.lastIndex
    const operator =
      name === undefined
        ? undefined
        : Object.hasOwn(operators, name.toLowerCase())
          ? operators[name.toLowerCase()]
          : undefined
    const value = phrase ?? bare ?? ""
    // A quote within a word belongs to the word; a quote at the start of a value must be closed.
    if (phrase === undefined && value.startsWith('"')) return Result.fail(`The quote in ${whole} is not closed.`)
    if (operator !== undefined) {
      if (value.trim() === "") return Result.fail(`${name}: has no value.`)
      const term = operator(value.trim())
      if (typeof term === "string") return Result.fail(term)
      if (term.kind === "text" && term.text === "") return Result.fail(`${name}: has no searchable value.`)
      terms.push({ ...term, negated: minus !== undefined })
      continue
    }
    const text = fold(name === undefined ? value : `${name}:${phrase === undefined ? value : `"${phrase}"`}`)
    // A lone hyphen, as between two words, is ignored.
    if (text === "") {
      if (phrase !== undefined) return Result.fail("A phrase in quotes is empty.")
      continue
    }
    terms.push({ kind: "text", in: "any", text, negated: minus !== undefined })
  }
}
