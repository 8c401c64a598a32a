/**
 * Reads the metadata document at a client's id (draft-ietf-oauth-client-id-metadata-document section 4). The address is
 * untrusted, so the request uses the guarded client: public addresses only, no redirects, a small size limit and a
 * short timeout.
 */
import { Addresses } from "@svc/domain/Addresses"
import { type ClientDetails, readDocument } from "@svc/domain/oauth/Client"
import { Effect, Option, Result, Schema } from "effect"
import type { BufferedResponse } from "../net/BufferedResponse.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { freely } from "../net/Leaving.ts"
import { Timing } from "../Timing.ts"

/** Maximum size of a document in bytes. */
const atMost = 5 * 1024

/** The document is missing or invalid. `message` is for the developer of the client. */
export class DocumentRefused extends Schema.TaggedError<DocumentRefused>()("DocumentRefused", {
  message: Schema.String,
}) {}

/** A document, and how long it stays fresh. */
export interface ReadDocument {
  readonly details: ClientDetails
  readonly freshMillis: number
}

const refuse = (message: string) => Effect.fail(new DocumentRefused({ message }))

const parse = (body: Uint8Array): Option.Option<unknown> => {
  try {
    return Option.some(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)))
  } catch {
    return Option.none()
  }
}

/** Returns `max-age` within bounds: changes are noticed within a day, and no client can force a request each time. */
const freshFor = (cacheControl: string | null): number => {
  const seconds = Number(/(?:^|[\s,])max-age=(\d{1,9})/i.exec(cacheControl ?? "")?.[1] ?? "0")
  return Math.min(Math.max(seconds * 1000, Timing.documentFreshMillis.least), Timing.documentFreshMillis.most)
}

export const make = Effect.gen(function* () {
  const client = yield* GuardedClient
  const book = yield* Addresses

  const read = (
    id: string,
    { status, headers, body }: BufferedResponse,
  ): Effect.Effect<ReadDocument, DocumentRefused> => {
    if (status !== 200) return refuse(`The client_id URL responded with status ${status}.`)
    if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(headers.get("content-type") ?? "")) {
      return refuse("The response of the client_id URL is not JSON.")
    }
    const parsed = parse(body)
    if (Option.isNone(parsed)) return refuse("The response of the client_id URL is not valid JSON.")
    const details = readDocument(book, id, parsed.value)
    return Result.isFailure(details)
      ? refuse(details.failure.description)
      : Effect.succeed({ details: details.success, freshMillis: freshFor(headers.get("cache-control")) })
  }

  return Effect.fn("OAuthDocuments.fetch")((id: string) =>
    client.ask(new URL(id), { method: "GET", headers: { accept: "application/json" }, atMost }, freely).pipe(
      Effect.timeoutOrElse({
        duration: Timing.documentTimeoutMillis,
        orElse: () => refuse("The client_id URL did not respond in time."),
      }),
      Effect.catchTag("RequestFailed", ({ error }) =>
        refuse(
          error === "too_large"
            ? `The response of the client_id URL is longer than ${atMost} bytes.`
            : `The client_id URL cannot be reached (${error}).`,
        ),
      ),
      Effect.flatMap((answer) => read(id, answer)),
    ),
  )
})
