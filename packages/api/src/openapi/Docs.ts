/**
 * The OpenAPI document at `/api/openapi.json`, and the API reference at `/api/docs`. The reference loads nothing from other origins: the script is served here under a content hash
 * and cached permanently, and a policy forbids other requests.
 */
import { hash } from "node:crypto"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApi, HttpApiScalar } from "effect/http-api"
import { NotFound } from "@svc/domain/problems/Problem"
import { product } from "../pages/Page.ts"
import { document } from "./Document.ts"

const assets = "/api/docs/assets"
const fingerprint = (text: string) => hash("sha256", text, "base64url").slice(0, 22)

const immutable = { "cache-control": "public, max-age=31536000, immutable" }
const script = (text: string) =>
  HttpServerResponse.text(text, { contentType: "text/javascript; charset=utf-8", headers: immutable })

/** The library inlines the script into its page; it is extracted to be served separately. */
const readerScript = Effect.gen(function* () {
  const serve = yield* HttpRouter.toHttpEffect(HttpApiScalar.layer(HttpApi.make("none"), { path: "/" }))
  const request = HttpServerRequest.fromWeb(new Request("http://localhost/"))
  const { body } = yield* Effect.provideService(serve, HttpServerRequest.HttpServerRequest, request)
  const html = body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : ""
  const begin = html.indexOf("<script>") + "<script>".length
  return html.slice(begin, html.indexOf("</script>", begin))
}).pipe(Effect.scoped, Effect.orDie)

const configuration = {
  url: "/api/openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: "never",
  agent: { disabled: true },
  mcp: { disabled: true },
  favicon: "/icon.svg",
  metaData: { title: `Documentation · ${product}` },
  defaultOpenAllTags: false,
  authentication: { preferredSecurityScheme: "api_key" },
}

const start = `Scalar.createApiReference(document.getElementById("reference"), ${JSON.stringify(configuration)})\n`

const html = (scripts: ReadonlyArray<string>) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="/icon.svg" type="image/svg+xml"><title>Documentation · ${product}</title></head><body><div id="reference"></div><noscript><p>The reader needs scripts. The document itself is <a href="/api/openapi.json">/api/openapi.json</a>. <a href="/">Home</a></p></noscript>${scripts.map((src) => `<script src="${src}"></script>`).join("")}</body></html>`

/** Allows only scripts of this origin, the reader's styles, and inline images. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ")

interface Reader {
  readonly page: HttpServerResponse.HttpServerResponse
  /** The scripts by path. */
  readonly scripts: ReadonlyMap<string, HttpServerResponse.HttpServerResponse>
}

/** Runs in a separate runtime, because the service's runtime already has a router. */
const made = Effect.map(
  Effect.promise(() => Effect.runPromise(readerScript)),
  (reader): Reader => {
    const files = [
      [`${assets}/reader-${fingerprint(reader)}.js`, reader],
      [`${assets}/start-${fingerprint(start)}.js`, start],
    ] as const
    const text = html(files.map(([path]) => path))
    const page = HttpServerResponse.text(text, {
      contentType: "text/html; charset=utf-8",
      headers: {
        etag: `"${fingerprint(text)}"`,
        "cache-control": "public, max-age=0, must-revalidate",
        "content-security-policy": policy,
        "referrer-policy": "same-origin",
      },
    })
    return { page, scripts: new Map(files.map(([path, code]) => [path, script(code)])) }
  },
)

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    // Built on first use: the library's script is 3 MB, which most processes never need.
    const reader = yield* Effect.cached(made)
    yield* router.add(
      "GET",
      "/api/docs",
      Effect.map(reader, ({ page }) => page),
    )
    yield* router.add("GET", `${assets}/:file`, (request) =>
      Effect.flatMap(reader, ({ scripts }) => {
        const found = scripts.get(request.url.split("?", 1)[0]!)
        return found === undefined
          ? Effect.fail(new NotFound({ detail: "The file does not exist." }))
          : Effect.succeed(found)
      }),
    )
  }),
)

/** Stored as bytes that all responses share: from a string, each slow client would hold a copy of 1.5 MB. */
const documentBytes = new TextEncoder().encode(JSON.stringify(document))
const documentEtag = `"${hash("sha256", documentBytes, "base64url").slice(0, 27)}"`

export const documentLayer = HttpRouter.add(
  "GET",
  "/api/openapi.json",
  Effect.succeed(
    HttpServerResponse.uint8Array(documentBytes, {
      contentType: "application/json",
      headers: {
        etag: documentEtag,
        "cache-control": "public, max-age=0, must-revalidate",
        "access-control-allow-origin": "*",
      },
    }),
  ),
)
