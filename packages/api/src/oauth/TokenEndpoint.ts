/**
 * `POST /api/oauth/token` and `/revoke`, and `/api/oauth/userinfo`: exchange codes and refresh tokens (RFC 6749 sections 4.1.3 and 6), and revoke
 * tokens (RFC 7009). Public clients are identified by the client id that their code or token was issued to; no client
 * document is fetched here.
 */
import { Addresses } from "@svc/domain/Addresses"
import { isOAuthToken } from "@svc/domain/account/Token"
import { isOurs } from "@svc/domain/oauth/Resource"
import { Audit } from "@svc/cluster/audit/Audit"
import { type AuditWrite, toNote } from "@svc/cluster/audit/AuditWrite"
import { type GrantInvalid, GrantTokens, type TokenPair } from "@svc/cluster/oauth/GrantTokens"
import { OAuthClients } from "@svc/cluster/oauth/OAuthClients"
import { type KnownSignIn, SignInTokens } from "@svc/cluster/proof/SignInTokens"
import { PublicLimits } from "@svc/cluster/limits/PublicLimits"
import { Effect, Result } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { clientAddress } from "../limits/ClientAddress.ts"
import * as Recording from "./OAuthAudit.ts"
import { answer, type Form, form, patience, refusal } from "./OAuthResponses.ts"

const given = ({ access, refresh, expiresInSeconds, scopes }: TokenPair) =>
  answer({
    access_token: access,
    token_type: "Bearer",
    expires_in: expiresInSeconds,
    refresh_token: refresh,
    // The granted scopes, which may differ from the requested ones (section 3.3).
    scope: scopes.join(" "),
  })

