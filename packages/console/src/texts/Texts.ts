/**
 * The texts of the console in all languages. Each page has a table of texts in its folder, which is part of the page's
 * chunk. The compiler checks that every language is there. `texts({ title: ["Vault", "Tresor", "Coffre"] })` returns a
 * function that gives the text of a key in the current language. `{name}` marks an argument. Texts with plural forms are
 * chosen by the argument `count`.
 */
import { signal } from "@preact/signals"

export const languages = ["en", "de", "fr"] as const
export type Language = (typeof languages)[number]

type Forms = { readonly [K in Intl.LDMLPluralRule]?: string } & { readonly other: string }
type Text = string | Forms
/** The same order as {@link languages}. */
export type InAll = readonly [Text, Text, Text]

const stored = (): Language => {
  try {
    const kept = localStorage.getItem("svc-language")
    const wanted = [kept ?? "", ...navigator.languages].map((tag) => tag.slice(0, 2).toLowerCase())
    return wanted.flatMap((tag) => languages.filter((language) => language === tag))[0] ?? "en"
  } catch {
    // No browser, or storage is not available.
    return "en"
  }
}

/** Components that read it are rendered again when it changes. */
export const language = signal<Language>(stored())

export const speak = (next: Language) => {
  language.value = next
  document.documentElement.lang = next
  try {
    localStorage.setItem("svc-language", next)
  } catch {
    // Without storage, the browser's settings decide next time.
  }
}

type Names<S extends string> = S extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never
type NamesOf<T> = T extends string ? Names<T> : T extends Forms ? Names<Extract<T[keyof T], string>> : never
type Arguments<T extends InAll> = { readonly [K in NamesOf<T[0]>]: string | number }

export type Say<T extends Record<string, InAll>> = <K extends keyof T>(
  key: K,
  ...[values]: [NamesOf<T[K][0]>] extends [never] ? [] : [Arguments<T[K]>]
) => string

/** Caches formatters per language, because constructing one takes milliseconds. */
const made = <F>(make: (language: Language) => F) => {
  const known = new Map<Language, F>()
  return () => {
    const spoken = language.value
    const found = known.get(spoken) ?? make(spoken)
    known.set(spoken, found)
    return found
  }
}

const plurals = made((spoken) => new Intl.PluralRules(spoken))

/** All tables, for the test that compares the languages. */
export const tables: Array<Record<string, InAll>> = []

export const texts = <const T extends Record<string, InAll>>(table: T): Say<T> => {
  tables.push(table)
  return (key, ...[values]) => {
    const spoken = language.value
    const given = (values ?? {}) as Record<string, string | number>
    const found: Text = table[key]![languages.indexOf(spoken)]!
    const text = typeof found === "string" ? found : (found[plurals().select(Number(given["count"]))] ?? found.other)
    if (values === undefined) return text
    return text.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = given[name]
      return typeof value === "number" ? number(value) : (value ?? "")
    })
  }
}

const numbers = made((spoken) => new Intl.NumberFormat(spoken))
const dates = made((spoken) => new Intl.DateTimeFormat(spoken, { dateStyle: "medium", timeStyle: "medium" }))
const days = made((spoken) => new Intl.DateTimeFormat(spoken, { dateStyle: "medium" }))
const clocks = made((spoken) => new Intl.DateTimeFormat(spoken, { timeStyle: "short" }))
const shortDays = made((spoken) => new Intl.DateTimeFormat(spoken, { day: "numeric", month: "short" }))
const shortDates = made((spoken) => new Intl.DateTimeFormat(spoken, { dateStyle: "short" }))
const utcDays = made((spoken) => new Intl.DateTimeFormat(spoken, { day: "numeric", month: "short", timeZone: "UTC" }))
const relative = made((spoken) => new Intl.RelativeTimeFormat(spoken, { numeric: "auto", style: "short" }))
const conjunctions = made((spoken) => new Intl.ListFormat(spoken))

/** Small integers look the same in all languages. */
export const number = (value: number) =>
  Number.isInteger(value) && value >= 0 && value < 1000 ? String(value) : numbers().format(value)

export const dateTime = (value: Date) => dates().format(value)
export const day = (value: Date) => days().format(value)
export const list = (values: ReadonlyArray<string>) => conjunctions().format(values)

/** Formats the time of day: `9:00 PM`. */
export const clock = (value: Date) => clocks().format(value)
/** Formats a day that starts at midnight UTC. */
export const utcDay = (value: Date) => utcDays().format(value)

/**
 * Constructs the date formatters in a separate task while data loads, because the first one takes tens of milliseconds on a
 * phone. Pages with exact times or message lists call it when they are loaded.
 */
export const readyTimes = () => void setTimeout(() => void (clocks(), dates()))

/** Formats a time as message lists do: the hour for today, the day of this year, or the date with its year. */
export const moment = (value: Date, now: Date) => {
  if (value.toDateString() === now.toDateString()) return clocks().format(value)
  return (value.getFullYear() === now.getFullYear() ? shortDays() : shortDates()).format(value)
}

const units = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 30],
  ["month", 12],
  ["year", Number.POSITIVE_INFINITY],
] as const

/**
 * The most frequent relative times. They equal those of `Intl.RelativeTimeFormat` (checked by a test), whose first use
 * takes tens of milliseconds on a phone.
 */
const recent: { readonly [unit: string]: readonly [string, string, string] } = {
  second: ["{n} sec. ago", "vor {n} Sek.", "il y a {n}\u00A0s"],
  minute: ["{n} min. ago", "vor {n} Min.", "il y a {n}\u00A0min"],
  hour: ["{n} hr. ago", "vor {n} Std.", "il y a {n}\u00A0h"],
}
const present = ["now", "jetzt", "maintenant"]

const relatively = (amount: number, unit: (typeof units)[number][0]) => {
  const at = languages.indexOf(language.value)
  if (amount === 0 && unit === "second") return present[at]!
  const words = recent[unit]?.[at]
  return words === undefined || amount >= 0
    ? relative().format(amount, unit)
    : words.replace("{n}", String(Math.abs(amount)))
}

/** Formats a relative time: "3 min. ago", "in 2 hr.". */
export const ago = (value: Date, now: number) => {
  let amount = (value.getTime() - now) / 1000
  for (const [unit, size] of units) {
    if (Math.abs(amount) < size || unit === "year") return relatively(Math.round(amount), unit)
    amount /= size
  }
  return ""
}

const measures = new Map<string, Intl.NumberFormat>()
const measured = (value: number, unit: string, unitDisplay: "long" | "short", maximumFractionDigits: number) => {
  const key = `${language.value} ${unit}`
  const found =
    measures.get(key) ??
    new Intl.NumberFormat(language.value, { style: "unit", unit, unitDisplay, maximumFractionDigits })
  measures.set(key, found)
  return found.format(value)
}

/** Formats bytes: `1.4 MB`. */
export const bytes = (value: number) => {
  const step = value < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3))
  const unit = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"][step]!
  return measured(value / 1000 ** step, unit, step === 0 ? "long" : "short", step === 0 ? 0 : 1)
}

/** Formats bytes in binary units, as the limits are set: `10 GiB`. */
export const binaryBytes = (value: number) => {
  const step = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10))
  const rounded = Math.round((value / 1024 ** step) * 10) / 10
  return `${number(rounded)} ${["B", "KiB", "MiB", "GiB", "TiB"][step]}`
}

/** Formats milliseconds: `320 ms`, `4.2 s`. */
export const duration = (millis: number) =>
  millis < 1000 ? measured(millis, "millisecond", "short", 1) : measured(millis / 1000, "second", "short", 1)
