/**
 * Renders a problem as an HTTP response (RFC 9457), with the members that only the HTTP edge knows and the headers of its
 * status.
 */
import { type AddressBook, problemUrl } from "@svc/domain/Addresses"
import type { Problem } from "@svc/domain/problems/Problem"
import { byCode } from "@svc/domain/problems/Problem"
import * as Metrics from "@svc/cluster/observe/Metrics"
import { Schema } from "effect"
import { HttpServerResponse } from "effect/http"

const encoders = new Map(
  Object.entries(byCode).map(([code, problem]) => [code, Schema.encodeUnknownSync(problem as Schema.Codec<unknown>)]),
)

/** Cached bodies of frequent problems. */
const encoded = new WeakMap<Problem, Record<string, unknown>>()
const bodyOf = (problem: Problem) => {
  const known = encoded.get(problem)
  if (known !== undefined) return known
  const body = encoders.get(problem.code)!(problem) as Record<string, unknown>
  encoded.set(problem, body)
  return body
}

const problems = Metrics.counter(
  "svc_problems_total",
  "Refusals by their code",
  ["code"],
  Object.keys(byCode).map((code) => [code] as const),
)

export const render = (
  book: Pick<AddressBook, "baseUrl">,
  requestId: string,
  problem: Problem,
): HttpServerResponse.HttpServerResponse => {
  const body = bodyOf(problem)
  problems.of(problem.code).n++
  const headers: Record<string, string> = {}
  if (problem.status === 401) headers["www-authenticate"] = "Bearer"
  // RFC 6750 section 3.1. Scope names contain neither quotes nor backslashes.
  if (problem.code === "scope_missing") {
    headers["www-authenticate"] = `Bearer error="insufficient_scope", scope="${(problem.scopes ?? []).join(" ")}"`
  }
  if (problem.retry_after_seconds !== undefined && (problem.status === 429 || problem.status === 503)) {
    headers["retry-after"] = String(problem.retry_after_seconds)
  }
  const response = HttpServerResponse.jsonUnsafe(
    { ...body, instance: requestId, doc_url: problemUrl(book, problem.code) },
    { status: problem.status, contentType: "application/problem+json", headers },
  )
  codes.set(response.body, problem.code)
  return response
}

/** The codes of problems by body; the body object remains the same when headers are added. */
const codes = new WeakMap<object, Problem["code"]>()

/** Returns the code of the problem that a response body holds, or undefined if it holds none. */
export const problemIn = (body: object): Problem["code"] | undefined => codes.get(body)
