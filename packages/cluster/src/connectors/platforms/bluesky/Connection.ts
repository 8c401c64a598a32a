/** The library's clients for one call of a Connector, authenticated as the account. */
import type { CredentialSession } from "@atproto/api"
import type { OAuthSession } from "@atproto/oauth-client-node"
import { Effect } from "effect"
import type { PlatformFailure } from "../Failure.ts"
import type { Session } from "../Platform.ts"
import * as AppPassword from "./AppPassword.ts"
import { Client } from "./Client.ts"
import * as Credential from "./Credential.ts"
import type { Network } from "./Network.ts"
import * as Nonces from "./Nonces.ts"
import * as OAuth from "./OAuth.ts"
import * as LibraryFetch from "./LibraryFetch.ts"

export interface Connection {
  readonly agent: Client
  /** The client for direct messages, which the account's server proxies to the chat service. */
  readonly chat: Client
  readonly did: string
  /** The origin of the account's server. */
  readonly service: string
  readonly call: LibraryFetch.LibraryFetch["call"]
  readonly quietUntil: LibraryFetch.LibraryFetch["quietUntil"]
}

/** The library's session, which authenticates requests. */
type SignedFetch = Pick<OAuthSession | CredentialSession, "fetchHandler">

export const make = (
  network: Network,
  signed: SignedFetch,
  { did, service }: { readonly did: string; readonly service: string },
  library: LibraryFetch.LibraryFetch,
): Connection => ({
  agent: new Client((url, init) => signed.fetchHandler(url, init)),
  chat: new Client((url, init) => {
    const headers = new Headers(init.headers)
    headers.set("atproto-proxy", `${network.endpoints.chat}#bsky_chat`)
    return signed.fetchHandler(url, { ...init, headers })
  }),
  did,
  service,
  call: library.call,
  quietUntil: library.quietUntil,
})

/** Runs a call with the stored credential of a Connector. */
export const using = <A>(
  network: Network,
  session: Session,
  use: (connection: Connection) => Effect.Effect<A, PlatformFailure>,
): Effect.Effect<A, PlatformFailure> =>
  Effect.gen(function* () {
    const library = yield* LibraryFetch.make(session.http)
    const tokens = yield* Credential.open(session)
    const did = session.account.id
    if (tokens.kind === "app_password") {
      const { service } = tokens
      return yield* use(make(network, AppPassword.resume(session, tokens, library), { did, service }, library))
    }
    const service = new URL(tokens.saved.tokenSet.aud).origin
    return yield* Nonces.using(session, (nonces) =>
      Effect.flatMap(OAuth.resume(network, session, library, nonces), (signed) =>
        use(make(network, signed, { did, service }, library)),
      ),
    )
  })

/** Revokes the credential at the platform. */
export const end = (network: Network, session: Session): Effect.Effect<void, PlatformFailure> =>
  Effect.gen(function* () {
    const library = yield* LibraryFetch.make(session.http)
    const tokens = yield* Credential.open(session)
    yield* tokens.kind === "app_password"
      ? AppPassword.end(tokens, library)
      : Nonces.using(session, (nonces) => OAuth.end(network, session, tokens, library, nonces))
  })
