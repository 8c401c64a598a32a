/** The documentation site: the pages of `docs/` in the order of `docs/sections.json`, with search in the browser. */
import { existsSync, readFileSync } from "node:fs"
import * as path from "node:path"
import { defineConfig, type HeadConfig } from "vitepress"
import { home, service } from "./home.ts"
import { adapt, anchorOf } from "./Markdown.ts"

const docs = path.join(import.meta.dirname, "../../../docs")

interface Section {
  readonly title: string
  readonly pages: ReadonlyArray<string>
  /** The section is closed until the reader opens it. */
  readonly closed?: boolean
}
const sections = JSON.parse(readFileSync(path.join(docs, "sections.json"), "utf8")) as ReadonlyArray<Section>

/** Returns the title of a page, which is shorter in the navigation if a colon divides it. */
const titleOf = (page: string) =>
  /^# (.+)$/m.exec(readFileSync(path.join(docs, `${page}.md`), "utf8"))![1]!.replaceAll(/[`*]/g, "")

const sidebar = sections.map(({ title, pages, closed }) => ({
  text: title,
  collapsed: closed === true,
  items: pages
    .filter((page) => existsSync(path.join(docs, `${page}.md`)))
    .map((page) => ({ text: titleOf(page), link: `/${page}` })),
}))

export default defineConfig({
  lang: "en",
  title: "Agent Identity Service",
  description:
    "Documentation of the Agent Identity Service: a mailbox, a tunnel, a card and a vault for software agents.",
  base: "/docs/",
  srcDir: docs,
  cacheDir: path.join(import.meta.dirname, "../../../node_modules/.cache/site/vite"),
  cleanUrls: true,
  // Pages have a hashed name for their content, so the list of names is a file of its own and no inline script.
  metaChunk: true,
  // Without this, the switch between light and dark computes the styles of the whole page twice when a page is opened.
  appearance: { disableTransition: false },
  // A page has links to most others; loading them all would delay this one.
  router: { prefetchLinks: false },
  rewrites: { "README.md": "index.md" },
  // Links to the service itself.
  ignoreDeadLinks: "localhostLinks",
  head: [
    ["link", { rel: "icon", href: "/favicon.ico", sizes: "32x32" }],
    ["link", { rel: "icon", href: "/icon.svg", type: "image/svg+xml" }],
    ["meta", { name: "color-scheme", content: "light dark" }],
  ],
  transformHead: ({ pageData, assets }) => [
    ...assets
      .filter((file) => file.endsWith(".woff2"))
      .map((href): HeadConfig => ["link", { rel: "preload", href, as: "font", type: "font/woff2", crossorigin: "" }]),
    ["link", { rel: "alternate", type: "text/markdown", href: `/docs/${pageData.filePath}` }],
  ],
  transformPageData: (page) =>
    page.relativePath === "index.md" ? { frontmatter: { ...page.frontmatter, ...home } } : undefined,
  markdown: {
    config: adapt(docs),
    anchor: { slugify: anchorOf },
    languageAlias: { caddyfile: "nginx", haproxy: "nginx" },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    toc: { level: [2, 3] },
  },
  themeConfig: {
    siteTitle: "Agent Identity",
    nav: [
      { text: "Quick start", link: "/quick-start" },
      { text: "Concepts", link: "/concepts/identity", activeMatch: "^/concepts/" },
      { text: "Guides", link: "/guides/sign-up", activeMatch: "^/guides/" },
      // Pages of the service outside of the site.
      { text: "API", link: `${service}/api/docs`, target: "_self", noIcon: true },
      { text: "Console", link: `${service}/console/`, target: "_self", noIcon: true },
    ],
    sidebar,
    outline: { level: [2, 3], label: "On this page" },
    search: { provider: "local" },
    externalLinkIcon: false,
  },
})
