/** Texts in three languages: the compiler cannot tell a German text from a French one. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import { parseAst } from "vitest/node"
import { describe, expect, it } from "vitest"
import { root, sources } from "./Imports.ts"

/** Words and letters that only one of the languages has. */
const marks = {
  en: /\b(?:the|and|of|your|you|with|this|has|are|not)\b/i,
  de: /[äöüß„]|\b(?:und|der|das|ist|nicht|mit|wird|ein|eine|oder|dein|deine|wurde|auf|von|zum|zur)\b/i,
  fr: /[àâçéèêëîïôœûù«]|\b(?:les|une|est|pour|vous|votre|avec|cette|dans|sur|sont|pas|et|le|par|aux)\b/i,
}
const order = ["en", "de", "fr"] as const

/** Returns the strings within a node of the syntax tree. */
const textOf = (node: unknown): string => {
  if (typeof node !== "object" || node === null) return ""
  if (Array.isArray(node)) return node.map(textOf).join(" ")
  const { type, value } = node as { readonly type?: string; readonly value?: { readonly cooked?: string } | string }
  if (type === "Literal") return typeof value === "string" ? value : ""
  if (type === "TemplateElement") return (value as { readonly cooked?: string }).cooked ?? ""
  return Object.entries(node)
    .map(([key, inner]) => (key === "key" ? "" : textOf(inner)))
    .join(" ")
}

/** Returns the arrays of three elements that contain a German and a French text. */
const translationsOf = (node: unknown, found: Array<ReadonlyArray<string>> = []) => {
  if (typeof node !== "object" || node === null) return found
  const { type, elements } = node as { readonly type?: string; readonly elements?: ReadonlyArray<unknown> }
  if (type === "ArrayExpression" && elements?.length === 3) {
    const texts = elements.map((element) => textOf(element).replaceAll(/\{\w+\}/g, ""))
    const has = (language: "de" | "fr") => texts.some((text) => marks[language].test(text))
    if (has("de") && has("fr")) found.push(texts)
  }
  for (const inner of Object.values(node)) translationsOf(inner, found)
  return found
}

/** Returns the texts of a source file that contain a mark of another language than that of their place. */
const misplaced = (file: string, source: string) =>
  translationsOf(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" })).map((texts) =>
    texts.flatMap((text, at) =>
      order.flatMap((language, other) =>
        other !== at && marks[language].test(text) ? [`${file}: ${language} in place of ${order[at]}: ${text}`] : [],
      ),
    ),
  )

describe("Texts in three languages", () => {
  it("are in the order English, German, French", () => {
    const found = sources()
      .filter((file) => file.startsWith("packages/"))
      .flatMap((file) => {
        const source = readFileSync(path.join(root, file), "utf8")
        return /[äöüß]/.test(source) ? misplaced(file, source) : []
      })
    expect(found.length).toBeGreaterThan(500)
    expect(found.flat()).toEqual([])
  })
})
