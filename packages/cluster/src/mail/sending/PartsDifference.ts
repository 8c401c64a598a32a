/**
 * Compares the HTML of a message with its plain text, so that whoever approves it learns when the two say different
 * things. Words and addresses count; punctuation, list marks, case and white space do not. The comparison is written as a
 * generator that pauses every so many words, so that a long message does not hold the event loop.
 */
import type { PartsDifference } from "@svc/domain/mail/Sending"
import { Effect } from "effect"
import { linksOf, wordsOf as shownOf } from "../../html/PlainText.ts"

const limits = { passages: 20, characters: 300 }
/** A passage continues across this many words that both forms have. */
const bridged = 2

const unseen = /[\u00ad\u200b-\u200d\u2060\ufeff]+/g
const listMark = /^[ \t]*\d{1,2}[.)](?=\s)/gm
const token = /https?:\/\/[^\s<>()"]+|[\p{L}\p{M}\p{N}]+|[\p{Sc}\p{So}]/gu

interface Word {
  readonly value: string
  readonly start: number
  readonly end: number
}

const isUrl = (value: string) => value.startsWith("http")

const urlOf = (url: string) => url.replace(/[.,;:!?'\]]+$/, "").replace(/\/$/, "")

const plain = (text: string) => text.replace(unseen, "").replace(listMark, (mark) => " ".repeat(mark.length))

/** Words between two pauses. */
const portion = 2_000

function* wordsOf(text: string): Generator<void, ReadonlyArray<Word>> {
  const words: Array<Word> = []
  for (const { 0: value, index } of text.matchAll(token)) {
    words.push({
      value: isUrl(value) ? urlOf(value) : value.normalize("NFKC").toLowerCase(),
      start: index,
      end: index + value.length,
    })
    if (words.length % portion === 0) yield
  }
  return words
}

/** Returns the places of the words that the other form has fewer of, and of the addresses that it does not have. */
function* extra(words: ReadonlyArray<Word>, others: ReadonlyArray<Word>): Generator<void, ReadonlyArray<number>> {
  const left = new Map<string, number>()
  for (const [index, { value }] of others.entries()) {
    left.set(value, (left.get(value) ?? 0) + 1)
    if (index % portion === 0) yield
  }
  const places: Array<number> = []
  for (const [index, { value }] of words.entries()) {
    const count = left.get(value) ?? 0
    if (!isUrl(value)) left.set(value, count - 1)
    if (count <= 0) places.push(index)
    if (index % portion === 0) yield
  }
  return places
}

const passagesOf = (text: string, words: ReadonlyArray<Word>, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const passages: Array<{ first: number; last: number }> = []
  for (const place of places) {
    const open = passages.at(-1)
    if (open !== undefined && place - open.last <= bridged + 1) open.last = place
    else passages.push({ first: place, last: place })
  }
  return passages.slice(0, limits.passages).map(({ first, last }) => {
    const passage = text.slice(words[first]!.start, words[last]!.end).replace(/\s+/g, " ")
    return passage.length > limits.characters ? `${passage.slice(0, limits.characters).toWellFormed()} …` : passage
  })
}

function* compared(html: string, text: string): Generator<void, PartsDifference | null> {
  const [shown, written] = [plain(shownOf(html)), plain(text)]
  yield
  const links = new Set(linksOf(html).map(({ url }) => urlOf(url)))
  const [inHtml, inText] = [yield* wordsOf(shown), yield* wordsOf(written)]
  // A text may leave addresses of links out, or name them beside the words of the link.
  const textHasUrls = inText.some(({ value }) => isUrl(value))
  const onlyInText = (yield* extra(inText, inHtml)).filter((at) => !links.has(inText[at]!.value))
  const onlyInHtml = (yield* extra(inHtml, inText)).filter((at) => textHasUrls || !links.has(inHtml[at]!.value))
  const known = new Set([...inText, ...onlyInHtml.map((at) => inHtml[at]!)].map(({ value }) => value))
  const otherTargets = textHasUrls ? [...links].filter((url) => !known.has(url)) : []
  if (onlyInText.length + onlyInHtml.length + otherTargets.length > 0) {
    return {
      only_in_html: [...passagesOf(shown, inHtml, onlyInHtml), ...otherTargets].slice(0, limits.passages),
      only_in_text: passagesOf(written, inText, onlyInText),
    }
  }
  return inAnotherOrder(shown, inHtml, written, inText)
}

/** Returns the passages that only one form has, or null if both forms say the same or there is only one. */
export const differenceOf = (html: string | null, text: string | null): PartsDifference | null => {
  if (html === null || text === null) return null
  const comparison = compared(html, text)
  for (;;) {
    const step = comparison.next()
    if (step.done === true) return step.value
  }
}

/** Like {@link differenceOf}, but yields to other work of the process. */
export const differenceInTurns = Effect.fnUntraced(function* (html: string | null, text: string | null) {
  if (html === null || text === null) return null
  const comparison = compared(html, text)
  for (;;) {
    const step = comparison.next()
    if (step.done === true) return step.value
    yield* Effect.yieldNow
  }
})

/** Compares two forms with the same words in different order: "pay Ada 9, Bob 1" is not "pay Ada 1, Bob 9". */
const inAnotherOrder = (
  shown: string,
  inHtml: ReadonlyArray<Word>,
  written: string,
  inText: ReadonlyArray<Word>,
): PartsDifference | null => {
  const noUrls = (words: ReadonlyArray<Word>) => words.filter(({ value }) => !isUrl(value))
  const [one, other] = [noUrls(inHtml), noUrls(inText)]
  const first = one.findIndex(({ value }, index) => value !== other[index]?.value)
  if (first < 0) return null
  const last = one.findLastIndex(({ value }, index) => value !== other[index]?.value)
  const between = Array.from({ length: last - first + 1 }, (_, index) => first + index)
  return { only_in_html: passagesOf(shown, one, between), only_in_text: passagesOf(written, other, between) }
}
