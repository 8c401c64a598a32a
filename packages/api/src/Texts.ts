/**
 * Texts of pages and letters in every language of an account. All translations of a text are in one place; a missing
 * translation does not compile.
 */
import type { Language } from "@svc/domain/account/Account"

/** One text in English, German and French. */
type Translations = readonly [en: unknown, de: unknown, fr: unknown]
type Table = { readonly [key: string]: Translations | Table }

/** The texts of a table in one language. */
type TextsOf<T extends Table> = {
  readonly [K in keyof T]: T[K] extends Translations ? TextOf<T[K][number]> : T[K] extends Table ? TextsOf<T[K]> : never
}
/** Widens literals, so that another string can take the place of a text. */
type TextOf<T> = T extends string ? string : T

const inLanguage = (table: Table, at: number): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(table).map(([key, entry]) => [key, isTranslations(entry) ? entry[at] : inLanguage(entry, at)]),
  )

const isTranslations = (entry: Translations | Table): entry is Translations => Array.isArray(entry)

/** Turns `{ title: [en, de, fr] }` into one record of texts per language. */
export const texts = <const T extends Table>(table: T): { readonly [L in Language]: TextsOf<T> } => {
  // `inLanguage` keeps the keys and takes one of the three translations each, which its type cannot say.
  const of = (at: number) => inLanguage(table, at) as TextsOf<T>
  return { en: of(0), de: of(1), fr: of(2) }
}
