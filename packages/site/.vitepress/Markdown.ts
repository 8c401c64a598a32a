/** What the pages of `docs/` need beyond Markdown, so that they also read well in an editor and at a code host. */
import { readFileSync } from "node:fs"
import * as path from "node:path"
import type { MarkdownRenderer } from "vitepress"

/** Returns the anchor of a heading, as code hosts make it. */
export const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-")

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;")

/** Returns a drawing as part of the page, whose colors follow the theme that the reader chose. */
const inlined = (file: string, alternative: string) =>
  readFileSync(file, "utf8")
    .replace(/<style>[\s\S]*?<\/style>/, "")
    .replace("<svg ", `<svg role="img" aria-label="${escape(alternative)}" class="drawing" `)
    .trim()

export const adapt = (docs: string) => (markdown: MarkdownRenderer) => {
  markdown.core.ruler.push("site", ({ tokens, env }: { tokens: Array<Token>; env: { path: string } }) => {
    const folder = path.dirname(env.path)
    // The start page has the heading of its own layout.
    if (/\/(?:README|index)\.md$/.test(env.path) && tokens[0]?.type === "heading_open") tokens.splice(0, 3)
    for (const { children } of tokens) {
      for (const [at, token] of (children ?? []).entries()) {
        if (token.type !== "link_open") continue
        const href = token.attrGet("href") ?? ""
        const isOutside = href.startsWith(".") && !path.join(folder, href).startsWith(docs)
        if (!isOutside) continue
        // The site has no page for other files of the repository, so their links become plain text.
        token.attrs = []
        const close = children!.slice(at).find(({ type }) => type === "link_close")!
        token.tag = close.tag = "span"
        token.type = close.type = "span"
      }
    }
  })
  const image = markdown.renderer.rules.image!
  markdown.renderer.rules.image = (tokens, at, options, env: { path: string }, self) => {
    const token = tokens[at]!
    const source = token.attrGet("src") ?? ""
    return source.endsWith(".svg")
      ? inlined(path.join(path.dirname(env.path), source), token.content)
      : image(tokens, at, options, env, self)
  }
}

interface Token {
  type: string
  tag: string
  attrs: Array<[string, string]> | null
  readonly children: Array<Token> | null
  readonly attrGet: (name: string) => string | null
}
