/** Credentials of connections and applications, stored as sealed JSON, and the refresh of tokens. */
import { Clock, Effect, Redacted, Schema } from "effect"
import { CredentialRefused, type Halted, type PlatformFailure } from "../Failure.ts"
import type { Credential, Session } from "../Platform.ts"
import * as Responses from "./Responses.ts"
import { calling, type Clients } from "./Client.ts"

export const Application = Schema.Struct({ id: Schema.String, secret: Schema.String })
export type Application = typeof Application.Type

const Kept = Schema.Struct({
  token: Schema.String,
  application: Application,
  /** The refresh token and the expiry (in milliseconds since 1970), if the server's tokens expire. */
  refresh: Schema.optionalKey(Schema.String),
  ends: Schema.optionalKey(Schema.Number),
})
type Kept = typeof Kept.Type

const codec = <A>(schema: Schema.Codec<A>) => {
  const text = Schema.fromJsonString(schema)
  const decode = Schema.decodeUnknownEffect(text)
  const encode = Schema.encodeSync(text)
  return {
    // Sealed values cannot be altered, so a decoding error is a defect.
    read: (credential: Credential): Effect.Effect<A> => Effect.orDie(decode(Redacted.value(credential))),
    write: (value: A): Credential => Redacted.make(encode(value)),
  }
}

export const applications = codec(Application)
export const credentials = codec(Kept)

/** A token with a shorter remaining lifetime (in milliseconds) is refreshed before it is used. */
const margin = 60_000

const isFresh = (kept: Kept, now: number) => kept.ends === undefined || kept.ends - margin > now

const refresh = Effect.fnUntraced(function* (session: Session): Effect.fn.Return<Kept, PlatformFailure> {
  return yield* session.exclusively(
    Effect.gen(function* () {
      // The previous holder of the lock may already have refreshed the token.
      const kept = yield* Effect.flatMap(session.credential, credentials.read)
      const now = yield* Clock.currentTimeMillis
      if (isFresh(kept, now)) return kept
      if (kept.refresh === undefined) return yield* new CredentialRefused({ message: "The access token has expired." })
      const response = yield* calling(session.http, session.account.service, undefined, ({ oauth }) =>
        oauth.token.create({
          // The library's types do not include this grant.
          grantType: "refresh_token" as "client_credentials",
          clientId: kept.application.id,
          clientSecret: kept.application.secret,
          refreshToken: kept.refresh,
        } as unknown as Parameters<typeof oauth.token.create>[0]),
      )
      const token = yield* Responses.as(Responses.Token)(response)
      const next: Kept = keptOf(kept.application, token, now, kept.refresh)
      yield* session.storeCredential(credentials.write(next))
      return next
    }),
  )
})

/** Returns the credential to store for a token response. */
export const keptOf = (
  application: Application,
  token: typeof Responses.Token.Type,
  now: number,
  formerRefresh?: string,
): Kept => {
  const refresh = token.refresh_token ?? formerRefresh
  return {
    token: token.access_token,
    application,
    ...(refresh === undefined || token.expires_in == null ? {} : { refresh, ends: now + token.expires_in * 1000 }),
  }
}

/** Returns the stored credential, refreshed if it expires soon. */
export const current = Effect.fnUntraced(function* (
  session: Session,
): Effect.fn.Return<Kept, PlatformFailure | Halted> {
  const kept = yield* Effect.flatMap(session.credential, credentials.read)
  return isFresh(kept, yield* Clock.currentTimeMillis) ? kept : yield* refresh(session)
})

/** Runs a call as the account, with a valid token. */
export const asAccount = <A>(
  session: Session,
  call: (clients: Clients) => PromiseLike<A>,
): Effect.Effect<A, PlatformFailure> =>
  Effect.flatMap(current(session), ({ token }) =>
    calling(session.http, session.account.service, Redacted.make(token), call),
  )
