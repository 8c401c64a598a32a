/**
 * The documentation: the site that `packages/site` builds at `/docs/`, each page as Markdown at `/docs/{page}.md`, an index
 * and the whole text for models (`/llms.txt`, `/llms-full.txt`, https://llmstxt.org), and the skill for coding agents
 * (`/skill.md`), in which `{base_url}` is this deployment. Without a build, pages have no search and no drawings. The files
 * are read with the first request, and paths of requests never reach the file system.
 */
import { hash } from "node:crypto"
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import * as path from "node:path"
import { type AddressBook, Addresses } from "@svc/domain/Addresses"
import { NotFound } from "@svc/domain/problems/Problem"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { index, llmsOf, localized, readSections, skillFile } from "./Pages.ts"
import { plainPage } from "./PlainPage.ts"

/** The site lies beside the packaged program, or where `packages/site/build.ts` writes it. */
const packed = path.join(import.meta.dirname, "site")
export const built = existsSync(packed)
  ? packed
  : path.join(import.meta.dirname, "../../../../node_modules/.cache/site/dist")

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".woff2": "font/woff2",
}

const tagOf = (content: string | Uint8Array) => `"${hash("sha256", content, "base64url").slice(0, 22)}"`

const revalidated = { "cache-control": "public, max-age=0, must-revalidate" }

/** Allows the two inline scripts of a page, which set the theme before the first paint, by their hashes. */
const policyOf = (html: string) => {
  const scripts = [...html.matchAll(/<script(?![^>]*\ssrc=)[^>]*>([^<]+)<\/script>/g)]
  const hashes = scripts.map(([, script]) => ` 'sha256-${hash("sha256", script!, "base64")}'`)
  return `default-src 'none'; script-src 'self'${hashes.join("")}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'`
}

interface SiteFile {
  readonly body: Uint8Array
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
}

/** Returns every file of the site by its relative path; empty without a build. */
const readSite = async (folder: string, book: AddressBook): Promise<ReadonlyMap<string, SiteFile>> => {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const files = names.map((name) => name.replaceAll("\\", "/")).filter((name) => path.extname(name) in types)
  const read = async (name: string): Promise<readonly [string, SiteFile]> => {
    const file = await readFile(path.join(folder, name))
    const contentType = types[path.extname(name)]!
    const page = name.replace("assets/", "")
    const body = contentType.startsWith("text/") ? Buffer.from(localized(page, file.toString(), book)) : file
    if (name.startsWith("assets/")) {
      return [name, { body, contentType, headers: { "cache-control": "public, max-age=31536000, immutable" } }]
    }
    const headers = {
      ...revalidated,
      etag: tagOf(body),
      "content-security-policy": policyOf(body.toString()),
      "referrer-policy": "same-origin",
    }
    return [name, { body, contentType, headers }]
  }
  return new Map(await Promise.all(files.map(read)))
}

const respond = ({ body, contentType, headers }: SiteFile) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
    headers["etag"] !== undefined && request.headers["if-none-match"] === headers["etag"]
      ? HttpServerResponse.empty({ status: 304, headers })
      : HttpServerResponse.uint8Array(body, { contentType, headers }),
  )

const text = (content: string, contentType = "text/markdown; charset=utf-8") =>
  respond({
    body: Buffer.from(content),
    contentType,
    headers: { ...revalidated, etag: tagOf(content), "access-control-allow-origin": "*" },
  })

const none = new NotFound({ detail: "The documentation has no page of this name. `/docs/` lists all pages." })

export const layer = (folder: string) =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const book = yield* Addresses
      const { baseUrl } = book
      const sections = yield* Effect.cached(Effect.promise(() => readSections(book)))
      const site = yield* Effect.cached(Effect.promise(() => readSite(folder, book)))
      const documents = Effect.map(sections, (all) => all.flatMap((section) => section.documents))
      const documentOf = (name: string) =>
        Effect.flatMap(documents, (all) => {
          const document = all.find((one) => one.name === name)
          return document === undefined ? Effect.fail(none) : Effect.succeed(document)
        })

      const pageOf = Effect.fnUntraced(function* (name: string) {
        const files = yield* site
        const file = files.get(name) ?? files.get(`${name === index ? "index" : name}.html`)
        if (file !== undefined) return yield* respond(file)
        if (files.size > 0) return yield* none
        return plainPage(yield* sections, yield* documentOf(name))
      })

      // The router includes the folder's own name.
      yield* router.add(
        "GET",
        "/docs/*",
        Effect.gen(function* () {
          const { url } = yield* HttpServerRequest.HttpServerRequest
          const place = url.split("?", 1)[0]!
          if (place === "/docs") return HttpServerResponse.redirect("/docs/", { status: 308 })
          const name = place.slice("/docs/".length)
          if (name.endsWith(".md")) return yield* text((yield* documentOf(name.slice(0, -3))).markdown)
          return yield* pageOf(name === "" ? index : name)
        }),
      )
      yield* router.add(
        "GET",
        "/llms.txt",
        Effect.flatMap(sections, (all) => text(llmsOf(all, baseUrl), "text/plain; charset=utf-8")),
      )
      yield* router.add(
        "GET",
        "/llms-full.txt",
        Effect.flatMap(documents, (all) =>
          text(all.map(({ markdown }) => markdown.trim()).join("\n\n"), "text/plain; charset=utf-8"),
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
