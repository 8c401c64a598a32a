/** Properties of the console's texts that the compiler cannot check. */
import { globSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { document as openapi } from "@svc/api/openapi/Document"
import { type Code, table } from "@svc/domain/problems/Table"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { root } from "../house/Imports.ts"

type Text = string | Readonly<Record<string, string>>
type InAll = readonly [Text, Text, Text]

// The console has its own type configuration, so its modules are imported without types.
const { ago, binaryBytes, bytes, duration, language, languages, moment, speak, tables, texts } = await import(
  path.join(root, "packages/console/src/texts/Texts.ts")
)
const files = globSync("packages/console/src/**/{texts,events}.ts", { cwd: root })
for (const file of files) await import(path.join(root, file))

const all: ReadonlyArray<readonly [string, InAll]> = tables.flatMap((table: Readonly<Record<string, InAll>>) =>
  Object.entries(table),
)
const forms = (text: InAll[number]) => (typeof text === "string" ? [text] : Object.values(text))
const names = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).toSorted()

describe("A text of the console", () => {
  // What is spoken is noted in the document.
  beforeAll(() => void Object.assign(globalThis, { document: { documentElement: {} } }))
  afterAll(() => {
    speak("en")
    Reflect.deleteProperty(globalThis, "document")
  })

  it("has the same arguments in every language and plural form", () => {
    expect(all.length).toBeGreaterThan(300)
    for (const [key, text] of all) {
      const wanted = names(forms(text[0])[0]!)
      for (const form of text.flatMap(forms)) expect(names(form), `${key}: ${form}`).toEqual(wanted)
    }
  })

  it("has all plural forms of each language", () => {
    for (const [key, text] of all.filter(([, text]) => typeof text[0] !== "string")) {
      text.forEach((forms, index) => {
        const { pluralCategories } = new Intl.PluralRules(languages[index]!).resolvedOptions()
        expect(Object.keys(forms).toSorted(), `${key} in ${languages[index]}`).toEqual(pluralCategories.toSorted())
      })
    }
  })

  it("formats relative times as Intl does", () => {
    const now = Date.UTC(2026, 0, 15, 12)
    const units = { second: 1, minute: 60, hour: 3600, day: 86_400 } as const
    for (const language of languages as ReadonlyArray<string>) {
      speak(language)
      const intl = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" })
      for (const [unit, count] of [
        ["second", 0],
        ["second", -1],
        ["second", -59],
        ["second", 20],
        ["minute", -1],
        ["minute", -42],
        ["minute", 2],
        ["hour", -1],
        ["hour", -23],
        ["day", -1],
        ["day", -3],
      ] as const) {
        const then = new Date(now + count * units[unit] * 1000)
        expect(ago(then, now), `${language}: ${count} ${unit}`).toBe(intl.format(count, unit))
      }
    }
  })

  it("shows the hour of a time of today, the day of one of this year, and the year of others", () => {
    speak("en")
    const now = new Date(2026, 0, 2, 12)
    const at = [new Date(2026, 0, 2, 9), new Date(2026, 0, 1, 23), new Date(2025, 11, 31, 23)]
    const sameDay = new Date(now)
    sameDay.setMonth(now.getMonth() - 2)
    expect(moment(sameDay, now)).not.toContain(":")
    expect(at.map((then) => moment(then, now).replace("\u202F", " "))).toEqual(["9:00 AM", "Jan 1", "12/31/25"])
  })

  it("shows sizes in powers of 1000 and limits in powers of 1024, as the language writes them", () => {
    speak("en")
    expect([999, 1000, 1_400_000, 1_000_000_000].map((size) => bytes(size))).toEqual([
      "999 bytes",
      "1 kB",
      "1.4 MB",
      "1 GB",
    ])
    expect(binaryBytes(700 * 2 ** 20)).toBe("700 MiB")
    speak("de")
    expect(bytes(1_400_000)).toBe("1,4 MB")
    speak("en")
  })

  it("shows durations below a second in milliseconds, and times of 30 days and more in months", () => {
    speak("en")
    expect([320, 999, 1000, 4200].map((millis) => duration(millis))).toEqual(["320 ms", "999 ms", "1 sec", "4.2 sec"])
    const day = 86_400_000
    expect([29, 30, 70].map((days) => ago(new Date(0), days * day))).toEqual(["29 days ago", "last mo.", "2 mo. ago"])
  })

  it.each([
    ["fr", ["de-DE"], "fr"],
    [null, ["es", "DE-at", "fr"], "de"],
    ["xx", ["es"], "en"],
  ])("begins with the language that was chosen (%s), or that of the browser (%j): %s", async (kept, tags, wanted) => {
    vi.stubGlobal("localStorage", { getItem: () => kept })
    vi.stubGlobal("navigator", { languages: tags })
    // A module of its own: other tests of this worker keep theirs.
    const { language } = await import(`${path.join(root, "packages/console/src/texts/Texts.ts")}?begins=${wanted}`)
    expect(language.value).toBe(wanted)
    vi.unstubAllGlobals()
  })

  it("depends on the count and the language", () => {
    const say = texts({
      mails: [
        { one: "{count} mail", other: "{count} mails" },
        { one: "{count} Mail", other: "{count} Mails" },
        { one: "{count} message", many: "{count} de messages", other: "{count} messages" },
      ],
    })
    speak("en")
    expect([say("mails", { count: 1 }), say("mails", { count: 1200 })]).toEqual(["1 mail", "1,200 mails"])
    speak("de")
    expect(say("mails", { count: 1200 })).toBe("1.200 Mails")
    speak("fr")
    expect([say("mails", { count: 0 }), say("mails", { count: 1_000_000 })]).toEqual([
      "0 message",
      "1\u202F000\u202F000 de messages",
    ])
  })
})

