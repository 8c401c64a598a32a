/**
 * OAuth 2.0 at a Mastodon server. Each Org registers one application per server. Uses PKCE if the server's metadata
 * announces it (RFC 7636, RFC 8414), and Mastodon's own endpoints if the server has no metadata.
 */
import { createHash, randomBytes } from "node:crypto"
import { callbackUrl } from "@svc/domain/Addresses"
import { Clock, Effect, Redacted, Schema } from "effect"
import { boundedWords } from "../ResponseBounds.ts"
import { CredentialRefused, type PlatformFailure, Unsupported } from "../Failure.ts"
import type {
  AuthorizationRequest,
  AuthorizationReturn,
  AuthorizationStart,
  Connected,
  PlatformParts,
  Session,
  PlatformContext,
} from "../Platform.ts"
import type { PlatformHttp } from "../PlatformHttp.ts"
import * as Responses from "./Responses.ts"
import { calling, document } from "./Client.ts"
import { type Application, applications, credentials, keptOf } from "./Credentials.ts"
import { type Instances, serviceOf } from "./Discovery.ts"
import { statusOf } from "./Profile.ts"

const scopes = "read write"

/** The state of an authorization that `finish` needs. */
const Pending = Schema.fromJsonString(
  Schema.Struct({
    service: Schema.String,
    application: Schema.Struct({ id: Schema.String, secret: Schema.String }),
    verifier: Schema.optionalKey(Schema.String),
    issuer: Schema.optionalKey(Schema.String),
  }),
)
const readPending = Schema.decodeUnknownEffect(Pending)
const writePending = Schema.encodeSync(Pending)

/** Reads the server's metadata, which is empty if the server has none. */
const metadataOf = (http: PlatformHttp, service: string) =>
  Effect.flatMap(document(http, service, "/.well-known/oauth-authorization-server"), (response) =>
    response === undefined
      ? Effect.succeed<typeof Responses.Metadata.Type>({})
      : Responses.as(Responses.Metadata)(response),
  )

/** Returns an address if it is on the server itself, and `otherwise` on that server if not. */
const onService = (service: string, address: string | null | undefined, otherwise: string): URL => {
  const url = address == null ? null : URL.parse(address)
  return url !== null && url.origin === service ? url : new URL(otherwise, service)
}

/**
 * Returns whether the server has removed the registered application: Mastodon does so after a day without use, snac
 * with a revoked token. Otherwise only the account holder would notice, in the browser. Checks the authorization page and
 * the application's credentials (RFC 6749 section 4.4). Ambiguous responses count as registered.
 */
const isRegistrationGone = (visit: PlatformContext, service: string, page: URL, application: Application) =>
  Effect.gen(function* () {
    const { status } = yield* visit.http.request(page, { headers: { accept: "text/html" } })
    if (status >= 400 && status < 500) return true
    yield* calling(visit.http, service, undefined, ({ oauth }) =>
      oauth.token.create({
        grantType: "client_credentials",
        clientId: application.id,
        clientSecret: application.secret,
        scope: "read",
        // The library's type requires a redirect URI. This grant has none, and snac would issue a token for one.
      } as unknown as Parameters<typeof oauth.token.create>[0]),
    )
    return false
  }).pipe(Effect.catch((failure) => Effect.succeed(failure._tag === "CredentialRefused")))

const register = Effect.fnUntraced(function* (
  visit: PlatformContext,
  service: string,
  parts: PlatformParts,
  pageOf: (application: Application) => URL,
): Effect.fn.Return<Application, PlatformFailure> {
  const known = yield* visit.registrations.read(service)
  if (known !== undefined) {
    const application = yield* applications.read(known)
    if (!(yield* isRegistrationGone(visit, service, pageOf(application), application))) return application
    yield* visit.registrations.forget(service)
  }
  const response = yield* calling(visit.http, service, undefined, ({ api }) =>
    api.v1.apps.create({
      clientName: "Agent Identity Service",
      redirectUris: callbackUrl(parts.book),
      scopes,
      website: parts.book.baseUrl,
    }),
  )
  const { client_id, client_secret } = yield* Responses.as(Responses.Application)(response)
  const kept = yield* visit.registrations.store(service, applications.write({ id: client_id, secret: client_secret }))
  return yield* applications.read(kept)
})

