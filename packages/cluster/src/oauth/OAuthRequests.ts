/**
 * What clients ask for, from the moment a browser brings it until its holder has decided: a quarter of an hour at most.
 * It is bound to the browser that brought it, then to the session that looks at it.
 */
import { randomBytes } from "node:crypto"
import { makeUuidV7 } from "@svc/domain/Ids"
import { Context, Effect, Layer } from "effect"
import { sha256 } from "../credentials/CredentialMint.ts"
import { orUnavailable, Writes } from "../store/Database.ts"
import { Timing } from "../Timing.ts"

/** Requests a session may have open; the oldest make room. */
const openAtMost = 50

export interface OAuthRequest {
  readonly id: string
  /** As the client sent it. */
  readonly query: string
}

const make = Effect.gen(function* () {
  const sql = yield* Writes
  const life = `${Timing.oauthRequestMillis} milliseconds`

  return {
    /** Keeps a request for whoever signs in with the browser that brought it; the browser gets `secret`. */
    keep: Effect.fn("OAuthRequests.keep")(function* (query: string) {
      const id = yield* makeUuidV7
      const secret = randomBytes(24).toString("base64url")
      yield* sql`
        insert into oauth_request (id, query, browser_hash, created_at, expires_at)
        values (${id}, ${query}, ${sha256(secret)}, now(), now() + ${life}::interval)`
      return { id, secret }
    }, orUnavailable),

    /** Keeps a request that a session looks at. */
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

    /** Whether it is this browser's; changes nothing. */
    isOf: (id: string, secret: string) =>
      orUnavailable(
        Effect.map(
          sql`select 1 from oauth_request where id = ${id} and browser_hash = ${sha256(secret)} and expires_at > now()`,
          (rows) => rows.length > 0,
        ),
      ),

    /** The request, from now on the session's; undefined where it is neither its nor its browser's. */
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

    /** Ends a request that its session has denied; false where there is none any more. */
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
