/**
 * OAuth 2.0 at a Mastodon server: we are registered there once per Org, the account holder allows us in a browser, and
 * the code becomes a token. PKCE where the server's metadata announces it (RFC 7636, RFC 8414); a server without metadata
 * is asked at Mastodon's own addresses.
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
import * as Answers from "./Responses.ts"
import { calling, document } from "./Client.ts"
import { type Application, applications, credentials, keptOf } from "./Credentials.ts"
import { type Instances, serviceOf } from "./Discovery.ts"
import { standingOf } from "./Profile.ts"

const scopes = "read write"

/** What `finish` needs again. */
const Begun = Schema.fromJsonString(
  Schema.Struct({
    service: Schema.String,
    application: Schema.Struct({ id: Schema.String, secret: Schema.String }),
    verifier: Schema.optionalKey(Schema.String),
    issuer: Schema.optionalKey(Schema.String),
  }),
)
const readBegun = Schema.decodeUnknownEffect(Begun)
const writeBegun = Schema.encodeSync(Begun)

/** What the server announces; one that announces nothing is asked at Mastodon's own addresses. */
const metadataOf = (reach: PlatformHttp, service: string) =>
  Effect.flatMap(document(reach, service, "/.well-known/oauth-authorization-server"), (answer) =>
    answer === undefined ? Effect.succeed<typeof Answers.Metadata.Type>({}) : Answers.as(Answers.Metadata)(answer),
  )

/** Only an address of the server itself is taken: what leads elsewhere is not followed. */
const ofService = (service: string, address: string | null | undefined, otherwise: string): URL => {
  const url = address == null ? null : URL.parse(address)
  return url !== null && url.origin === service ? url : new URL(otherwise, service)
}

/**
 * Whether the server knows us no more: Mastodon removes applications that nobody has used for a day, snac with a token.
 * The account holder would see that first, and no call of ours would. Asked by what shows its page to a browser, and by
 * the credentials of the application (RFC 6749 section 4.4). Only a clear answer counts.
 */
const hasForgotten = (visit: PlatformContext, service: string, page: URL, application: Application) =>
  Effect.gen(function* () {
    const { status } = yield* visit.http.request(page, { headers: { accept: "text/html" } })
    if (status >= 400 && status < 500) return true
    yield* calling(visit.http, service, undefined, ({ oauth }) =>
      oauth.token.create({
        grantType: "client_credentials",
        clientId: application.id,
        clientSecret: application.secret,
        scope: "read",
        // Without an address to come back to, which the library wants: nobody comes, and snac makes a token for one.
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
    if (!(yield* hasForgotten(visit, service, pageOf(application), application))) return application
    yield* visit.registrations.forget(service)
  }
  const answer = yield* calling(visit.http, service, undefined, ({ api }) =>
    api.v1.apps.create({
      clientName: "Agent Identity Service",
      redirectUris: callbackUrl(parts.book),
      scopes,
      website: parts.book.baseUrl,
    }),
  )
  const { client_id, client_secret } = yield* Answers.as(Answers.Application)(answer)
  const kept = yield* visit.registrations.store(service, applications.write({ id: client_id, secret: client_secret }))
  return yield* applications.read(kept)
})

export const authorize =
  (parts: PlatformParts, instances: Instances) =>
  (visit: PlatformContext, request: AuthorizationRequest): Effect.Effect<AuthorizationStart, PlatformFailure> =>
    Effect.gen(function* () {
      const service = yield* serviceOf(visit.http, request.account)
      // It is a server of the kind before it gets to know us.
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
        const page = ofService(service, metadata.authorization_endpoint, "/oauth/authorize")
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
          writeBegun({
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
  access_denied: "The account holder did not allow it.",
}

export const finish =
  (instances: Instances) =>
  (
    visit: PlatformContext,
    { kept, query, redirectUri }: AuthorizationReturn,
  ): Effect.Effect<Connected, PlatformFailure> =>
    Effect.gen(function* () {
      const { service, application, verifier, issuer } = yield* Effect.orDie(readBegun(Redacted.value(kept)))
      const error = query.get("error")
      const code = query.get("code")
      if (error !== null || code === null) {
        const said =
          query.get("error_description") ?? declined[error ?? ""] ?? error ?? "There is no code in the address."
        return yield* new CredentialRefused({ message: boundedWords(said) })
      }
      // RFC 9207: an answer of another server is none of this one's.
      const from = query.get("iss")
      if (from !== null && issuer !== undefined && from !== issuer) {
        return yield* new CredentialRefused({ message: "The answer is of another server than was asked." })
      }
      const now = yield* Clock.currentTimeMillis
      const answer = yield* calling(visit.http, service, undefined, ({ oauth }) =>
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
        // The server has forgotten us: the next authorization registers anew.
        Effect.tapError((failure) =>
          failure._tag === "CredentialRefused" ? visit.registrations.forget(service) : Effect.void,
        ),
        // Codes that are used or lapsed are refused with 400.
        Effect.catchTag("PlatformRefused", ({ message }) => Effect.fail(new CredentialRefused({ message }))),
      )
      const credential = keptOf(application, yield* Answers.as(Answers.Token)(answer), now)
      const account = yield* calling(visit.http, service, Redacted.make(credential.token), ({ api }) =>
        api.v1.accounts.verifyCredentials(),
      )
      const { domain } = yield* instances.limits(visit.http, service)
      const standing = standingOf(yield* Answers.as(Answers.Account)(account), service, domain)
      return { ...standing, credential: credentials.write(credential), via: "oauth" as const }
    })

/** A token that the server does not know any more is revoked. */
export const revoke = (session: Session): Effect.Effect<void, PlatformFailure> =>
  Effect.gen(function* () {
    const { token, application } = yield* Effect.flatMap(session.credential, credentials.read)
    yield* calling(session.http, session.account.service, undefined, ({ oauth }) =>
      oauth.revoke({ clientId: application.id, clientSecret: application.secret, token }),
    ).pipe(
      // GoToSocial before 0.19 has no such call, and asking again gives it none.
      Effect.catchIf(
        (failure) => failure._tag === "PlatformRefused" && failure.missing === true,
        () => Effect.fail(new Unsupported({ message: "The server revokes no tokens." })),
      ),
    )
  })
