/**
 * Grams (three consecutive characters) by which texts are found. A gram is a number of 21 bits, seven per character:
 * ASCII characters map to themselves, others share these numbers. A search by grams can therefore match too much, but
 * never too little. The first two characters of a gram choose its bucket, so that a search for two characters reads one
 * bucket, like a search for three. Characters are UTF-16 code units, in stored texts and in queries.
 */
const code = (unit: number): number => (unit < 128 ? unit : Math.imul(unit, 0x9e3779b1) >>> 25)

/** Number of possible grams. */
export const count = 1 << 21

export const buckets = 256

export const bucketOf = (gram: number): number => Math.imul(gram >>> 7, 0x9e3779b1) >>> 24

/**
 * Terminator after the text, so that its last two characters start a gram too. Queries never contain it
 * (`domain/mail/SearchText`).
 */
const end = 0x1e

/** Returns the number of grams of a stored text. They start at the positions from 0. */
export const numberOf = (text: string): number => Math.max(0, text.length - 1)

/** Returns the two characters at a position, from which {@link gramAt} makes the gram that starts there. */
export const pairAt = (text: string, at: number): number =>
  (code(text.charCodeAt(at)) << 7) | code(text.charCodeAt(at + 1))

/**
 * Returns the gram that starts at a position of a stored text, given the gram that starts before it or the pair that starts
 * at it. Callers loop over a text themselves, because a callback for each gram cost a quarter of the time.
 */
export const gramAt = (text: string, at: number, before: number): number =>
  ((before & 0x3fff) << 7) | (at + 2 === text.length ? end : code(text.charCodeAt(at + 2)))

/** A range of grams in one bucket; a match contains at least one of them. */
export interface GramRange {
  readonly bucket: number
  readonly first: number
  readonly last: number
}

/** Maximum grams per text and per search: more grams hardly narrow the result. */
const atMost = { ofText: 6, ofSearch: 12 }

/** Characters of European languages from the most to the least frequent. */
const frequent = " etaonirshdlucmpfgywbvkxjqz.,0123456789"
const rarity = new Float64Array(128).fill(frequent.length)
for (const [place, letter] of [...frequent].entries()) rarity[letter.charCodeAt(0)] = place

const rarityOf = (gram: number) => rarity[gram >>> 14]! + rarity[(gram >>> 7) & 127]! + rarity[gram & 127]!

const ofText = (folded: string): ReadonlyArray<GramRange> => {
  // PostgreSQL cannot store a lone surrogate, so the query is normalized like stored texts.
  const text = folded.toWellFormed()
  if (text.length === 2) {
    const first = ((code(text.charCodeAt(0)) << 7) | code(text.charCodeAt(1))) << 7
    return [{ bucket: bucketOf(first), first, last: first | 127 }]
  }
  const grams = new Set<number>()
  // The last gram contains the terminator and cannot be used.
  for (let at = 0, gram = pairAt(text, 0); at < numberOf(text) - 1; at++) {
    gram = gramAt(text, at, gram)
    grams.add(gram)
  }
  return [...grams]
    .toSorted((a, b) => rarityOf(b) - rarityOf(a))
    .slice(0, atMost.ofText)
    .map((gram) => ({ bucket: bucketOf(gram), first: gram, last: gram }))
}

/**
 * Returns the grams that every message with all folded texts contains; empty if each text is shorter than two
 * characters.
 */
export const gramsOf = (texts: ReadonlyArray<string>): ReadonlyArray<GramRange> => {
  const each = texts.map(ofText)
  const found: Array<GramRange> = []
  // Takes grams from each text in turn, so that every text contributes.
  for (let place = 0; place < atMost.ofText; place++) {
    for (const grams of each) if (place < grams.length && found.length < atMost.ofSearch) found.push(grams[place]!)
  }
  return found
}
