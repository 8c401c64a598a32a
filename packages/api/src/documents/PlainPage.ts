/** A page of the documentation without the built site: its text with a list of all pages, in the frame of other pages. */
import { Marked } from "marked"
import { escape, page } from "../pages/Page.ts"
import { type Document, index, plain, type Section, targetOf } from "./Pages.ts"

/** Returns the anchor of a heading, as GitHub makes it. */
const anchorOf = (heading: string) =>
  plain(heading)
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-")

export const addressOf = (name: string) => `/docs/${name === index ? "" : name}`

const render = (document: Document, names: ReadonlySet<string>): string => {
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return `<h${depth} id="${anchorOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens)
        const target = targetOf(document.name, href, names)
        const address = target === undefined ? undefined : `${addressOf(target.page)}${target.anchor}`
        const isAbsolute = /^(?:[a-z]+:|\/)/.test(href)
        return address === undefined && !isAbsolute ? text : `<a href="${escape(address ?? href)}">${text}</a>`
      },
      image: ({ text }) => escape(text),
      table(token) {
        const row = (cells: ReadonlyArray<(typeof token.header)[number]>, kind: "th" | "td") =>
          `<tr>${cells.map(({ tokens }) => `<${kind}>${this.parser.parseInline(tokens)}</${kind}>`).join("")}</tr>`
        const body = token.rows.map((cells) => row(cells, "td")).join("")
        // A wide table scrolls separately from the page, also with the keyboard.
        return `<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead>${row(token.header, "th")}</thead><tbody>${body}</tbody></table></div>\n`
      },
      code: ({ text, lang = "" }) => {
        const [, label] = /\[(.+)\]/.exec(lang) ?? []
        return `${label === undefined ? "" : `<p class="small">${escape(label)}</p>`}<pre><code>${escape(text)}</code></pre>`
      },
    },
  })
  return marked.parse(document.source.replaceAll(/^:::.*$/gm, ""), { async: false })
}

const style = `<style>
.docs { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: 3rem } .docs > nav { font-size: 14px } .docs > nav ul { list-style: none; padding: 0; margin: 0 0 1rem } .docs > nav p { font-weight: 600; margin: 0 }
.docs > nav a { display: block; padding: .25rem 0; color: var(--muted); text-decoration: none } .docs > nav a[aria-current] { color: var(--text); font-weight: 600 }
.docs .table { overflow-x: auto; margin-bottom: 1rem } .docs table { border-collapse: collapse; min-width: 100%; font-size: 14px } .docs :is(th, td) { text-align: left; vertical-align: top; padding: .45rem .75rem .45rem 0; border-bottom: 1px solid var(--line) }
.docs article h2 { margin-top: 2.5rem } .docs h3 { margin: 1.5rem 0 .5rem } .docs li { margin-bottom: .3rem }
@media (max-width: 50rem) { .docs { grid-template-columns: minmax(0, 1fr); gap: 1rem } .docs > nav { order: 1 } }
@media print { .docs > nav { display: none } .docs { display: block } }
</style>`

export const plainPage = (sections: ReadonlyArray<Section>, document: Document) => {
  const names = new Set(sections.flatMap(({ documents }) => documents.map(({ name }) => name)))
  const list = sections
    .map(({ title, documents }) => {
      const items = documents.map(
        ({ name, title: text }) =>
          `<li><a href="${addressOf(name)}"${name === document.name ? ' aria-current="page"' : ""}>${escape(text)}</a></li>`,
      )
      return `<p>${escape(title)}</p><ul>${items.join("")}</ul>`
    })
    .join("")
  return page({
    title: document.title,
    description: document.about.slice(0, 160),
    broad: true,
    forEveryone: true,
    head: `<link rel="alternate" type="text/markdown" href="/docs/${document.name}.md">${style}`,
    body: `<div class="docs"><nav aria-label="Documentation">${list}</nav><article>${render(document, names)}<p class="small"><a href="/docs/${document.name}.md">This page as Markdown</a></p></article></div>`,
  })
}
