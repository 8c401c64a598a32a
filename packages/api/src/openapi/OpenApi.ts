/** The OpenAPI document at `/api/openapi.json`. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { document } from "./Document.ts"

/** Stored as bytes that all responses share: from a string, each slow client would hold a copy of 1.5 MB. */
const bytes = new TextEncoder().encode(JSON.stringify(document))
const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 27)}"`

export const layer = HttpRouter.add(
  "GET",
  "/api/openapi.json",
  Effect.succeed(
    HttpServerResponse.uint8Array(bytes, {
      contentType: "application/json",
      headers: { etag, "cache-control": "public, max-age=0, must-revalidate", "access-control-allow-origin": "*" },
    }),
  ),
)
