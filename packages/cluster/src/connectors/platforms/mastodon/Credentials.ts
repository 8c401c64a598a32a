/** What is kept of a connection and of an application, JSON inside what is sealed. */
import { Clock, Effect, Redacted, Schema } from "effect"
import { CredentialRefused, type Halted, type PlatformFailure } from "../Failure.ts"
import type { Credential, Session } from "../Platform.ts"
import * as Answers from "./Responses.ts"
import { calling, type Clients } from "./Client.ts"

export const Application = Schema.Struct({ id: Schema.String, secret: Schema.String })
export type Application = typeof Application.Type

const Kept = Schema.Struct({
  token: Schema.String,
  application: Application,
  /** Where tokens end: what gets the next one, and when this one ends, in milliseconds since 1970. */
  refresh: Schema.optionalKey(Schema.String),
  ends: Schema.optionalKey(Schema.Number),
})
export type Kept = typeof Kept.Type

const codec = <A>(schema: Schema.Codec<A>) => {
  const text = Schema.fromJsonString(schema)
  const decode = Schema.decodeUnknownEffect(text)
  const encode = Schema.encodeSync(text)
  return {
    // It was written here, and what is sealed was not altered.
    read: (credential: Credential): Effect.Effect<A> => Effect.orDie(decode(Redacted.value(credential))),
    write: (value: A): Credential => Redacted.make(encode(value)),
  }
}

export const applications = codec(Application)
export const credentials = codec(Kept)

/** A token that ends this soon is refreshed before it is used. */
const margin = 60_000

const isFresh = (kept: Kept, now: number) => kept.ends === undefined || kept.ends - margin > now

const refreshed = Effect.fnUntraced(function* (session: Session): Effect.fn.Return<Kept, PlatformFailure> {
  return yield* session.exclusively(
    Effect.gen(function* () {
      // Whoever held the lock before may have done it.
      const kept = yield* Effect.flatMap(session.credential, credentials.read)
      const now = yield* Clock.currentTimeMillis
      if (isFresh(kept, now)) return kept
      if (kept.refresh === undefined) return yield* new CredentialRefused({ message: "The access token has ended." })
      const answer = yield* calling(session.http, session.account.service, undefined, ({ oauth }) =>
        oauth.token.create({
          // Not among the grants that the library names.
          grantType: "refresh_token" as "client_credentials",
          clientId: kept.application.id,
          clientSecret: kept.application.secret,
          refreshToken: kept.refresh,
        } as unknown as Parameters<typeof oauth.token.create>[0]),
      )
      const token = yield* Answers.as(Answers.Token)(answer)
      const next: Kept = keptOf(kept.application, token, now, kept.refresh)
      yield* session.storeCredential(credentials.write(next))
      return next
    }),
  )
})

/** What is kept of a token. */
export const keptOf = (
  application: Application,
  token: typeof Answers.Token.Type,
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

export const current = Effect.fnUntraced(function* (
  session: Session,
): Effect.fn.Return<Kept, PlatformFailure | Halted> {
  const kept = yield* Effect.flatMap(session.credential, credentials.read)
  return isFresh(kept, yield* Clock.currentTimeMillis) ? kept : yield* refreshed(session)
})

/** A call in the account's name, with a token that is good. */
export const asAccount = <A>(
  session: Session,
  call: (clients: Clients) => PromiseLike<A>,
): Effect.Effect<A, PlatformFailure> =>
  Effect.flatMap(current(session), ({ token }) =>
    calling(session.http, session.account.service, Redacted.make(token), call),
  )
