/**
 * OAuth for atproto (PAR, PKCE, DPoP, private_key_jwt), done by the library. Its stores are the Connector's rows, and
 * its lock is the Connector's actor.
 */
import type { NodeOAuthClient, NodeSavedState, OAuthSession } from "@atproto/oauth-client-node"
import { Clock, Effect, Redacted, Schema } from "effect"
import { CredentialRefused, type PlatformFailure } from "../Failure.ts"
import type {
  AuthorizationRequest,
  AuthorizationReturn,
  AuthorizationStart,
  Credential as StoredCredential,
  Session,
  PlatformContext,
} from "../Platform.ts"
import * as ClientMetadata from "./ClientMetadata.ts"
import * as Credential from "./Credential.ts"
import type { OAuthTokens } from "./Credential.ts"
import { memoryNonces, type Nonces } from "./Nonces.ts"
import type { Network, Stores } from "./Network.ts"
import * as LibraryFetch from "./LibraryFetch.ts"

/** Remaining lifetime of a token below which the library may refresh it. The library does so from 40 s before the expiry. */
const refreshBeforeMillis = 60_000

/** The stored state of an authorization between its start and the redirect. */
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
  const library = yield* LibraryFetch.make(http)
  let started: { readonly state: string; readonly saved: NodeSavedState } | undefined
  const client = yield* network.client(library, {
    ...emptyStores,
    states: { get: () => undefined, set: (state, saved) => void (started = { state, saved }), del: () => {} },
    nonces: memoryNonces(),
  })
  const url = yield* library.call(() =>
    client.authorize(account ?? network.endpoints.service, { redirect_uri: redirectUriOf(network, redirectUri) }),
  )
  return {
    url: url.href,
    state: started!.state,
    kept: Redacted.make(JSON.stringify({ saved: started!.saved })),
    instanceRules: [],
  }
})

/** Completes an authorization. Returns its session and the credential to store. */
export const finish = Effect.fn("Bluesky.finish")(function* (
  network: Network,
  library: LibraryFetch.LibraryFetch,
  { kept, state, query, redirectUri }: AuthorizationReturn,
): Effect.fn.Return<{ readonly session: OAuthSession; readonly credential: StoredCredential }, PlatformFailure> {
  const { saved } = yield* Effect.mapError(
    Schema.decodeEffect(Pending)(Redacted.value(kept)),
    () => new CredentialRefused({ message: "The stored authorization cannot be read. Start a new one." }),
  )
  // The store contains only the authorization of this state, so the query must belong to it.
  let pending: NodeSavedState | undefined = saved
  let made: OAuthTokens["saved"] | undefined
  const client = yield* network.client(library, {
    ...emptyStores,
    states: {
      get: (key) => (key === state ? pending : undefined),
      set: () => {},
      del: () => void (pending = undefined),
    },
    sessions: { get: () => made, set: (_, session) => void (made = session), del: () => {} },
    nonces: memoryNonces(),
  })
  const { session } = yield* library.call(() =>
    client.callback(query, { redirect_uri: redirectUriOf(network, redirectUri) }),
  )
  return { session, credential: Credential.seal({ kind: "oauth", saved: made! }) }
})

const redirectUriOf = ({ book }: Network, wanted: string) =>
  // The library's type requires a URL literal.
  ClientMetadata.redirectUri(book, wanted) as `https://${string}`

/** Returns the session of a Connector. */
export const resume = Effect.fnUntraced(function* (
  network: Network,
  session: Session,
  library: LibraryFetch.LibraryFetch,
  nonces: Nonces,
): Effect.fn.Return<OAuthSession, PlatformFailure> {
  const client = yield* clientOf(network, session, library, nonces)
  return yield* library.call(() => client.restore(session.account.id))
})

/** Revokes the tokens at the authorization server (RFC 7009). The library's own `signOut` hides failures. */
export const end = Effect.fnUntraced(function* (
  network: Network,
  session: Session,
  { saved: { tokenSet } }: OAuthTokens,
  library: LibraryFetch.LibraryFetch,
  nonces: Nonces,
): Effect.fn.Return<void, PlatformFailure> {
  const client = yield* clientOf(network, session, library, nonces)
  const { server } = yield* library.call(() => client.restore(session.account.id, false))
  yield* library
    .call(() => server.request("revocation", { token: tokenSet.refresh_token ?? tokenSet.access_token }))
    .pipe(Effect.catchTag("CredentialRefused", () => Effect.void))
})

const clientOf = (
  network: Network,
  session: Session,
  library: LibraryFetch.LibraryFetch,
  nonces: Nonces,
): Effect.Effect<NodeOAuthClient, PlatformFailure> => {
  const stored = Effect.flatMap(Credential.open(session), (tokens) =>
    tokens.kind === "oauth" ? Effect.succeed(tokens.saved) : Effect.fail(Credential.replaced()),
  )
  // Acquiring the lock is a commit, so a call only acquires it if the library may use the refresh token: when the access
  // token expires soon or was rejected.
  const mayRefresh = Effect.gen(function* () {
    if (library.unauthorized()) return true
    const { expires_at } = (yield* stored).tokenSet
    return expires_at !== undefined && Date.parse(expires_at) < (yield* Clock.currentTimeMillis) + refreshBeforeMillis
  })
  return network.client(library, {
    ...emptyStores,
    nonces,
    sessions: {
      get: (did) => (did === session.account.id ? library.runPromise(stored) : undefined),
      set: (_, saved) => library.runPromise(session.storeCredential(Credential.seal({ kind: "oauth", saved }))),
      // The library deletes a session that the server has ended.
      del: () => library.fail(new CredentialRefused({ message: "The server has ended the authorization." })),
    },
    lock: async (_, run) =>
      (await library.runPromise(mayRefresh))
        ? library.runPromise(
            session.exclusively(Effect.tryPromise({ try: async () => await run(), catch: (error) => error })),
          )
        : run(),
  })
}

const emptyStores: Omit<Stores, "nonces"> = {
  states: { get: () => undefined, set: () => {}, del: () => {} },
  sessions: { get: () => undefined, set: () => {}, del: () => {} },
  lock: (_, run) => run(),
}
