/**
 * The known OAuth clients. A registered client has an id that is a hash of its registration, so that repeating it
 * creates nothing new. Other clients are described by the document at their id, which is cached while it is fresh, and
 * longer while it cannot be read.
 */
import { Addresses } from "@svc/domain/Addresses"
import { type ClientDetails, isDocument, normalised, readDocument } from "@svc/domain/oauth/Client"
import { Clock, Context, Effect, Layer, Result, Schema } from "effect"
import { sha256 } from "../credentials/CredentialMint.ts"
import { PublicLimits } from "../limits/PublicLimits.ts"
import { type BufferedResponse, freshFor, jsonOf } from "../net/BufferedResponse.ts"
import { GuardedClient } from "../net/GuardedClient.ts"
import { unrestricted } from "../net/SendPermission.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

export interface OAuthClient extends ClientDetails {
  readonly id: string
  /** The host of the document that describes the client; null if it registered. */
  readonly describedBy: string | null
}

interface Row {
  readonly id: string
  readonly name: string
  readonly redirects: ReadonlyArray<string>
  readonly id_token_alg: ClientDetails["idTokenAlgorithm"]
  readonly fetched_at: Date | null
  readonly fresh_until: Date | null
}

const view = ({ id, name, redirects, id_token_alg, fetched_at }: Row): OAuthClient => ({
  id,
  name,
  redirects,
  idTokenAlgorithm: id_token_alg,
  describedBy: fetched_at === null ? null : new URL(id).hostname,
})

/** Returns the id of a registered client. */
const idOf = (details: ClientDetails) => `oc_${Buffer.from(sha256(normalised(details))).toString("base64url")}`

/** Maximum size of a document in bytes. */
const documentBytes = 5 * 1024

/** The document is missing or invalid. `message` is for the developer of the client. */
class DocumentRefused extends Schema.TaggedError<DocumentRefused>()("DocumentRefused", {
  message: Schema.String,
}) {}

/** A document, and how long it stays fresh. */
interface ReadDocument {
  readonly details: ClientDetails
  readonly freshMillis: number
}

const refuse = (message: string) => Effect.fail(new DocumentRefused({ message }))

/**
 * Returns a function that reads the metadata document at a client's id (draft-ietf-oauth-client-id-metadata-document
 * section 4). The address is untrusted, so the request uses the guarded client: public addresses only, no redirects, a
 * small size limit and a short timeout.
 */
const makeDocuments = Effect.gen(function* () {
  const client = yield* GuardedClient
  const book = yield* Addresses

  const read = (id: string, answer: BufferedResponse): Effect.Effect<ReadDocument, DocumentRefused> => {
    if (answer.status !== 200) return refuse(`The client_id URL responded with status ${answer.status}.`)
    const json = jsonOf(answer)
    if (json === undefined) return refuse("The response of the client_id URL is not valid JSON.")
    const details = readDocument(book, id, json)
    return Result.isFailure(details)
      ? refuse(details.failure.description)
      : Effect.succeed({ details: details.success, freshMillis: freshFor(answer.headers, Timing.documentFreshMillis) })
  }

  return Effect.fn("OAuthDocuments.fetch")((id: string) =>
    client
      .ask(new URL(id), { method: "GET", headers: { accept: "application/json" }, atMost: documentBytes }, unrestricted)
      .pipe(
        Effect.timeoutOrElse({
          duration: Timing.documentTimeoutMillis,
          orElse: () => refuse("The client_id URL did not respond in time."),
        }),
        Effect.catchTag("RequestFailed", ({ error }) =>
          refuse(
            error === "too_large"
              ? `The response of the client_id URL is longer than ${documentBytes} bytes.`
              : `The client_id URL cannot be reached (${error}).`,
          ),
        ),
        Effect.flatMap((answer) => read(id, answer)),
      ),
  )
})

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const book = yield* Addresses
  const limits = yield* PublicLimits
  const fetchDocument = yield* makeDocuments

  const find = (id: string) =>
    Effect.map(
      sql<Row>`select id, name, redirects, id_token_alg, fetched_at, fresh_until from oauth_client where id = ${id}`,
      ([row]) => row,
    )

  const keep = (
    id: string,
    { name, redirects, idTokenAlgorithm }: ClientDetails,
    now: Date,
    fetched: { readonly at: Date | null; readonly freshUntil: Date | null },
  ) => sql`
    insert into oauth_client as c (id, name, redirects, id_token_alg, seen_at, fetched_at, fresh_until)
    values (${id}, ${name}, ${redirects}, ${idTokenAlgorithm}, ${now}, ${fetched.at}, ${fetched.freshUntil})
    on conflict (id) do update
    set name = excluded.name, redirects = excluded.redirects, id_token_alg = excluded.id_token_alg, seen_at = excluded.seen_at,
        fetched_at = excluded.fetched_at, fresh_until = excluded.fresh_until
    where c.fetched_at is not null or c.seen_at < excluded.seen_at - interval '1 hour'`

  const document = Effect.fnUntraced(function* (id: string) {
    const now = yield* Clock.currentTimeMillis
    const known = yield* find(id)
    if (known?.fresh_until != null && known.fresh_until.getTime() > now) return view(known)
    const isUsable = known?.fetched_at != null && known.fetched_at.getTime() > now - Timing.documentKeptMillis
    return yield* limits.take("oauth_document", new URL(id).host).pipe(
      Effect.catchTag("rate_limited", () =>
        Effect.fail(new DocumentRefused({ message: "The client's document was requested too often. Wait a minute." })),
      ),
      Effect.andThen(fetchDocument(id)),
      Effect.flatMap(({ details, freshMillis }) =>
        Effect.as(keep(id, details, new Date(now), { at: new Date(now), freshUntil: new Date(now + freshMillis) }), {
          ...details,
          id,
          describedBy: new URL(id).hostname,
        } satisfies OAuthClient),
      ),
      // Documents of widely used clients have been unreachable for hours, so a cached one stays usable.
      Effect.catchTag("DocumentRefused", (refused) => (isUsable ? Effect.succeed(view(known)) : Effect.fail(refused))),
    )
  })

  return {
    /** Registers a client; the same registration gets the same id. */
    register: Effect.fn("OAuthClients.register")(function* (details: ClientDetails) {
      const id = idOf(details)
      const now = new Date(yield* Clock.currentTimeMillis)
      yield* keep(id, details, now, { at: null, freshUntil: null })
      return { id, issuedAt: now }
    }, orUnavailable),

    /** Returns what is stored about a client without reading its document; undefined if it is unknown. */
    known: (id: string) => orUnavailable(Effect.map(find(id), (row) => (row === undefined ? undefined : view(row)))),

    /** Returns the client, and reads its document if it is due. Undefined if the client never registered. */
    read: Effect.fn("OAuthClients.read")(function* (id: string) {
      if (isDocument(book, id)) return yield* document(id)
      const row = yield* find(id)
      return row === undefined ? undefined : view(row)
    }, orUnavailable),
  }
})

export class OAuthClients extends Context.Service<OAuthClients, Effect.Success<typeof make>>()(
  "@svc/cluster/oauth/OAuthClients",
) {
  static readonly layer = Layer.effect(OAuthClients, make)
}
