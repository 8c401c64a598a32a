/**
 * Serves the console at `/console/`. What was built is read once at the start, so that no path of a request ever reaches
 * the file system. Names of assets carry a hash of their content and are kept for good; the document is asked for again
 * each time. Where nothing was built the rest of the service stands, and the page says how to see why.
 */
import { hash } from "node:crypto"
import { existsSync } from "node:fs"
import { readdir, readFile } from "node:fs/promises"
import * as path from "node:path"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { codingFor } from "../http/Compression.ts"
import { page } from "../pages/Page.ts"

/** Beside the packed program, or where `packages/console/build.ts` puts what it makes. */
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

/** Nothing from elsewhere, nothing that stands in a text, no text that becomes markup. */
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

/** Every file of a build by its name below the folder; none where nothing was built. */
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
      etag: file.tag,
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

const nothing = HttpServerResponse.text("There is no such file.\n", {
  status: 404,
  headers: { "cache-control": "no-store" },
})

export const layer = (folder: string) =>
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const files = yield* Effect.promise(() => readAll(folder).catch(() => new Map<string, Built>()))
      const index = files.get("index.html")

      // The router takes the folder's own name along.
      const document = Effect.map(HttpServerRequest.HttpServerRequest, ({ url, headers }) =>
        /^\/console(?:\?|$)/.test(url)
          ? HttpServerResponse.redirect("/console/", { status: 308 })
          : index === undefined
            ? missing
            : answer(index, headers["accept-encoding"], ofDocument),
      )
      yield* router.add("GET", "/console/*", document)
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
