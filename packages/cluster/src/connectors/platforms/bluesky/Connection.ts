/** A call of a Connector: the library's agent, signed in as the account, for as long as the call lasts. */
import { Agent, type CredentialSession } from "@atproto/api"
import type { OAuthSession } from "@atproto/oauth-client-node"
import { Effect } from "effect"
import type { PlatformFailure } from "../Failure.ts"
import type { Session } from "../Platform.ts"
import * as AppPassword from "./AppPassword.ts"
import * as Credential from "./Credential.ts"
import type { Network } from "./Network.ts"
import * as Nonces from "./Nonces.ts"
import * as OAuth from "./OAuth.ts"
import * as LibraryFetch from "./LibraryFetch.ts"

export interface Connection {
  readonly agent: Agent
  /** The same account at the service of direct messages, by way of its own server. */
  readonly chat: Agent
  readonly did: string
  /** The origin of the server that carries the account. */
  readonly service: string
  readonly call: LibraryFetch.LibraryFetch["call"]
  readonly restUntil: LibraryFetch.LibraryFetch["restUntil"]
}

/** Whatever signs requests as the account. */
type Signing = Pick<OAuthSession | CredentialSession, "fetchHandler">

export const over = (
  network: Network,
  signing: Signing,
  { did, service }: { readonly did: string; readonly service: string },
  wire: LibraryFetch.LibraryFetch,
): Connection => {
  const agent = new Agent((url, init) => signing.fetchHandler(url, init))
  return {
    agent,
    chat: agent.withProxy("bsky_chat", network.places.chat),
    did,
    service,
    call: wire.call,
    restUntil: wire.restUntil,
  }
}

export const using = <A>(
  network: Network,
  session: Session,
  use: (connection: Connection) => Effect.Effect<A, PlatformFailure>,
): Effect.Effect<A, PlatformFailure> =>
  Effect.gen(function* () {
    const wire = yield* LibraryFetch.make(session.http)
    const tokens = yield* Credential.open(session)
    const did = session.account.id
    if (tokens.kind === "app_password") {
      const { service } = tokens
      return yield* use(over(network, AppPassword.resume(session, tokens, wire), { did, service }, wire))
    }
    const service = new URL(tokens.saved.tokenSet.aud).origin
    return yield* Nonces.using(session, (nonces) =>
      Effect.flatMap(OAuth.resume(network, session, wire, nonces), (signing) =>
        use(over(network, signing, { did, service }, wire)),
      ),
    )
  })

/** Ends the credential at the platform. */
export const end = (network: Network, session: Session): Effect.Effect<void, PlatformFailure> =>
  Effect.gen(function* () {
    const wire = yield* LibraryFetch.make(session.http)
    const tokens = yield* Credential.open(session)
    yield* tokens.kind === "app_password"
      ? AppPassword.end(tokens, wire)
      : Nonces.using(session, (nonces) => OAuth.end(network, session, tokens, wire, nonces))
  })
