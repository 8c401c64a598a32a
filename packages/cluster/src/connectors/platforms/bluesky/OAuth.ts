/**
 * OAuth as atproto does it (PAR, PKCE, DPoP, private_key_jwt): the library's work, with the Connector's rows as its
 * stores and the Connector's actor as its lock.
 */
import type { NodeOAuthClient, NodeSavedState, OAuthSession } from "@atproto/oauth-client-node"
import { Clock, Effect, Redacted, Schema } from "effect"
import { CredentialRefused, type PlatformFailure } from "../Failure.ts"
import type {
  AuthorizationRequest,
  AuthorizationReturn,
  AuthorizationStart,
  Credential as Kept,
  Session,
  PlatformContext,
} from "../Platform.ts"
import * as ClientMetadata from "./ClientMetadata.ts"
import * as Credential from "./Credential.ts"
import type { OAuthTokens } from "./Credential.ts"
import { memoryNonces, type Nonces } from "./Nonces.ts"
import type { Network, Stores } from "./Network.ts"
import * as LibraryFetch from "./LibraryFetch.ts"

/** A token that lives no longer than this may be refreshed by the library, which does so from 40 s before its end on. */
const nearMillis = 60_000

/** What stands between the two halves of an authorization. */
const Pending = Schema.fromJsonString(
  Schema.Struct({
    saved: Schema.declare<NodeSavedState>(
      (saved): saved is NodeSavedState => typeof saved === "object" && saved !== null && "verifier" in saved,
    ),
  }),
)

export const authorize = Effect.fn("Bluesky.authorize")(function* (
  network: Network,
  { http }: PlatformContext,
  { account, redirectUri }: AuthorizationRequest,
): Effect.fn.Return<AuthorizationStart, PlatformFailure> {
  const wire = yield* LibraryFetch.make(http)
  let begun: { readonly state: string; readonly saved: NodeSavedState } | undefined
  const client = yield* network.client(wire, {
    ...stateless,
    states: { get: () => undefined, set: (state, saved) => void (begun = { state, saved }), del: () => {} },
    nonces: memoryNonces(),
  })
  const url = yield* wire.call(() =>
    client.authorize(account ?? network.places.service, { redirect_uri: backTo(network, redirectUri) }),
  )
  return {
    url: url.href,
    state: begun!.state,
    kept: Redacted.make(JSON.stringify({ saved: begun!.saved })),
    instanceRules: [],
  }
})

/** Answers whose session it is, and what is to be kept of it. */
export const finish = Effect.fn("Bluesky.finish")(function* (
  network: Network,
  wire: LibraryFetch.LibraryFetch,
  { kept, state, query, redirectUri }: AuthorizationReturn,
): Effect.fn.Return<{ readonly session: OAuthSession; readonly credential: Kept }, PlatformFailure> {
  const { saved } = yield* Effect.mapError(
    Schema.decodeEffect(Pending)(Redacted.value(kept)),
    () => new CredentialRefused({ message: "The authorization that was begun cannot be read." }),
  )
  // The store is the one authorization that our own state led to; what the query says must be it.
  let pending: NodeSavedState | undefined = saved
  let made: OAuthTokens["saved"] | undefined
  const client = yield* network.client(wire, {
    ...stateless,
    states: {
      get: (key) => (key === state ? pending : undefined),
      set: () => {},
      del: () => void (pending = undefined),
    },
    sessions: { get: () => made, set: (_, session) => void (made = session), del: () => {} },
    nonces: memoryNonces(),
  })
  const { session } = yield* wire.call(() => client.callback(query, { redirect_uri: backTo(network, redirectUri) }))
  return { session, credential: Credential.seal({ kind: "oauth", saved: made! }) }
})

const backTo = ({ book }: Network, wanted: string) =>
  // A URL by its form; the library wants the form in the type.
  ClientMetadata.redirectUri(book, wanted) as `https://${string}`

/** The session of a Connector. */
export const resume = Effect.fnUntraced(function* (
  network: Network,
  session: Session,
  wire: LibraryFetch.LibraryFetch,
  nonces: Nonces,
): Effect.fn.Return<OAuthSession, PlatformFailure> {
  const client = yield* clientOf(network, session, wire, nonces)
  return yield* wire.call(() => client.restore(session.account.id))
})

/** Ends the session at its authorization server (RFC 7009); the library's own way would keep to itself that it failed. */
export const end = Effect.fnUntraced(function* (
  network: Network,
  session: Session,
  { saved: { tokenSet } }: OAuthTokens,
  wire: LibraryFetch.LibraryFetch,
  nonces: Nonces,
): Effect.fn.Return<void, PlatformFailure> {
  const client = yield* clientOf(network, session, wire, nonces)
  const { server } = yield* wire.call(() => client.restore(session.account.id, false))
  yield* wire
    .call(() => server.request("revocation", { token: tokenSet.refresh_token ?? tokenSet.access_token }))
    .pipe(Effect.catchTag("CredentialRefused", () => Effect.void))
})

const clientOf = (
  network: Network,
  session: Session,
  wire: LibraryFetch.LibraryFetch,
  nonces: Nonces,
): Effect.Effect<NodeOAuthClient, PlatformFailure> => {
  const held = Effect.flatMap(Credential.open(session), (tokens) =>
    tokens.kind === "oauth"
      ? Effect.succeed(tokens.saved)
      : Effect.fail(new CredentialRefused({ message: "The account was connected in another way meanwhile." })),
  )
  // Taking the lock is a commit, so a call takes it only where the library may be about to spend the refresh token: its
  // access token is near its end, or was refused.
  const spends = Effect.gen(function* () {
    if (wire.unauthorized()) return true
    const { expires_at } = (yield* held).tokenSet
    return expires_at !== undefined && Date.parse(expires_at) < (yield* Clock.currentTimeMillis) + nearMillis
  })
  return network.client(wire, {
    ...stateless,
    nonces,
    sessions: {
      get: (did) => (did === session.account.id ? wire.promised(held) : undefined),
      set: (_, saved) => wire.promised(session.storeCredential(Credential.seal({ kind: "oauth", saved }))),
      // The library forgets a session that the server has ended.
      del: () => wire.fail(new CredentialRefused({ message: "The server has ended the authorization." })),
    },
    lock: async (_, run) =>
      (await wire.promised(spends))
        ? wire.promised(
            session.exclusively(Effect.tryPromise({ try: async () => await run(), catch: (error) => error })),
          )
        : run(),
  })
}

const stateless: Omit<Stores, "nonces"> = {
  states: { get: () => undefined, set: () => {}, del: () => {} },
  sessions: { get: () => undefined, set: () => {}, del: () => {} },
  lock: (_, run) => run(),
}