/** Problems of other credentials than a session, and of requests that the console does not send. */
const unmet: ReadonlySet<string> = new Set<Code>([
  "key_expired",
  "grant_revoked",
  "scope_missing",
  "scope_exceeds",
  "scope_unknown",
  "identity_not_granted",
  "network_refused",
  "foreign_identity",
  "org_scope_required",
  "unsupported_media_type",
  "idempotency_key_reused",
  "connector_option_unknown",
])

it("Each problem of the calls of the console has a title in every language", async () => {
  const { titleOf } = await import(path.join(root, "packages/console/src/ui/Problem.tsx"))
  const found = new Set<string>()
  const paths = openapi.paths as unknown as Record<string, Record<string, { readonly responses: object }>>
  for (const file of globSync("packages/console/src/**/*.{ts,tsx}", { cwd: root })) {
    const source = readFileSync(path.join(root, file), "utf8")
    for (const [, method, route] of source.matchAll(/"(GET|POST|PUT|PATCH|DELETE) (\/api\/[^"]+)"/g)) {
      const operation = paths[route!.replaceAll(/:(\w+)/g, "{$1}")]?.[method!.toLowerCase()]
      const text = JSON.stringify(operation?.responses ?? {})
      for (const code of Object.keys(table)) if (text.includes(`"${code}"`)) found.add(code)
    }
  }
  expect(found.size).toBeGreaterThan(40)
  for (const name of languages.slice(1)) {
    language.value = name
    const isTranslated = (code: string) => titleOf({ code, title: "" }) !== ""
    expect([...found].filter((code) => !isTranslated(code) && !unmet.has(code))).toEqual([])
    expect(Object.keys(table).filter((code) => isTranslated(code) && !found.has(code))).toEqual([])
  }
  language.value = "en"
})

describe("The sources of the console", () => {
  it("list every contract module that the browser loads", async () => {
    const { shared } = await import(path.join(root, "packages/console/sources.mjs"))
    const domain = path.join(root, "packages/domain/src")
    const found = new Set<string>()
    const follow = (file: string) => {
      const text = readFileSync(file, "utf8")
      for (const [, what, from] of text.matchAll(/^import (\{[^}]*\}) from "([^"]+)"/gm)) {
        const isValue = what!
          .slice(1, -1)
          .split(",")
          .some((name) => name.trim() !== "" && !name.trim().startsWith("type "))
        const target = from!.startsWith("@svc/domain/")
          ? path.join(domain, `${from!.slice("@svc/domain/".length)}.ts`)
          : from!.startsWith(".") && file.startsWith(domain)
            ? path.join(path.dirname(file), from!)
            : undefined
        if (!isValue || target === undefined || found.has(target)) continue
        found.add(target)
        follow(target)
      }
    }
    for (const file of globSync("packages/console/src/**/*.{ts,tsx}", { cwd: root })) follow(path.join(root, file))
    expect([...found].toSorted()).toEqual([...shared].toSorted())
  })
})
