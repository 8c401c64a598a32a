/**
 * The documentation: each page of `docs/` as HTML at `/docs/{page}` and as Markdown at `/docs/{page}.md`, an index and the
 * whole text for models (`/llms.txt`, `/llms-full.txt`, https://llmstxt.org), and the skill for coding agents
 * (`/skill.md`), in which `{base_url}` is this deployment. The files are read with the first request, and paths of requests
 * never reach the file system.
 */
import { hash } from "node:crypto"
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import * as path from "node:path"
import { Addresses } from "@svc/domain/Addresses"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Marked } from "marked"
import { escape, page } from "../pages/Page.ts"

/** The pages lie beside the packaged program, or in the folders of the checkout. */
const packed = path.join(import.meta.dirname, "docs")
const checkout = path.join(import.meta.dirname, "../../../..")
const folder = existsSync(packed) ? packed : path.join(checkout, "docs")
const skillFile = existsSync(packed) ? path.join(packed, "SKILL.md") : path.join(checkout, "packages/skill/SKILL.md")

/** The page at `/docs`, which leads to all others. */
const index = "README"

interface Document {
  readonly name: string
  readonly title: string
  /** The first paragraph as plain text, which says for whom the page is and what it is about. */
  readonly about: string
  readonly markdown: string
}

/** Returns Markdown without links, emphasis and code marks. */
const plain = (text: string) =>
  text
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim()

const documentOf = (name: string, markdown: string): Document => {
  const [, title = name] = /^# (.+)$/m.exec(markdown) ?? []
  const [, about = ""] = /^# .+\n+((?:[^\n#|].*\n?)+)/m.exec(markdown) ?? []
  return { name, title: plain(title), about: plain(about), markdown }
}

/** Returns the documents by name, the index first. */
const readDocuments = async (): Promise<ReadonlyMap<string, Document>> => {
  const names = (await readdir(folder)).filter((file) => file.endsWith(".md") && file !== "SKILL.md")
  const all = await Promise.all(
    names.map(async (file) => documentOf(file.slice(0, -3), await readFile(path.join(folder, file), "utf8"))),
  )
  const sorted = all.toSorted((one, other) =>
    one.name === index ? -1 : other.name === index ? 1 : one.name < other.name ? -1 : 1,
  )
  return new Map(sorted.map((document) => [document.name, document]))
}