export const authorize =
  (parts: PlatformParts, instances: Instances) =>
  (visit: PlatformContext, request: AuthorizationRequest): Effect.Effect<AuthorizationStart, PlatformFailure> =>
    Effect.gen(function* () {
      const service = yield* serviceOf(visit.http, request.account)
      // Fails before the registration if this is not a compatible server.
      yield* instances.limits(visit.http, service)
      const metadata = yield* metadataOf(visit.http, service)
      const instanceRules = yield* instances.rules(visit.http, service)
      const verifier =
        metadata.code_challenge_methods_supported?.includes("S256") === true
          ? randomBytes(32).toString("base64url")
          : undefined
      const challenge =
        verifier === undefined
          ? {}
          : {
              code_challenge: createHash("sha256").update(verifier).digest("base64url"),
              code_challenge_method: "S256",
            }
      const pageOf = ({ id }: Application) => {
        const page = onService(service, metadata.authorization_endpoint, "/oauth/authorize")
        const query = {
          response_type: "code",
          client_id: id,
          redirect_uri: request.redirectUri,
          scope: scopes,
          state: request.state,
          ...challenge,
        }
        for (const [name, value] of Object.entries(query)) page.searchParams.set(name, value)
        return page
      }
      const application = yield* register(visit, service, parts, pageOf)
      return {
        url: pageOf(application).href,
        state: request.state,
        kept: Redacted.make(
          writePending({
            service,
            application,
            ...(verifier === undefined ? {} : { verifier }),
            ...(metadata.issuer == null ? {} : { issuer: metadata.issuer }),
          }),
        ),
        instanceRules,
      }
    })

const declined: Readonly<Record<string, string>> = {
  access_denied: "The account holder denied access.",
}

export const finish =
  (instances: Instances) =>
  (
    visit: PlatformContext,
    { kept, query, redirectUri }: AuthorizationReturn,
  ): Effect.Effect<Connected, PlatformFailure> =>
    Effect.gen(function* () {
      const { service, application, verifier, issuer } = yield* Effect.orDie(readPending(Redacted.value(kept)))
      const error = query.get("error")
      const code = query.get("code")
      if (error !== null || code === null) {
        const reason =
          query.get("error_description") ??
          declined[error ?? ""] ??
          error ??
          "The redirect contains no authorization code."
        return yield* new CredentialRefused({ message: boundedWords(reason) })
      }
      // RFC 9207: the response must come from the server that issued the request.
      const from = query.get("iss")
      if (from !== null && issuer !== undefined && from !== issuer) {
        return yield* new CredentialRefused({
          message: "The redirect comes from another server than the authorization.",
        })
      }
      const now = yield* Clock.currentTimeMillis
      const response = yield* calling(visit.http, service, undefined, ({ oauth }) =>
        oauth.token.create({
          grantType: "authorization_code",
          code,
          clientId: application.id,
          clientSecret: application.secret,
          redirectUri,
          scope: scopes,
          ...(verifier === undefined ? {} : { codeVerifier: verifier }),
        }),
      ).pipe(
        // The server may have removed the application, so the next authorization registers a new one.
        Effect.tapError((failure) =>
          failure._tag === "CredentialRefused" ? visit.registrations.forget(service) : Effect.void,
        ),
        // Used and expired codes are rejected with 400.
        Effect.catchTag("PlatformRefused", ({ message }) => Effect.fail(new CredentialRefused({ message }))),
      )
      const credential = keptOf(application, yield* Responses.as(Responses.Token)(response), now)
      const account = yield* calling(visit.http, service, Redacted.make(credential.token), ({ api }) =>
        api.v1.accounts.verifyCredentials(),
      )
      const { domain } = yield* instances.limits(visit.http, service)
      const status = statusOf(yield* Responses.as(Responses.Account)(account), service, domain)
      return { ...status, credential: credentials.write(credential), via: "oauth" as const }
    })

/** Revokes the token. Succeeds if the server no longer knows it. */
export const revoke = (session: Session): Effect.Effect<void, PlatformFailure> =>
  Effect.gen(function* () {
    const { token, application } = yield* Effect.flatMap(session.credential, credentials.read)
    yield* calling(session.http, session.account.service, undefined, ({ oauth }) =>
      oauth.revoke({ clientId: application.id, clientSecret: application.secret, token }),
    ).pipe(
      // GoToSocial before 0.19 has no revocation endpoint, and a retry would not help.
      Effect.catchIf(
        (failure) => failure._tag === "PlatformRefused" && failure.missing === true,
        () => Effect.fail(new Unsupported({ message: "The server does not support revoking tokens." })),
      ),
    )
  })
