/**
 * Serves the console at `/console/`. The build is read once at start, so request paths never reach the file system. Asset
 * names contain a content hash and are cached permanently; the document is revalidated. Without a build the page explains
 * how to create one, and the rest of the service works.
 */
import { hash } from "node:crypto"
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { tagOfCoding } from "../EntityTags.ts"
import { codingFor } from "../http/Compression.ts"
import { page } from "../pages/Page.ts"
import { font } from "../pages/Style.ts"

/** The build lies beside the packaged program, or where `packages/console/build.ts` writes it. */
export const built =
  [path.join(import.meta.dirname, "console")].find((folder) => existsSync(path.join(folder, "index.html"))) ??
  path.join(import.meta.dirname, "../../../../node_modules/.cache/console/dist")

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
}

/** Blocks content of other origins, inline code, and text that is parsed as markup. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ")

const ofDocument = {
  "cache-control": "no-cache",
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "same-origin",
}
const ofAsset = { "cache-control": "public, max-age=31536000, immutable" }

interface Built {
  readonly type: string
  readonly tag: string
  readonly plain: Uint8Array
  readonly br: Uint8Array | undefined
  readonly gzip: Uint8Array | undefined
}

const readBuilt = async (file: string): Promise<Built> => {
  const packed = (suffix: string) => readFile(`${file}${suffix}`).catch(() => undefined)
  const plain = await readFile(file)
  return {
    type: types[path.extname(file)]!,
    tag: `"${hash("sha256", plain, "base64url").slice(0, 22)}"`,
    plain,
    br: await packed(".br"),
    gzip: await packed(".gz"),
  }
}

/** Returns every file of a build by its relative path; empty without a build. */
const readAll = async (folder: string): Promise<ReadonlyMap<string, Built>> => {
  const names = ["index.html", ...(await readdir(path.join(folder, "assets"))).map((name) => `assets/${name}`)]
  const files = names.filter((name) => path.extname(name) in types)
  return new Map(
    await Promise.all(files.map(async (name) => [name, await readBuilt(path.join(folder, name))] as const)),
  )
}

const answer = (file: Built, acceptEncoding: string | undefined, headers: Readonly<Record<string, string>>) => {
  const coding = codingFor(acceptEncoding)
  const packed = coding === undefined ? undefined : file[coding]
  return HttpServerResponse.uint8Array(packed ?? file.plain, {
    contentType: file.type,
    headers: {
      ...headers,
      etag: packed === undefined ? file.tag : tagOfCoding(file.tag, coding!),
      vary: "accept-encoding",
      ...(packed === undefined ? {} : { "content-encoding": coding! }),
    },
  })
}

const missing = page({
  status: 503,
  title: "The console is not built",
  body: `<h1>The console is not built</h1><p>The service itself is up: <a href="/api/docs">documentation</a>, <a href="/api/healthz">health</a>.</p><p>To see what went wrong, run in the checkout</p><pre>node packages/console/build.ts</pre><p>and start the service again.</p>`,
})

const nothing = HttpServerResponse.text("The file does not exist.\n", {
  status: 404,
  headers: { "cache-control": "no-store" },
})

export const layer = (folder: string) =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const files = yield* Effect.promise(() => readAll(folder).catch(() => new Map<string, Built>()))
      const index = files.get("index.html")

      // The router includes the folder's own name.
      const document = Effect.map(HttpServerRequest.HttpServerRequest, ({ url, headers }) =>
        /^\/console(?:\?|$)/.test(url)
          ? HttpServerResponse.redirect("/console/", { status: 308 })
          : index === undefined
            ? missing
            : answer(index, headers["accept-encoding"], ofDocument),
      )
      yield* router.add("GET", "/console/*", document)
      // The console's typeface under a fixed name for the other pages.
      const typeface = [...files].find(([name]) => name.endsWith(".woff2"))?.[1]
      yield* router.add(
        "GET",
        font,
        Effect.succeed(
          typeface === undefined ? nothing : answer(typeface, undefined, { "cache-control": "public, max-age=86400" }),
        ),
      )
      yield* router.add(
        "GET",
        "/console/assets/:file",
        Effect.gen(function* () {
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          const file = files.get(`assets/${(yield* HttpRouter.RouteContext).params["file"]}`)
          return file === undefined ? nothing : answer(file, headers["accept-encoding"], ofAsset)
        }),
      )
    }),
  )
