/**
 * Building blocks of the sentences about Events and audit records, in the languages of the console. The console loads
 * this module into the browser, so it has no imports.
 */
export type SentenceLanguage = "en" | "de" | "fr"

/** A text in English, German and French. */
export type InThree = readonly [en: string, de: string, fr: string]

const order = { en: 0, de: 1, fr: 2 } as const

export const inLanguage = (language: SentenceLanguage, texts: InThree): string => texts[order[language]]

/** Maximum length of a value within a sentence. */
const longest = 120

/**
 * Returns a value that users chose in a form that is safe within a sentence: one line of limited length, without
 * characters that change the direction of the surrounding text.
 */
export const said = (value: unknown): string => {
  const text = (typeof value === "string" ? value : "")
    .slice(0, 4 * longest)
    .replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu, " ")
    .replace(/\s+/g, " ")
    .trim()
  const letters = [...text]
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : text
}

/** Puts a name into the quotation marks of the language. */
export const quoted = (language: SentenceLanguage, name: string): string =>
  inLanguage(language, [`'${name}'`, `„${name}“`, `«\u00a0${name}\u00a0»`])

/** Returns the template with its placeholders replaced. */
export const fill = (template: string, values: Readonly<Record<string, string>>): string =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "")
