/** A path that does not exist, as a browser is shown it; a program gets the problem. */
import type { HttpServerRequest } from "effect/http"
import { page } from "./Page.ts"

const nowhere = page({
  status: 404,
  title: "There is no such page",
  body: `<h1>There is no such page</h1><p>Check the address, or go <a href="/">home</a>. The API is described in its <a href="/api/docs">documentation</a>.</p>`,
})

/** Undefined where no browser asks. */
export const shown = ({ method, headers }: HttpServerRequest.HttpServerRequest) =>
  (method === "GET" || method === "HEAD") && /\btext\/html\b/.test(headers["accept"] ?? "") ? nowhere : undefined
