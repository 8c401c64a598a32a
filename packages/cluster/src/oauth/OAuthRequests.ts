/**
 * Authorization requests, from the moment a browser brings one until the account holder has decided, at most 15
 * minutes. A request is bound to the browser that brought it, then to the session that opens it.
 */
import { randomBytes } from "node:crypto"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Context, Effect, Layer } from "effect"
import { sha256 } from "../credentials/CredentialMint.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** Open requests per session; the oldest are removed. */
const openAtMost = 50

export interface OAuthRequest {
  readonly id: string
  /** The query string that the client sent. */
  readonly query: string
}

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const life = `${Timing.oauthRequestMillis} milliseconds`

  return {
    /** Stores a request for the browser that brought it, which gets `secret`. */
    keep: Effect.fn("OAuthRequests.keep")(function* (query: string) {
      const id = yield* makeUuidV7
      const secret = randomBytes(24).toString("base64url")
      yield* sql`
        insert into oauth_request (id, query, browser_hash, created_at, expires_at)
        values (${id}, ${query}, ${sha256(secret)}, now(), now() + ${life}::interval)`
      return { id, secret }
    }, orUnavailable),

    /** Stores a request that a session opens. */
    open: Effect.fn("OAuthRequests.open")(function* (query: string, session: string) {
      const id = yield* makeUuidV7
      yield* sql`
        with crowded as (
          delete from oauth_request where id in (
            select id from oauth_request where session_id = ${session} order by created_at desc offset ${openAtMost - 1})
        )
        insert into oauth_request (id, query, session_id, created_at, expires_at)
        values (${id}, ${query}, ${session}, now(), now() + ${life}::interval)`
      const request: OAuthRequest = { id, query }
      return request
    }, orUnavailable),

    /** Returns whether the request belongs to this browser, without changing it. */
    isOf: (id: string, secret: string) =>
      orUnavailable(
        Effect.map(
          sql`select 1 from oauth_request where id = ${id} and browser_hash = ${sha256(secret)} and expires_at > now()`,
          (rows) => rows.length > 0,
        ),
      ),

    /** Binds the request to the session; undefined if it belongs neither to the session nor to its browser. */
    claim: (id: string, session: string, secret: string | undefined) =>
      orUnavailable(
        Effect.map(
          sql<OAuthRequest>`
            update oauth_request set session_id = ${session}, browser_hash = null
            where id = ${id} and expires_at > now()
              and (session_id = ${session} or (session_id is null and browser_hash = ${secret === undefined ? null : sha256(secret)}))
            returning id, query`,
          ([row]) => row,
        ),
      ),

    /** Ends a request that its session has denied; false if it no longer exists. */
    close: (id: string, session: string) =>
      orUnavailable(
        Effect.map(
          sql`delete from oauth_request where id = ${id} and session_id = ${session} and expires_at > now() returning 1`,
          (rows) => rows.length > 0,
        ),
      ),
  }
})

export class OAuthRequests extends Context.Service<OAuthRequests, Effect.Success<typeof make>>()(
  "@svc/cluster/oauth/OAuthRequests",
) {
  static readonly layer = Layer.effect(OAuthRequests, make)
}