/** Returns the anchor of a heading, as GitHub makes it. */
const anchorOf = (heading: string) =>
  plain(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-")

/** Returns the address of a link in a page: pages link to each other's files; files that are not served have no address. */
const addressOf = (href: string): string | undefined => {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href
  const [, name, anchor = ""] = /^(?:\.\/)?([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (name !== undefined) return `/docs${name === index ? "" : `/${name}`}${anchor}`
  return /^\.\.\/README\.md(#.*)?$/.test(href) ? "/docs" : undefined
}

const marked = new Marked({
  renderer: {
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    link({ href, tokens }) {
      const address = addressOf(href)
      const text = this.parser.parseInline(tokens)
      return address === undefined ? text : `<a href="${escape(address)}">${text}</a>`
    },
    image: ({ text }) => escape(text),
    table(token) {
      const row = (cells: ReadonlyArray<(typeof token.header)[number]>, kind: "th" | "td") =>
        `<tr>${cells.map(({ tokens }) => `<${kind}>${this.parser.parseInline(tokens)}</${kind}>`).join("")}</tr>`
      const body = token.rows.map((cells) => row(cells, "td")).join("")
      // A wide table scrolls by itself, also with the keyboard.
      return `<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>\n`
    },
  },
})

const style = `<style>
.docs { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: 3rem } .docs > nav { font-size: 14px } .docs > nav ul { list-style: none; padding: 0; margin: 0 }
.docs > nav a { display: block; padding: .25rem 0; color: var(--muted); text-decoration: none } .docs > nav a[aria-current] { color: var(--text); font-weight: 600 }
.docs .table { overflow-x: auto; margin-bottom: 1rem } .docs table { border-collapse: collapse; min-width: 100%; font-size: 14px } .docs :is(th, td) { text-align: left; vertical-align: top; padding: .45rem .75rem .45rem 0; border-bottom: 1px solid var(--line) }
.docs article h2 { margin-top: 2.5rem } .docs h3 { margin: 1.5rem 0 .5rem } .docs li { margin-bottom: .3rem }
@media (max-width: 50rem) { .docs { grid-template-columns: minmax(0, 1fr); gap: 1rem } .docs > nav { order: 1 } }
@media print { .docs > nav { display: none } .docs { display: block } }
</style>`

const listOf = (documents: ReadonlyMap<string, Document>, current: string) =>
  [...documents.values()]
    .map(({ name, title }) => {
      const href = name === index ? "/docs" : `/docs/${name}`
      return `<li><a href="${href}"${name === current ? ' aria-current="page"' : ""}>${escape(title)}</a></li>`
    })
    .join("")

const htmlOf = (documents: ReadonlyMap<string, Document>, { name, title, about, markdown }: Document) =>
  page({
    title,
    description: about.slice(0, 160),
    broad: true,
    forEveryone: true,
    head: `<link rel="alternate" type="text/markdown" href="/docs/${name}.md">${style}`,
    body: `<div class="docs"><nav aria-label="Documentation"><ul>${listOf(documents, name)}<li><a href="/api/docs">API reference</a></li></ul></nav><article>${marked.parse(markdown, { async: false })}<p class="small"><a href="/docs/${name}.md">This page as Markdown</a></p></article></div>`,
  })

/** Returns the index for models (https://llmstxt.org). */
const llmsOf = (documents: ReadonlyMap<string, Document>, baseUrl: string): string =>
  [
    "# Agent Identity Service",
    "",
    "> One call gives a software agent an identity: a name, a mailbox, a tunnel, an A2A card, a vault, social accounts and signed webhooks, over REST and MCP.",
    "",
    "## Start",
    "",
    `- [Skill for coding agents](${baseUrl}/skill.md): set up and use an Identity from nothing`,
    `- [OpenAPI document](${baseUrl}/api/openapi.json): every endpoint with its schemas`,
    `- MCP server: ${baseUrl}/api/mcp`,
    "",
    "## Pages",
    "",
    ...[...documents.values()].map(({ name, title, about }) => {
      const [first = ""] = /^.*?\.(?=\s|$)/.exec(about) ?? []
      return `- [${title}](${baseUrl}/docs/${name}.md)${first === "" ? "" : `: ${first}`}`
    }),
    "",
  ].join("\n")

const text = (content: string, contentType = "text/markdown; charset=utf-8") =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const etag = `"${hash("sha256", content, "base64url").slice(0, 22)}"`
    const common = { etag, "cache-control": "public, max-age=0, must-revalidate", "access-control-allow-origin": "*" }
    return headers["if-none-match"] === etag
      ? HttpServerResponse.empty({ status: 304, headers: common })
      : HttpServerResponse.text(content, { contentType, headers: common })
  })

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const { baseUrl } = yield* Addresses
    const documents = yield* Effect.cached(Effect.promise(readDocuments))
    const rendered = new Map<string, HttpServerResponse.HttpServerResponse>()
    const none = new NotFound({ detail: "The documentation has no page of this name. `/docs` lists all pages." })

    const htmlPage = Effect.fnUntraced(function* (name: string) {
      const all = yield* documents
      const document = all.get(name)
      if (document === undefined) return yield* none
      const made = rendered.get(name) ?? htmlOf(all, document)
      rendered.set(name, made)
      return made
    })

    yield* router.add("GET", "/docs", htmlPage(index))
    yield* router.add(
      "GET",
      "/docs/:page",
      Effect.gen(function* () {
        const name = (yield* HttpRouter.RouteContext).params["page"] ?? ""
        if (!name.endsWith(".md")) return yield* htmlPage(name)
        const document = (yield* documents).get(name.slice(0, -3))
        return document === undefined ? yield* none : yield* text(document.markdown)
      }),
    )
    yield* router.add(
      "GET",
      "/llms.txt",
      Effect.flatMap(documents, (all) => text(llmsOf(all, baseUrl), "text/plain; charset=utf-8")),
    )
    yield* router.add(
      "GET",
      "/llms-full.txt",
      Effect.flatMap(documents, (all) =>
        text([...all.values()].map(({ markdown }) => markdown.trim()).join("\n\n"), "text/plain; charset=utf-8"),
      ),
    )
    yield* router.add(
      "GET",
      "/skill.md",
      Effect.flatMap(
        Effect.promise(() => readFile(skillFile, "utf8")),
        (skill) => text(skill.replaceAll("{base_url}", baseUrl)),
      ),
    )
  }),
)
