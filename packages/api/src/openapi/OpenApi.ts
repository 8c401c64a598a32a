/** The OpenAPI document at `/api/openapi.json`. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { document } from "./Document.ts"

const text = JSON.stringify(document)
const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 27)}"`

export const layer = HttpRouter.add(
  "GET",
  "/api/openapi.json",
  Effect.succeed(
    HttpServerResponse.text(text, {
      contentType: "application/json",
      headers: { etag, "cache-control": "public, max-age=0, must-revalidate", "access-control-allow-origin": "*" },
    }),
  ),
)
