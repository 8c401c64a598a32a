/**
 * The pages of `docs/` in the order of `sections.json`, as Markdown for models: links are absolute, pictures are their
 * descriptions, and links to files that the service does not serve are plain text.
 */
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import * as path from "node:path"
import type { AddressBook } from "@svc/domain/Addresses"

/** The pages lie beside the packaged program, or in the folders of the checkout. */
const packed = path.join(import.meta.dirname, "docs")
const checkout = path.join(import.meta.dirname, "../../../..")
const folder = existsSync(packed) ? packed : path.join(checkout, "docs")
export const skillFile = existsSync(packed)
  ? path.join(packed, "SKILL.md")
  : path.join(checkout, "packages/skill/SKILL.md")

/** The page that leads to all others. */
export const index = "README"

export interface Document {
  /** The path below `docs/`, without its extension. */
  readonly name: string
  readonly title: string
  /** The first paragraph as plain text, which says for whom the page is and what it is about. */
  readonly about: string
  readonly source: string
  readonly markdown: string
}

export interface Section {
  readonly title: string
  readonly documents: ReadonlyArray<Document>
}

/** Returns Markdown without links, emphasis and code marks. */
export const plain = (text: string) =>
  text
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim()

/** Pages for readers who follow them step by step, so they name this deployment. */
const isFollowed = (name: string) => /^(?:quick-start|concepts\b|guides\b)/.test(name)

/** Replaces the addresses in a page, or in a file of the site made from it, with those of this deployment. */
export const localized = (name: string, text: string, { baseUrl, mailDomain }: AddressBook) => {
  const linked = text.replaceAll("https://service.invalid", baseUrl)
  return isFollowed(name)
    ? linked.replaceAll("http://localhost:8080", baseUrl).replaceAll("mail.localhost", mailDomain)
    : linked
}

/** Applies a change to the text outside of code blocks. */
const outsideCode = (markdown: string, change: (text: string) => string) =>
  markdown
    .split(/^(```[\s\S]*?^```$)/m)
    .map((part, at) => (at % 2 === 1 ? part : change(part)))
    .join("")

/** Returns the page that a link leads to with its anchor; undefined for other files. */
export const targetOf = (name: string, href: string, names: ReadonlySet<string>) => {
  const [file = "", anchor] = href.split("#")
  const page = file === "" ? name : path.posix.join(path.posix.dirname(name), file).replace(/\.md$/, "")
  return names.has(page) ? { page, anchor: anchor === undefined ? "" : `#${anchor}` } : undefined
}

const standalone = (name: string, markdown: string, names: ReadonlySet<string>, { baseUrl }: AddressBook) =>
  outsideCode(markdown, (text) =>
    text
      .replaceAll(/!\[([^\]]*)\]\([^)]*\)/g, "(Picture: $1)")
      .replaceAll(/\[([^\]]*)\]\(([^()\s]+)\)/g, (whole, words: string, href: string) => {
        if (/^(?:[a-z]+:|\/)/.test(href)) return whole
        const target = targetOf(name, href, names)
        return target === undefined ? words : `[${words}](${baseUrl}/docs/${target.page}.md${target.anchor})`
      }),
  )

const documentOf = (name: string, file: string, names: ReadonlySet<string>, book: AddressBook): Document => {
  const source = localized(name, file, book)
  const [, title = name] = /^# (.+)$/m.exec(source) ?? []
  const [, about = ""] = /^# .+\n+((?:[^\n#|!].*\n?)+)/m.exec(source) ?? []
  return { name, title: plain(title), about: plain(about), source, markdown: standalone(name, source, names, book) }
}

/** Returns the sections with their pages. The first one has the index; the last one the pages without a place. */
export const readSections = async (book: AddressBook): Promise<ReadonlyArray<Section>> => {
  const files = (await readdir(folder, { recursive: true })).map((file) => file.replaceAll("\\", "/"))
  const names = new Set(
    files.filter((file) => file.endsWith(".md") && file !== "SKILL.md").map((file) => file.slice(0, -3)),
  )
  const read = async (name: string) =>
    documentOf(name, await readFile(path.join(folder, `${name}.md`), "utf8"), names, book)
  const order = JSON.parse(await readFile(path.join(folder, "sections.json"), "utf8")) as ReadonlyArray<{
    readonly title: string
    readonly pages: ReadonlyArray<string>
  }>
  const placed = new Set([index, ...order.flatMap(({ pages }) => pages)])
  const sections = await Promise.all(
    [
      { title: "Overview", pages: [index] },
      ...order,
      { title: "More", pages: [...names].filter((name) => !placed.has(name)).sort() },
    ].map(async ({ title, pages }) => ({
      title,
      documents: await Promise.all(pages.filter((name) => names.has(name)).map(read)),
    })),
  )
  return sections.filter(({ documents }) => documents.length > 0)
}

/** Returns the index for models (https://llmstxt.org). */
export const llmsOf = (sections: ReadonlyArray<Section>, base: string): string =>
  [
    "# Agent Identity Service",
    "",
    "> One call gives a software agent an identity: a name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks, over REST and MCP.",
    "",
    "## For agents",
    "",
    `- [Skill for coding agents](${base}/skill.md): set up and use an Identity from nothing`,
    `- [OpenAPI document](${base}/api/openapi.json): every endpoint with its schemas`,
    `- MCP server: ${base}/api/mcp`,
    ...sections.flatMap(({ title, documents }) => [
      "",
      `## ${title}`,
      "",
      ...documents.map((document) => {
        const [first = ""] = /^.*?\.(?=\s|$)/.exec(document.about) ?? []
        return `- [${document.title}](${base}/docs/${document.name}.md)${first === "" ? "" : `: ${first}`}`
      }),
    ]),
    "",
  ].join("\n")
