/**
 * What a text is found by: each three characters in a row. A gram is a number of 21 bits, seven a character: those of
 * ASCII are themselves, others share the numbers, so what grams find is a little more than what is looked for, and never
 * less. Grams lie in buckets by their first two characters: all that begin with a pair stand together, and a search for
 * two characters reads one bucket like one for three. Characters are UTF-16 units, of stored texts and of queries alike.
 */
const code = (unit: number): number => (unit < 128 ? unit : Math.imul(unit, 0x9e3779b1) >>> 25)

/** Different numbers that a gram can be. */
export const count = 1 << 21

export const buckets = 256

export const bucketOf = (gram: number): number => Math.imul(gram >>> 7, 0x9e3779b1) >>> 24

/** Stands behind the text, so that its last two characters begin a gram too. No query has it (`domain/mail/SearchText`). */
const end = 0x1e

/** Every gram of a stored text, as often as it has it; of those that begin from one place of it to another, if given. */
export const each = (text: string, visit: (gram: number) => void, from = 0, to = text.length): void => {
  const last = Math.min(to, text.length - 1)
  if (from >= last) return
  let pair = (code(text.charCodeAt(from)) << 7) | code(text.charCodeAt(from + 1))
  for (let begin = from; begin < last; begin++) {
    const gram = (pair << 7) | (begin + 2 === text.length ? end : code(text.charCodeAt(begin + 2)))
    visit(gram)
    pair = gram & 0x3fff
  }
}

/** Texts that have one of the grams from `first` to `last`, which lie in one bucket. */
export interface Wanted {
  readonly bucket: number
  readonly first: number
  readonly last: number
}

/** Grams that one text is looked for by, and that all texts of a search are: more of them find hardly less. */
const atMost = { ofText: 6, ofSearch: 12 }

/** From the most to the least frequent: what texts in European languages consist of. */
const frequent = " etaonirshdlucmpfgywbvkxjqz.,0123456789"
const rarity = new Float64Array(128).fill(frequent.length)
for (const [place, letter] of [...frequent].entries()) rarity[letter.charCodeAt(0)] = place

const rarityOf = (gram: number) => rarity[gram >>> 14]! + rarity[(gram >>> 7) & 127]! + rarity[gram & 127]!

const ofText = (folded: string): ReadonlyArray<Wanted> => {
  // As it goes to the store, where half a pair of surrogates cannot stand.
  const text = folded.toWellFormed()
  if (text.length === 2) {
    const first = ((code(text.charCodeAt(0)) << 7) | code(text.charCodeAt(1))) << 7
    return [{ bucket: bucketOf(first), first, last: first | 127 }]
  }
  const grams = new Set<number>()
  // The last one has the end in it, and is of no use here.
  if (text.length > 2) each(text, (gram) => void grams.add(gram))
  const all = [...grams].slice(0, -1)
  return all
    .toSorted((a, b) => rarityOf(b) - rarityOf(a))
    .slice(0, atMost.ofText)
    .map((gram) => ({ bucket: bucketOf(gram), first: gram, last: gram }))
}

/** What every message has that has all the folded texts; nothing where none of them is two characters long. */
export const wanted = (texts: ReadonlyArray<string>): ReadonlyArray<Wanted> => {
  const each = texts.map(ofText)
  const found: Array<Wanted> = []
  // In turn, so that every text has a say.
  for (let place = 0; place < atMost.ofText; place++) {
    for (const grams of each) if (place < grams.length && found.length < atMost.ofSearch) found.push(grams[place]!)
  }
  return found
}