export const layer = HttpRouter.use((router) =>
  Effect.gen(function* () {
    const book = yield* Addresses
    const tokens = yield* GrantTokens
    const clients = yield* OAuthClients
    const limits = yield* PublicLimits
    const recording = yield* Recording.make
    const audit = yield* Audit
    const signIns = yield* SignInTokens

    const came = (action: string) => (pair: TokenPair) =>
      recording.byApp({ org: pair.orgId, action, grant: { id: pair.grantId, client: pair.client } })
    /** Audits the end of a Grant, and the use of its expired codes or tokens; unknown values belong to nobody. */
    const turnedAway =
      (action: string) =>
      ({ whose }: GrantInvalid) =>
        whose === null
          ? Effect.void
          : recording.byApp({
              org: whose.orgId,
              action,
              grant: { id: whose.grantId, client: whose.client },
              outcome: "refused",
              code: whose.ended ?? "invalid_grant",
            })

    /** The subject of the rate limit; many users of a hosted client share its addresses. */
    const counted = (clientId: string) => Effect.map(clientAddress, (address) => `${clientId.slice(0, 500)} ${address}`)

    /** Exchanges the code of a sign-in at a site (OpenID Connect Core 1.0 section 3.1.3). */
    const signIn = Effect.fnUntraced(function* (sent: Parameters<typeof signIns.exchange>[0], who: string) {
      let record: AuditWrite | undefined
      const noteOf = Effect.fnUntraced(function* (known: KnownSignIn) {
        record = yield* audit.note(yield* recording.ofSite(known))
        return toNote(record)
      })
      return yield* signIns.exchange(sent, noteOf).pipe(
        Effect.tap(() => Effect.sync(() => record && audit.kept(record))),
        Effect.map(({ access, idToken, scopes, expiresInSeconds }) =>
          answer({
            access_token: access,
            token_type: "Bearer",
            expires_in: expiresInSeconds,
            scope: scopes.join(" "),
            id_token: idToken,
          }),
        ),
        Effect.catchTag("SignInRefused", ({ description, known, hasEnded }) =>
          Effect.gen(function* () {
            if (known !== undefined) {
              yield* audit.record(yield* recording.ofSite(known, hasEnded ? "code_reuse" : "invalid_grant"))
            }
            yield* limits.take("oauth_token_failed", who)
            return refusal("invalid_grant", description)
          }),
        ),
      )
    })

    /** Returns the claims of the Identity that signed in (section 5.3). The access token is good for nothing else. */
    const userinfo = Effect.gen(function* () {
      yield* limits.take("oauth_token", yield* counted("userinfo"))
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const token = /^Bearer +(\S+) *$/i.exec(headers["authorization"] ?? "")?.[1]
      const claims = token === undefined ? undefined : yield* signIns.claims(token)
      if (claims !== undefined) return answer(claims)
      return HttpServerResponse.setHeader(
        refusal("invalid_token", "The access token is not one of a sign-in, or is no longer valid.", 401),
        "www-authenticate",
        token === undefined ? "Bearer" : 'Bearer error="invalid_token"',
      )
    })

    const exchange = Effect.fnUntraced(function* (sent: Form, clientId: string) {
      const who = yield* counted(clientId)
      yield* limits.take("oauth_token", who)
      const [code, redirect, verifier] = ["code", "redirect_uri", "code_verifier"].map((name) => sent.get(name))
      if (code === undefined || redirect === undefined || verifier === undefined) {
        return refusal("invalid_request", "code, redirect_uri and code_verifier are needed.")
      }
      if (isOAuthToken("signInCode", code)) return yield* signIn({ code, clientId, redirect, verifier }, who)
      return yield* tokens.exchange({ code, clientId, redirect, verifier }).pipe(
        Effect.tap(came("oauth.token")),
        Effect.tapErrorTag("GrantInvalid", turnedAway("oauth.token")),
        Effect.map(given),
        Effect.catchTag("GrantInvalid", ({ description }) =>
          Effect.as(limits.take("oauth_token_failed", who), refusal("invalid_grant", description)),
        ),
      )
    })

    /** An invalid token is reported despite the limit, because clients retry a 429 forever. */
    const refresh = Effect.fnUntraced(function* (sent: Form, clientId: string) {
      const token = sent.get("refresh_token")
      if (token === undefined) return refusal("invalid_request", "refresh_token is needed.")
      const who = yield* counted(clientId)
      if (yield* tokens.isAlive(token, clientId)) yield* limits.take("oauth_token", who)
      return yield* tokens.refresh(token, clientId).pipe(
        Effect.tap(came("oauth.refresh")),
        Effect.tapErrorTag("GrantInvalid", turnedAway("oauth.refresh")),
        Effect.map(given),
        Effect.catchTag("GrantInvalid", ({ description }) => Effect.succeed(refusal("invalid_grant", description))),
      )
    })

    const token = Effect.gen(function* () {
      const read = yield* form
      if (Result.isFailure(read)) return read.failure
      const sent = read.success
      const clientId = sent.get("client_id")
      if (clientId === undefined || clientId === "") {
        return refusal("invalid_client", "client_id is needed; clients have no secrets here.", 401)
      }
      const resource = sent.get("resource")
      if (resource !== undefined && !isOurs(book, resource)) {
        return refusal("invalid_target", "The resource does not belong to this service.")
      }
      const type = sent.get("grant_type")
      if (type !== "authorization_code" && type !== "refresh_token") {
        return refusal("unsupported_grant_type", "grant_type is authorization_code or refresh_token.")
      }
      // This error makes a client whose registration was deleted register again.
      if ((yield* clients.known(clientId)) === undefined) {
        return refusal("invalid_client", "The client does not exist.", 401)
      }
      return yield* type === "authorization_code" ? exchange(sent, clientId) : refresh(sent, clientId)
    })

    const revoke = Effect.gen(function* () {
      const read = yield* form
      if (Result.isFailure(read)) return read.failure
      const [sent, clientId] = [read.success.get("token"), read.success.get("client_id")]
      if (sent === undefined || clientId === undefined) {
        return refusal("invalid_request", "token and client_id are needed.")
      }
      yield* limits.take("oauth_token", yield* counted(clientId))
      const ended = yield* tokens.revoke(sent, clientId)
      if (ended !== undefined) {
        const grant = { id: ended.id, client: ended.client_name }
        yield* recording.byApp({ org: ended.org_id, action: "oauth.revoke", grant })
      }
      return answer({})
    })

    yield* router.add("POST", "/api/oauth/token", Effect.catchTags(token, patience))
    for (const method of ["GET", "POST"] as const) {
      yield* router.add(method, "/api/oauth/userinfo", Effect.catchTags(userinfo, patience))
    }
    yield* router.add("POST", "/api/oauth/revoke", Effect.catchTags(revoke, patience))
  }),
)
