/** Random texts, and which of them contain a search term. */
import { fold } from "@svc/domain/mail/SearchText"

/** Produces the same numbers in every run. */
export const randomBelow = (seed: number) => {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const alphabet = [..."abcd .жук日本é", "😀", "\u{10ffff}"]
export const randomText = (draw: (below: number) => number, length: number) =>
  fold(Array.from({ length }, () => alphabet[draw(alphabet.length)]).join(""))

/** Returns the positions of the texts that contain it, last first. */
export const positionsOf = (texts: ReadonlyArray<string>, part: string) =>
  texts.flatMap((text, place) => (text.includes(part) ? [place] : [])).toReversed()
