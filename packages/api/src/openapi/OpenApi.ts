/** The OpenAPI document and its reader: `/api/openapi.json`, `/api/docs`. */
import { createHash } from "node:crypto"
import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpApiScalar } from "effect/http-api"
import { described, document } from "./Document.ts"

const text = JSON.stringify(document)
const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 27)}"`

export const layer = Layer.mergeAll(
  HttpRouter.add(
    "GET",
    "/api/openapi.json",
    HttpServerResponse.text(text, {
      contentType: "application/json",
      headers: { etag, "cache-control": "public, max-age=0, must-revalidate", "access-control-allow-origin": "*" },
    }),
  ),
  HttpApiScalar.layer(described, { path: "/api/docs" }),
)
