/**
 * Compares the HTML of a message with its plain text, so that whoever approves it learns when the two say different
 * things. Words and addresses count; punctuation, list marks, case and white space do not. No I/O.
 */
import type { PartsDifference } from "@svc/domain/mail/Sending"
import { fromHtml } from "../../html/PlainText.ts"

const limits = { passages: 20, characters: 300 }
/** A passage goes on over so many words that both forms have. */
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

const wordsOf = (text: string): ReadonlyArray<Word> =>
  Array.from(text.matchAll(token), ({ 0: value, index }) => ({
    value: isUrl(value) ? urlOf(value) : value.normalize("NFKC").toLowerCase(),
    start: index,
    end: index + value.length,
  }))

/** The addresses that the HTML leads to. */
const targetsOf = (html: string) =>
  Array.from(html.matchAll(/\bhref\s*=\s*["']?(https?:\/\/[^\s"'>]+)/gi), ({ 1: url }) =>
    urlOf(url!.replaceAll("&amp;", "&")),
  )

/** Returns the places of the words that the other form has fewer of, and of the addresses that it does not have. */
const extra = (words: ReadonlyArray<Word>, others: ReadonlyArray<string>): ReadonlyArray<number> => {
  const left = new Map<string, number>()
  for (const value of others) left.set(value, (left.get(value) ?? 0) + 1)
  return words.flatMap(({ value }, index) => {
    const count = left.get(value) ?? 0
    if (!isUrl(value)) left.set(value, count - 1)
    return count > 0 ? [] : [index]
  })
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

/** Returns the passages that only one form has, or null if both forms say the same or there is only one. */
export const differenceOf = (html: string | null, text: string | null): PartsDifference | null => {
  if (html === null || text === null) return null
  const [shown, written] = [plain(fromHtml(html)), plain(text)]
  const [inHtml, inText] = [wordsOf(shown), wordsOf(written)]
  const valuesOf = (words: ReadonlyArray<Word>) => words.map(({ value }) => value)
  const targets = targetsOf(html)
  // A text may leave addresses of links out, or name them beside the words of the link.
  const textHasUrls = inText.some(({ value }) => isUrl(value))
  const links = new Set(targets)
  const onlyInText = extra(inText, valuesOf(inHtml)).filter((at) => !links.has(inText[at]!.value))
  const onlyInHtml = extra(inHtml, valuesOf(inText)).filter((at) => textHasUrls || !links.has(inHtml[at]!.value))
  const known = new Set([...valuesOf(inText), ...onlyInHtml.map((at) => inHtml[at]!.value)])
  const otherTargets = textHasUrls ? [...links].filter((url) => !known.has(url)) : []
  if (onlyInText.length + onlyInHtml.length + otherTargets.length > 0) {
    return {
      only_in_html: [...passagesOf(shown, inHtml, onlyInHtml), ...otherTargets].slice(0, limits.passages),
      only_in_text: passagesOf(written, inText, onlyInText),
    }
  }
  return inAnotherOrder(shown, inHtml, written, inText)
}

/** Both forms have the same words: "pay Ada 9, Bob 1" is not "pay Ada 1, Bob 9". */
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
